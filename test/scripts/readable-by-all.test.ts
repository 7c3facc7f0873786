import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { copyForEveryone, everyoneCanRead, sharedTemporaryFolder } from "../readable-by-all.ts";

describe("what a process of another user can read", () => {
  test("is nothing below a folder that only its owner may enter, but the copies of it", () => {
    const folder = mkdtempSync(path.join(sharedTemporaryFolder(), "holdfast-test-"));
    try {
      const closed = path.join(folder, "closed");
      mkdirSync(path.join(closed, "package"), { recursive: true });
      const tool = path.join(closed, "package/tool");
      writeFileSync(tool, "");
      chmodSync(tool, 0o755);
      writeFileSync(path.join(closed, "package/secret"), "", { mode: 0o600 });
      chmodSync(closed, 0o700);
      chmodSync(folder, 0o755);
      expect(everyoneCanRead(tool)).toBe(false);

      const copy = path.join(folder, "copy");
      copyForEveryone(path.join(closed, "package"), copy);
      expect(everyoneCanRead(path.join(copy, "tool"))).toBe(true);
      expect(everyoneCanRead(path.join(copy, "secret"))).toBe(true);
      expect(statSync(path.join(copy, "tool")).mode & 0o111).toBe(0o111);
      expect(statSync(path.join(copy, "secret")).mode & 0o111).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
