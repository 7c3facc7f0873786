import { expect, test } from "vitest";
import { byteTools } from "./bytes.ts";

const text = new TextEncoder().encode("abc".repeat(1_000));

test("what was made smaller is what it was again", () => {
  const small = byteTools.deflate(text);
  expect(small.length).toBeLessThan(100);
  expect(byteTools.inflate(small, 3_000)).toEqual(text);
  expect(byteTools.inflate(byteTools.deflate(new Uint8Array()), 0)).toEqual(
    new Uint8Array(),
  );
});

test("nothing grows beyond its bound", () => {
  const small = byteTools.deflate(text);
  expect(byteTools.inflate(small, 2_999)).toBeUndefined();
  expect(byteTools.inflate(small, 0)).toBeUndefined();
});

test("bytes that were never made smaller, or only half of them, give nothing", () => {
  expect(byteTools.inflate(text, 3_000)).toBeUndefined();
  expect(
    byteTools.inflate(byteTools.deflate(text).subarray(0, 10), 3_000),
  ).toBeUndefined();
});

test("the result has no Buffer's methods", () => {
  expect(byteTools.deflate(text).constructor).toBe(Uint8Array);
});
