import { expect, test } from "vitest";
import { byteTools } from "./bytes.ts";

const text = new TextEncoder().encode("abc".repeat(1_000));

test("what was made smaller is what it was again", () => {
  const small = byteTools.deflate(text);
  expect(small.length).toBeLessThan(100);
  expect(byteTools.inflate(small, 3_000)).toEqual(text);
  expect(byteTools.inflate(byteTools.deflate(new Uint8Array()), 0)).toEqual(new Uint8Array());
});

test("nothing grows beyond its bound", () => {
  const small = byteTools.deflate(text);
  expect(byteTools.inflate(small, 2_999)).toBeUndefined();
  expect(byteTools.inflate(small, 0)).toBeUndefined();
});

test("bytes that were never made smaller, or only half of them, give nothing", () => {
  expect(byteTools.inflate(text, 3_000)).toBeUndefined();
  expect(byteTools.inflate(byteTools.deflate(text).subarray(0, 10), 3_000)).toBeUndefined();
});

test("the result has no Buffer's methods", () => {
  expect(byteTools.deflate(text).constructor).toBe(Uint8Array);
});

const bytes = (given: string): Uint8Array => new TextEncoder().encode(given);

test("HMAC with SHA-256 answers as RFC 4231 says", () => {
  expect(byteTools.hmacSha256Hex(new Uint8Array(20).fill(0x0b), bytes("Hi There"))).toBe(
    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
  );
  expect(byteTools.hmacSha256Hex(bytes("Jefe"), bytes("what do ya want for nothing?"))).toBe(
    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
  );
  expect(
    byteTools.hmacSha256Hex(new Uint8Array(20).fill(0xaa), new Uint8Array(50).fill(0xdd)),
  ).toBe("773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
});
