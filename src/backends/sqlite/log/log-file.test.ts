import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadDriver } from "../drivers/drivers.ts";
import type { RawConnection } from "../drivers/drivers.ts";
import { findCut, loggedPages, readLogHeader } from "./log-file.js";

const frameBytes = 4_096 + 24;

describe("a log that SQLite wrote", () => {
  let folder: string;
  let connection: RawConnection;
  let fd: number;

  /** Ten transactions of one frame each: every one changes one row of the same page. */
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "holdfast-log-"));
    connection = loadDriver(undefined).open(join(folder, "a.db"), {
      readOnly: false,
    });
    connection.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0");
    connection.exec("CREATE TABLE t (n INTEGER); INSERT INTO t VALUES (0)");
    connection.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
    for (let n = 1; n <= 10; n += 1) connection.exec(`UPDATE t SET n = ${n}`);
    copy();
  });

  afterEach(() => {
    closeSync(fd);
    connection.close();
    rmSync(folder, { recursive: true });
  });

  /** Copies the log, so that each attempt damages only the copy. */
  function copy(): void {
    copyFileSync(join(folder, "a.db-wal"), join(folder, "copy"));
    fd = openSync(join(folder, "copy"), "r+");
  }

  function flip(position: number): void {
    const byte = Buffer.alloc(1);
    readSync(fd, byte, 0, 1, position);
    writeSync(fd, Buffer.from([byte.readUInt8(0) ^ 1]), 0, 1, position);
  }

  /** The offset of a byte in a frame. Frames count from 1. */
  const inFrame = (frame: number, offset: number): number => 32 + (frame - 1) * frameBytes + offset;

  test("has a header that proves itself", () => {
    expect(readLogHeader(fd)).toMatchObject({
      pageBytes: 4_096,
      frameBytes,
      isValid: true,
    });
    flip(17);
    expect(readLogHeader(fd)).toMatchObject({ isValid: false });
    flip(0);
    expect(readLogHeader(fd)).toBeUndefined();
    ftruncateSync(fd, 31);
    expect(readLogHeader(fd)).toBeUndefined();
  });

  test("is not cut while it is whole", () => {
    expect(findCut(fd)).toBeUndefined();
  });

  test.each<[string, number]>([
    ["page", 500],
    ["salt", 9],
    ["page number", 3],
    ["commit mark", 7],
  ])("is cut by a flipped bit in the %s of a frame", (_, offset) => {
    flip(inFrame(4, offset));
    expect(findCut(fd)).toEqual({ kept: 3, bad: 4, frames: 7, commits: 6 });
  });

  test("is cut by a flipped bit in a checksum, which the next frame builds on", () => {
    flip(inFrame(4, 17));
    expect(findCut(fd)).toEqual({ kept: 3, bad: 4, frames: 7, commits: 5 });
  });

  test("is cut by a damaged header, behind which nothing is kept", () => {
    flip(17);
    expect(findCut(fd)).toEqual({ kept: 0, bad: 1, frames: 10, commits: 10 });
  });

  test("is not cut by a damaged last frame: no transaction lies behind it", () => {
    flip(inFrame(10, 500));
    expect(findCut(fd)).toBeUndefined();
  });

  test("is not cut by an end in the middle of a frame", () => {
    ftruncateSync(fd, inFrame(10, 500));
    expect(findCut(fd)).toBeUndefined();
  });

  test("is not cut by the frames of an earlier generation behind the newest one", () => {
    connection.prepare("PRAGMA wal_checkpoint(RESTART)").get();
    connection.exec("UPDATE t SET n = 11");
    closeSync(fd);
    copy();
    expect(findCut(fd)).toBeUndefined();
    expect(loggedPages(fd)).toMatchObject({
      pages: new Set([2]),
      databasePages: 2,
    });
  });

  test("is not cut by the remains of a transaction that spilled and was rolled back", () => {
    connection.exec("PRAGMA cache_size = 1; CREATE TABLE big (x BLOB)");
    connection.exec("BEGIN");
    for (let n = 0; n < 50; n += 1) connection.exec("INSERT INTO big VALUES (zeroblob(3000))");
    connection.exec("ROLLBACK; UPDATE t SET n = 12");
    closeSync(fd);
    copy();
    expect(findCut(fd)).toBeUndefined();
  });
});
