import { existsSync, renameSync, unlinkSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { row, run, type Tx, sql } from "../../src/kernel.ts";
import { logHint } from "../../src/backends/sqlite/write/failures.ts";
import { rejection } from "../conformance/backend.ts";
import { addNote, createNoteTable, noteCount, noteHalves } from "../conformance/notes.ts";
import { unhurried, withFolder } from "./place.ts";
import type { Folder } from "./place.ts";
import { schemaNumber } from "../fixtures/schema.ts";

describe("a full disk", () => {
  const limit = { pragmas: ["max_page_count = 1000"] };

  test("rejects the batch as retryable, keeps the database open, and smaller writes go on", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, limit);
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "small" });
      const big = "x".repeat(8_000_000);
      const error = await rejection(database.write(addNote, { id: "big", body: big }));
      expect(error).toMatchObject({ code: "DISK_FULL", retryable: true });
      expect(await noteHalves(database)).toBe("small1 small2");
      await database.write(addNote, { id: "tiny" });
      expect(await noteHalves(database)).toBe("small1 small2 tiny1 tiny2");
    }));

  test("leaves no trace of an operation that catches the error", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, limit);
      await database.write("tables", createNoteTable);
      const big = "x".repeat(8_000_000);
      const error = await rejection(
        database.write("catches", function* (): Tx<void> {
          yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('first', 1, NULL)`);
          try {
            yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('big', 1, ${big})`);
          } catch {
            yield* run(sql`INSERT INTO app_note (id, half, body) VALUES ('second', 1, NULL)`);
          }
        }),
      );
      expect(error).toMatchObject({ code: "DISK_FULL" });
      expect(await noteCount(database)).toBe(0);
    }));
});

test("a disk that the log fills says which option keeps the log shorter, and a larger one does not", () => {
  const mebibyte = 1_048_576;
  expect(logHint({ logBytes: 14 * mebibyte, freeBytes: 0 })).toBe(
    " The write-ahead log takes 14.0 MiB of the disk: once some space is free, open the database with a smaller `limits.walBytes` (openHoldfast takes it in `sqlite`), so that the log is restarted sooner.",
  );
  expect(logHint({ logBytes: mebibyte - 1, freeBytes: 0 })).toBe("");
  expect(logHint({ logBytes: 14 * mebibyte, freeBytes: 14 * mebibyte })).toBe("");
});

describe("a failing flush", () => {
  /** The opening of a new file flushes once, so the n-th flush after it is made to fail. */
  const failing = (flushes: number) => ({
    flush: { place: "thread" as const, faults: { failAfter: 1 + flushes } },
  });

  test("gives an unknown outcome, stops all writes, and repeating the call after reopening is safe", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, failing(2));
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      const heard: unknown[] = [];
      database.subscribe((hint) => heard.push(hint));
      const unknown = await rejection(database.write(addNote, { id: "b" }));
      expect(unknown).toMatchObject({
        code: "OUTCOME_UNKNOWN",
        retryable: true,
      });
      // Nothing of the change itself; only that everybody should look.
      expect(heard).toEqual([{ kind: "unknown" }]);
      const stopped = await rejection(database.write(addNote, { id: "c" }));
      expect(stopped).toMatchObject({
        code: "WRITES_STOPPED",
        retryable: false,
      });
      expect(stopped.message).toContain("reopen");
      await database.close();
      await repeatAndLook(folder);
    }));

  test("rejects the calls that wait behind it", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { batchCalls: 10 } }, failing(1));
      await database.write("tables", createNoteTable);
      const settled = await Promise.allSettled(
        Array.from({ length: 100 }, (_, index) => database.write(addNote, { id: `n${index}` })),
      );
      const codes = new Set(
        settled.map((result) =>
          result.status === "rejected" ? (result.reason as { code: string }).code : "fulfilled",
        ),
      );
      expect(codes).toEqual(new Set(["OUTCOME_UNKNOWN", "WRITES_STOPPED"]));
    }));

  test("never lets a read go that saw the commit which was not flushed", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        {},
        { flush: { place: "thread", faults: { delayMs: 150, failAfter: 3 } } },
      );
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      const before = database.stats().commits;
      const write = rejection(database.write(addNote, { id: "b" }));
      // Until the batch has committed; then its flush is under way.
      while (database.stats().commits === before) await turn();
      const read = rejection(noteHalves(database));
      expect(await write).toMatchObject({ code: "OUTCOME_UNKNOWN" });
      expect(await read).toMatchObject({ code: "FLUSH_FAILED" });
    }));

  test("is what a removed log is taken for", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      unlinkSync(`${folder.file()}-wal`);
      const error = await rejection(database.write(addNote, { id: "a" }));
      expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
      expect((error.cause as Error).message).toContain("removed or replaced");
      expect(await rejection(database.write(addNote, { id: "b" }))).toMatchObject({
        code: "WRITES_STOPPED",
      });
    }));

  test("is what a moved database file is taken for", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      renameSync(folder.file(), folder.file("moved.db"));
      const error = await rejection(database.write(addNote, { id: "a" }));
      expect(error).toMatchObject({ code: "OUTCOME_UNKNOWN" });
      expect((error.cause as Error).message).toContain("moved, removed");
      expect(await rejection(database.write(addNote, { id: "b" }))).toMatchObject({
        code: "WRITES_STOPPED",
      });
    }));

  test.each([
    ["alone", [""]],
    ["with all that belongs to it", ["", "-wal", "-shm"]],
  ])("is what a deleted database file is taken for, %s", (_, suffixes) =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: unhurried });
      await database.write("tables", createNoteTable);
      await database.write(addNote, { id: "a" });
      for (const suffix of suffixes) unlinkSync(folder.file() + suffix);
      const settled = await Promise.allSettled(
        ["b", "c"].map((id) => database.write(addNote, { id })),
      );
      for (const result of settled)
        expect(result).toMatchObject({
          status: "rejected",
          reason: { code: "OUTCOME_UNKNOWN", retryable: true },
        });
      const stopped = await rejection(database.write(addNote, { id: "d" }));
      expect(stopped).toMatchObject({ code: "WRITES_STOPPED" });
      expect(stopped.message).toContain("reopen");
      // Nobody is told that a new, empty file were the old one.
      await database.close();
      expect(existsSync(folder.file())).toBe(false);
    }),
  );

  test("in line fails the call just the same", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        {},
        { flush: { place: "inline", faults: { failAfter: 1 } } },
      );
      await database.write("tables", createNoteTable);
      expect(await rejection(database.write(addNote, { id: "a" }))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      expect(await rejection(database.write(addNote, { id: "b" }))).toMatchObject({
        code: "WRITES_STOPPED",
      });
    }));
});

describe("a slow flush", () => {
  test("holds back the acknowledgement, not the event loop", () =>
    withFolder(async (folder) => {
      const database = await folder.open({}, { flush: { faults: { delayMs: 60 } } });
      await database.write("tables", createNoteTable);
      const before = database.stats();
      let flushes = 0;
      const written = database.write(addNote, { id: "a" }).then(() => {
        flushes = database.stats().flushes - before.flushes;
      });
      // Rounds of the event loop between the commit and the acknowledgement.
      let rounds = 0;
      for (; flushes === 0; await turn())
        if (database.stats().commits > before.commits) rounds += 1;
      await written;
      expect(flushes).toBe(1);
      expect(rounds).toBeGreaterThan(0);
    }));

  test("is met by larger batches: what gathers meanwhile shares the next one", () =>
    withFolder(async (folder) => {
      const database = await folder.open(
        { limits: unhurried },
        { flush: { faults: { delayMs: 40 } } },
      );
      await database.write("tables", createNoteTable);
      const before = database.stats().commits;
      const calls = [database.write(addNote, { id: "first" })];
      // Until the first has committed; then its flush is under way.
      while (database.stats().commits === before) await turn();
      for (let index = 0; index < 30; index += 1)
        calls.push(database.write(addNote, { id: `n${index}` }));
      await Promise.all(calls);
      expect(database.stats().commits - before).toBe(2);
    }));
});

describe("a schema that moves on", () => {
  test("stops writes once another process has migrated the file", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      folder.shell([
        `INSERT INTO holdfast_migration (number, name, checksum, schema_hash, applied_at) VALUES (${schemaNumber + 1}, 'next', 'x', 'x', 0)`,
      ]);
      const error = await rejection(database.write(addNote, { id: "a" }));
      expect(error).toMatchObject({
        code: "SCHEMA_NEWER",
        details: { found: schemaNumber + 1, expected: schemaNumber },
      });
      expect(await rejection(database.write(addNote, { id: "b" }))).toMatchObject({
        code: "SCHEMA_NEWER",
      });
      expect(await noteCount(database)).toBe(0);
    }));
});

describe("a read", () => {
  test("of a snapshot known to be durable needs no flush; after a foreign commit it causes one", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const before = database.stats().flushes;
      for (let index = 0; index < 10; index += 1) await noteCount(database);
      expect(database.stats().flushes).toBe(before);
      folder.shell(["INSERT INTO app_note (id, half, body) VALUES ('shell', 1, NULL)"]);
      expect(await noteCount(database)).toBe(1);
      expect(database.stats().flushes).toBe(before + 1);
      await noteCount(database);
      expect(database.stats().flushes).toBe(before + 1);
    }));

  test("that keeps its snapshot too long is ended, and says how to do it", () =>
    withFolder(async (folder) => {
      const database = await folder.open({ limits: { readMs: 1 } });
      await database.write("tables", createNoteTable);
      const error = await rejection(
        database.read("slow", function* () {
          yield* row(sql`SELECT 1 AS one`);
          const until = performance.now() + 5;
          while (performance.now() < until);
          return yield* row(sql`SELECT 2 AS two`);
        }),
      );
      expect(error).toMatchObject({ code: "READ_TOO_LONG" });
      expect(error.message).toContain("pages");
      expect(await noteCount(database)).toBe(0);
    }));

  test("is one snapshot", () =>
    withFolder(async (folder) => {
      const database = await folder.open();
      await database.write("tables", createNoteTable);
      const counts = await database.read("twice", function* () {
        const first = yield* row<{ n: number }>(sql`SELECT count(*) AS n FROM app_note`);
        folder.shell(["INSERT INTO app_note (id, half, body) VALUES ('between', 1, NULL)"]);
        const second = yield* row<{ n: number }>(sql`SELECT count(*) AS n FROM app_note`);
        return [first?.n, second?.n];
      });
      expect(counts).toEqual([0, 0]);
      expect(await noteCount(database)).toBe(1);
    }));
});

/** A round of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function repeatAndLook(folder: Folder): Promise<void> {
  const reopened = await folder.open();
  // Whether b survived is unknown; repeating the call with its key settles it.
  await reopened
    .write(addNote, { id: "b" })
    .catch((error: { code: string }) => expect(error.code).toBe("CONSTRAINT_VIOLATED"));
  await reopened.write(addNote, { id: "c" });
  expect(await noteHalves(reopened)).toBe("a1 a2 b1 b2 c1 c2");
}
