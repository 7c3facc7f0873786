import { describe, expect, test } from "vitest";
import { integer, strict, text, rollbackWith, row, rows, run, sql } from "../../../src/kernel.ts";
import { artifacts, blobs } from "../../../src/blobs.ts";
import { removeUnused } from "../../../src/stores/blob-roots.ts";
import { putBlobs } from "../../../src/stores/blob/blob-row.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { blobOf, bytesOf, dump, hashes, storedTexts } from "./owners.ts";
import { inFixture, putOrphans } from "../maintenance/collecting.ts";
import type { InFixture } from "../maintenance/collecting.ts";

export function blobKeepsSuite(backend: Backend): void {
  const fixture = inFixture(backend);
  describe("a blob that the app keeps", () => {
    keepingTests(fixture);
    composingTests(fixture);
  });
  describe("the list of what the app keeps", () => {
    listTests(fixture);
  });
}

function keepingTests(fixture: InFixture): void {
  test(
    "stays when blobs are collected, until its last owner releases it",
    fixture(async ({ database, keeper }) => {
      const store = blobs(database);
      await putOrphans(database, "abc", "one");
      expect(await store.keep(hashes.abc, "invoice/7")).toBe(true);
      expect(await store.keep(hashes.abc, "invoice/8")).toBe(true);
      expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 1 });
      expect(await store.release(hashes.abc, "invoice/7")).toBe(true);
      expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 0 });
      expect(await store.release(hashes.abc, "invoice/8")).toBe(true);
      expect(await storedTexts(database)).toEqual(["abc"]);
      expect(await keeper.collect()).toMatchObject({ kept: 0, deleted: 1 });
      expect(await store.get(hashes.abc)).toBeUndefined();
    }),
  );

  test(
    "is kept once by each owner, and releasing what is not kept changes nothing",
    fixture(async ({ database, clock }) => {
      const store = blobs(database);
      await putOrphans(database, "abc");
      await store.keep(hashes.abc, "a");
      const before = await dump(database);
      clock.advance(5);
      expect(await store.keep(hashes.abc, "a")).toBe(false);
      expect(await store.release(hashes.abc, "b")).toBe(false);
      expect(await store.release(hashes.one, "a")).toBe(false);
      expect(await dump(database)).toEqual(before);
      expect(await store.release(hashes.abc, "a")).toBe(true);
      expect(await store.release(hashes.abc, "a")).toBe(false);
    }),
  );

  test(
    "stays when somebody who has equal bytes removes their own",
    fixture(async ({ database, clock }) => {
      await artifacts(database).put("n", "a", bytesOf("abc"));
      await blobs(database).keep(hashes.abc, "a");
      await artifacts(database).remove("n", "a");
      const removal = { hashes: [hashes.abc], putUntil: clock.now() };
      const remove = (): Promise<unknown> =>
        database.write("remove", () => removeUnused(removal), {
          isolation: "readCommitted",
        });
      expect(await remove()).toEqual({ blobs: 0, bytes: 0 });
      await blobs(database).release(hashes.abc, "a");
      expect(await remove()).toEqual({ blobs: 1, bytes: 3 });
    }),
  );

  test(
    "must be there, and nothing is written for one that is not",
    fixture(async ({ database }) => {
      const before = await dump(database);
      expect(await rejection(blobs(database).keep(hashes.abc, "a"))).toMatchObject({
        code: "BLOB_NOT_FOUND",
        details: { hash: hashes.abc },
      });
      expect(await dump(database)).toEqual(before);
    }),
  );

  test(
    "has an owner that is a text of 1 to 512 characters which both databases can store",
    fixture(async ({ database }) => {
      const store = blobs(database);
      await putOrphans(database, "abc");
      for (const owner of ["", "x".repeat(513), "a\0b", "\uD800"])
        for (const name of ["keep", "release"] as const)
          expect(await rejection(store[name](hashes.abc, owner))).toMatchObject({
            code: "NAME_INVALID",
          });
      const odd = `${"x".repeat(500)}'; "ß🦊%_`;
      expect(await store.keep(hashes.abc, odd)).toBe(true);
      expect(await store.keeps({ owner: odd })).toMatchObject({
        items: [{ hash: hashes.abc, owner: odd }],
      });
      expect(
        await rejection(store.keep(hashes.abc, "a", { wait: 5 } as { timeout?: number })),
      ).toMatchObject({ code: "OPTION_INVALID" });
    }),
  );

  test(
    "that is gone stops a collection, which names the owner",
    fixture(async ({ database, keeper }) => {
      await putOrphans(database, "abc", "one");
      await blobs(database).keep(hashes.abc, "invoice/7");
      await database.write("damage", () =>
        run(sql`DELETE FROM holdfast_blob WHERE hash = ${hashes.abc}`),
      );
      expect(await keeper.collect()).toMatchObject({
        deleted: 0,
        refused: {
          table: "holdfast_blob_keep",
          key: `${hashes.abc}/invoice/7`,
        },
      });
    }),
  );
}

function composingTests(fixture: InFixture): void {
  test(
    "is put, kept and referred to by a row of the app in one transaction, or not at all",
    fixture(async ({ database, keeper }) => {
      const store = blobs(database);
      await database.write("invoices", () =>
        run(sql`
          CREATE TABLE app_invoice (id ${integer} PRIMARY KEY, pdf ${text} NOT NULL) ${strict}`),
      );
      const put = store.put.prepare(bytesOf("abc"));
      const keep = store.keep.prepare(hashes.abc, "invoice/7");
      const file = (isFiled: boolean): Promise<boolean> =>
        database.write("file", function* () {
          const { hash } = yield* put();
          const isNew = yield* keep();
          yield* run(sql`INSERT INTO app_invoice (id, pdf) VALUES (7, ${hash})`);
          return isFiled ? isNew : yield* rollbackWith(false);
        });
      await file(false);
      expect((await store.keeps()).items).toEqual([]);
      expect(await file(true)).toBe(true);
      expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 0 });
      await database.write("delete", function* () {
        const { pdf } = (yield* row<{ readonly pdf: string }>(
          sql`DELETE FROM app_invoice WHERE id = 7 RETURNING pdf`,
        )) ?? { pdf: "" };
        yield* store.release.prepare(pdf, "invoice/7")();
      });
      expect(await keeper.collect()).toMatchObject({ kept: 0, deleted: 1 });
      await database.write("drop", () => run(sql`DROP TABLE app_invoice`));
    }),
  );

  test(
    "that only a row of the app refers to, without a keep, is collected",
    fixture(async ({ database, keeper }) => {
      await database.write("notes", function* () {
        yield* run(sql`CREATE TABLE app_note (blob ${text} NOT NULL) ${strict}`);
        yield* putBlobs([blobOf(database, "abc", database.clock)]);
        yield* run(sql`INSERT INTO app_note (blob) VALUES (${hashes.abc})`);
      });
      expect(await keeper.collect()).toMatchObject({ kept: 0, deleted: 1 });
      const left = await database.read("left", () => rows(sql`SELECT blob FROM app_note`));
      expect(left).toEqual([{ blob: hashes.abc }]);
      await database.write("drop", () => run(sql`DROP TABLE app_note`));
    }),
  );
}

function listTests(fixture: InFixture): void {
  test(
    "goes page by page, also of one owner and of one blob",
    fixture(async ({ database, clock }) => {
      const store = blobs(database);
      await putOrphans(database, "abc", "one", "two");
      for (const owner of ["a", "b"])
        for (const hash of [hashes.abc, hashes.one]) {
          clock.advance(1);
          await store.keep(hash, owner);
        }
      const first = await store.keeps({ limit: 3 });
      expect(first).toMatchObject({
        items: [
          { hash: hashes.one, owner: "a", keptAt: 1_000_002 },
          { hash: hashes.one, owner: "b", keptAt: 1_000_004 },
          { hash: hashes.abc, owner: "a", keptAt: 1_000_001 },
        ],
        damaged: [],
      });
      const after = first.next ?? "";
      expect(await store.keeps({ limit: 3, after })).toEqual({
        items: [{ hash: hashes.abc, owner: "b", keptAt: 1_000_003 }],
        damaged: [],
        next: undefined,
      });
      const ofB = await store.keeps({ owner: "b", limit: 1 });
      expect(ofB.items).toMatchObject([{ hash: hashes.one, owner: "b" }]);
      const rest = await store.keeps({ owner: "b", after: ofB.next ?? "" });
      expect(rest.items).toMatchObject([{ hash: hashes.abc, owner: "b" }]);
      const keepers = await store.keeps({ hash: hashes.abc });
      expect(keepers.items.map(({ owner }) => owner)).toEqual(["a", "b"]);
      expect((await store.keeps({ hash: hashes.two })).items).toEqual([]);
      expect(await rejection(store.keeps({ owner: "a", after }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
    }),
  );

  test(
    "names rows that nobody can have written",
    fixture(async ({ database }) => {
      await database.write("damage", () =>
        run(sql`
          INSERT INTO holdfast_blob_keep (hash, owner, kept_at) VALUES ('no hash', 'a', 1)`),
      );
      expect(await blobs(database).keeps()).toEqual({
        items: [],
        damaged: [{ table: "holdfast_blob_keep", key: "no hash/a" }],
        next: undefined,
      });
    }),
  );
}
