import { expect, test } from "vitest";
import type { LoadedBlob } from "./read.ts";
import { VerifiedBlobs } from "./verified.ts";

function blob(hash: string, size: number): LoadedBlob {
  return { hash, size, kind: "module", content: new Uint8Array(size) };
}

test("of many small blobs the 1,000 used last stay", () => {
  const cache = new VerifiedBlobs();
  for (let n = 0; n < 1_000; n += 1) cache.add(blob(`${n}`, 1));
  expect(cache.get("0")).toMatchObject({ hash: "0" });
  cache.add(blob("new", 1));
  const kept = [0, 1, 2, 999].filter((n) => cache.get(`${n}`) !== undefined);
  expect(kept).toEqual([0, 2, 999]);
  expect(cache.get("new")).toMatchObject({ hash: "new" });
});

test("of large blobs those used last stay, up to 16 MiB, and a larger one is not kept", () => {
  const cache = new VerifiedBlobs();
  const mebibyte = 1_048_576;
  cache.add(blob("too large", 16 * mebibyte + 1));
  expect(cache.get("too large")).toBeUndefined();
  for (const hash of ["a", "b"]) cache.add(blob(hash, 8 * mebibyte));
  cache.add(blob("c", 1));
  expect(["a", "b", "c"].filter((hash) => cache.get(hash) !== undefined)).toEqual(["b", "c"]);
});
