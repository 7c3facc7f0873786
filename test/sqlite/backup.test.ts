import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { describe, expect, test } from "vitest";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { Progress } from "../../src/backends/sqlite/heavy/heavy-call.ts";
import { holdLockFile } from "../../src/backends/sqlite/lock-file.js";
import { rejection } from "../conformance/backend.ts";
import { addNote, noteCount, noteHalves } from "../conformance/notes.ts";
import { fill, heavyReads, remains, withHeavyReads } from "./heavy.ts";
import { driverName } from "./place.ts";

describe("a backup", () => {
  test("opens as a database with our tables and the app's, for its owner alone", () =>
    withHeavyReads(async ({ heavy, folder, database }) => {
      await database.write(addNote, { id: "a" });
      const { bytes } = await heavy.backup(folder.file("copy.db"));
      expect(statSync(folder.file("copy.db")).size).toBe(bytes);
      expect(statSync(folder.file("copy.db")).mode & 0o777).toBe(0o600);
      expect(remains(folder)).toEqual([]);
      const copy = await folder.open({}, {}, "copy.db");
      expect(await noteHalves(copy)).toBe("a1 a2");
      await copy.write(addNote, { id: "b" });
      expect(await noteCount(database)).toBe(2);
    }));

  test("reports bytes that only grow and end at the total", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 20_000);
      const seen: Progress[] = [];
      const { bytes } = await heavy.backup(folder.file("copy.db"), {
        onProgress: (progress) => seen.push(progress),
      });
      const done = seen.map((progress) => progress.done);
      expect(done).toEqual(done.toSorted((a, b) => a - b));
      expect(seen.every((progress) => progress.done <= progress.total)).toBe(true);
      expect(seen.at(-1)).toEqual({ done: bytes, total: bytes });
    }));

  test("makes the folders it needs, for their owner alone", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      await heavy.backup(folder.file("new/deep/copy.db"));
      expect(statSync(folder.file("new/deep")).mode & 0o777).toBe(0o700);
      expect(readdirSync(folder.file("new/deep"))).toEqual(["copy.db"]);
    }));

  test("follows another that is under way", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      const names = ["one.db", "two.db", "three.db"];
      await Promise.all(names.map((name) => heavy.backup(folder.file(name))));
      for (const name of names) expect(statSync(folder.file(name)).size).toBeGreaterThan(0);
    }));

  test("removes what a killed one to the same name left, and nothing else", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      const left = [
        "copy.db.tmp-0123456789abcdef",
        "copy.db.tmp-0123456789abcdef-journal",
        "copy.db.tmp-lock",
      ];
      const others = ["copy.db.tmp-mine", "other.db.tmp-0123456789abcdef"];
      for (const name of [...left, ...others]) writeFileSync(folder.file(name), "");
      await heavy.backup(folder.file("copy.db"));
      expect(remains(folder)).toEqual(others);
    }));
});

describe("a backup is refused", () => {
  test.each(["", ":memory:", "file:copy.db", "a\0b"])("to the path %j", (path) =>
    withHeavyReads(async ({ heavy }) => {
      expect(await rejection(heavy.backup(path))).toMatchObject({
        code: "TARGET_INVALID",
      });
    }),
  );

  test("to the database itself, by whatever name, and to its log", () =>
    withHeavyReads(async ({ heavy, folder, database }) => {
      linkSync(folder.file(), folder.file("hard.db"));
      symlinkSync(folder.file(), folder.file("soft.db"));
      mkdirSync(folder.file("folder"));
      for (const name of [
        "app.db",
        "app.db-wal",
        "app.db-shm",
        "app.db-journal",
        "folder/../app.db",
        "hard.db",
        "soft.db",
        "folder",
      ])
        expect(await rejection(heavy.backup(folder.file(name)))).toMatchObject({
          code: "TARGET_INVALID",
        });
      await database.write(addNote, { id: "a" });
      expect(await noteHalves(database)).toBe("a1 a2");
    }));

  test("where a file is, which stays as it was", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      writeFileSync(folder.file("copy.db"), "precious");
      symlinkSync(folder.file("nowhere"), folder.file("dangling.db"));
      for (const name of ["copy.db", "dangling.db"])
        expect(await rejection(heavy.backup(folder.file(name)))).toMatchObject({
          code: "TARGET_EXISTS",
          retryable: false,
        });
      expect(readFileSync(folder.file("copy.db"), "utf8")).toBe("precious");
      expect(existsSync(folder.file("nowhere"))).toBe(false);
    }));

  test("where an old log waits for a database of that name", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      writeFileSync(folder.file("copy.db-wal"), "old frames");
      const error = await rejection(heavy.backup(folder.file("copy.db")));
      expect(error).toMatchObject({ code: "TARGET_EXISTS" });
      expect(error.message).toContain("copy.db-wal");
    }));

  test("when a file of that name appears while it is written", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 2_000);
      const onProgress = (): void => writeFileSync(folder.file("copy.db"), "precious");
      const error = await rejection(heavy.backup(folder.file("copy.db"), { onProgress }));
      expect(error).toMatchObject({ code: "TARGET_EXISTS" });
      expect(readFileSync(folder.file("copy.db"), "utf8")).toBe("precious");
      expect(remains(folder)).toEqual([]);
    }));

  test("while another one to the same name is under way, whose file stays", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      const driver = loadDriver(driverName);
      const lock = holdLockFile(folder.file("copy.db.tmp-lock"), (path) =>
        driver.open(path, { readOnly: false }),
      );
      const half = folder.file("copy.db.tmp-0123456789abcdef");
      writeFileSync(half, "half");
      expect(await rejection(heavy.backup(folder.file("copy.db")))).toMatchObject({
        code: "TARGET_BUSY",
        retryable: true,
      });
      expect(readFileSync(half, "utf8")).toBe("half");
      lock?.release();
      await heavy.backup(folder.file("copy.db"));
      expect(remains(folder)).toEqual([]);
    }));

  test("where a file is in the place of its folder", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      expect(await rejection(heavy.backup(folder.file("app.db/copy.db")))).toMatchObject({
        code: "TARGET_INVALID",
      });
    }));

  test("when no process can be started for it", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      const { execPath } = process;
      process.execPath = folder.file("no-such-program");
      const refused = rejection(heavy.backup(folder.file("copy.db")));
      const error = await refused.finally(() => (process.execPath = execPath));
      expect(error).toMatchObject({ code: "BACKUP_FAILED", retryable: true });
      await heavy.backup(folder.file("copy.db"));
      expect(remains(folder)).toEqual([]);
    }));
});

describe("a backup that is given up", () => {
  test.each([
    ["by its signal", "ABORTED"],
    ["by the listener of its progress", "OPTION_INVALID"],
  ])("%s leaves nothing, and the database works", (how, expected) =>
    withHeavyReads(async ({ heavy, folder, database }) => {
      fill(folder, 20_000);
      const abort = new AbortController();
      const error = await rejection(
        heavy.backup(folder.file("copy.db"), {
          signal: abort.signal,
          onProgress() {
            if (how !== "by its signal") throw new Error("enough");
            abort.abort();
          },
        }),
      );
      expect([error.message, (error as { code?: string }).code]).toContain(expected);
      expect(existsSync(folder.file("copy.db"))).toBe(false);
      expect(remains(folder)).toEqual([]);
      await database.write(addNote, { id: "after" });
      await heavy.backup(folder.file("copy.db"));
      const copy = await folder.open({}, {}, "copy.db");
      expect(await noteHalves(copy)).toBe("after1 after2");
    }),
  );

  test("by its timeout, or while it waits for another, leaves nothing", () =>
    withHeavyReads(async ({ heavy, folder }) => {
      fill(folder, 20_000);
      const first = heavy.backup(folder.file("first.db"));
      const waiting = rejection(heavy.backup(folder.file("second.db"), { timeout: 5 }));
      expect(await waiting).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      await first;
      const late = rejection(heavy.backup(folder.file("third.db"), { timeout: 5 }));
      expect(await late).toMatchObject({ code: "DEADLINE_EXCEEDED" });
      const found = readdirSync(folder.path).filter((name) => /second|third/.test(name));
      expect(found).toEqual([]);
    }));

  test("by close leaves nothing", () =>
    withHeavyReads(async ({ folder }) => {
      fill(folder, 20_000);
      const heavy = heavyReads(folder.file());
      let call: Promise<Error> | undefined;
      await new Promise<void>((begun) => {
        const onProgress = (): void => begun();
        call = rejection(heavy.backup(folder.file("copy.db"), { onProgress }));
      });
      await heavy.close();
      expect(await call).toMatchObject({ code: "DATABASE_CLOSED" });
      expect(remains(folder)).toEqual([]);
      expect(existsSync(folder.file("copy.db"))).toBe(false);
    }));
});
