import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { makeFolders } from "./folders.ts";

const root = mkdtempSync(path.join(tmpdir(), "holdfast-folders-"));

afterAll(() => rmSync(root, { recursive: true }));

test("folders are made with those they are in, and the outermost new one is told", () => {
  const inner = path.join(root, "a/b/c");
  expect(makeFolders(inner, 0o700)).toBe(path.join(root, "a"));
  expect(statSync(inner).mode & 0o777).toBe(0o700);
  expect(makeFolders(inner)).toBeUndefined();
  expect(makeFolders(path.join(root, "a/d"))).toBe(path.join(root, "a/d"));
});

test("what cannot be made is refused", () => {
  const file = path.join(root, "file");
  writeFileSync(file, "");
  for (const folder of [file, path.join(file, "below"), "a\0b"])
    expect(() => makeFolders(folder)).toThrow(/EEXIST|ENOTDIR|null bytes/);
});

test.runIf(process.platform === "linux")(
  "a folder that denies what is made in it is refused, not asked for ever",
  () => {
    for (const folder of ["/proc/holdfast", "/proc/holdfast/below"])
      expect(() => makeFolders(folder)).toThrow("ENOENT");
  },
);
