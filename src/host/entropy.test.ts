import { expect, test } from "vitest";
import { systemEntropy } from "./entropy.ts";

test("system entropy gives fresh arrays of the asked length", () => {
  const first = systemEntropy.bytes(32);
  const second = systemEntropy.bytes(32);
  expect(first).toHaveLength(32);
  expect(first).not.toEqual(second);
  expect(first.buffer.byteLength).toBe(32);
  expect(systemEntropy.bytes(0)).toHaveLength(0);
});

test("system entropy gives no bytes out twice, however few are asked for at a time", () => {
  const seen = new Set(Array.from({ length: 2_000 }, () => systemEntropy.bytes(16).join()));
  expect(seen.size).toBe(2_000);
  expect(seen).not.toContain(new Uint8Array(16).join());
  expect(systemEntropy.bytes(10_000)).toHaveLength(10_000);
});
