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
