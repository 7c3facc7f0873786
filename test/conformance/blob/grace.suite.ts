import { describe, expect, test } from "vitest";
import { rows, sql } from "../../../src/kernel.ts";
import { blobs, maintenance } from "../../../src/blobs.ts";
import { sessions } from "../../../src/sessions.ts";
import { holdBlobs } from "../../../src/stores/blob/blob-row.ts";
import type { Backend } from "../backend.ts";
import { rejection } from "../backend.ts";
import { bytesOf, storedTexts } from "./owners.ts";
import { inFixture } from "../session/fixture.ts";
import type { HeldSession, InFixture } from "../session/fixture.ts";

const hour = 3_600_000;

/** Commits the one part of a checkpoint. Its blob holds the JSON of the value. */
function save({ commit }: HeldSession, turn: string, value: string | null): Promise<unknown> {
  const part = value === null ? null : { version: 1, value };
  return commit({ turn, components: { c: part } });
}

export function blobGraceSuite(backend: Backend): void {
  const fixture: InFixture = (body) => inFixture(backend, body);
  describe("a blob that somebody has put and not yet referred to", () => {
    keptTests(fixture);
    againTests(fixture);
  });
}

function keptTests(fixture: InFixture): void {
  const leaving = [
    [
      "a commit that replaces equal bytes",
      (_: unknown, held: HeldSession) => save(held, "t2", "w"),
    ],
    ["a commit that removes them", (_: unknown, held: HeldSession) => save(held, "t2", null)],
    [
      "deleting the session that has them",
      (store: ReturnType<typeof sessions>) => store.delete("s"),
    ],
    ["erasing it", (store: ReturnType<typeof sessions>) => store.erase("s")],
  ] as const;

  test.each(leaving)("is left alone by %s, and can be referred to", (_, leave) =>
    fixture(async ({ database, store, held }) => {
      const session = await held("s");
      await save(session, "t1", "v");
      const { hash } = await blobs(database).put(bytesOf('"v"'));
      await leave(store, session);
      expect(await storedTexts(database)).toContain('"v"');
      await database.write("refer", () => holdBlobs([hash]));
    })(),
  );

  test.each(leaving)("goes with %s once its grace is over", (_, leave) =>
    fixture(async ({ database, clock, store, held }) => {
      const session = await held("s");
      await save(session, "t1", "v");
      const { hash } = await blobs(database).put(bytesOf('"v"'));
      clock.advance(hour);
      await leave(store, session);
      expect(await storedTexts(database)).not.toContain('"v"');
      expect(await rejection(database.write("refer", () => holdBlobs([hash])))).toMatchObject({
        code: "BLOB_NOT_FOUND",
      });
      const puts = await database.read("puts", () => rows(sql`SELECT hash FROM holdfast_blob_put`));
      expect(puts).toEqual([]);
    })(),
  );

  test(
    "is left alone for as long as the sessions were told",
    fixture(async ({ database, clock, held }) => {
      const { handle, fence } = await held("s");
      const patient = sessions(database, { grace: "2h" });
      const commit = (turn: string, value: string): Promise<unknown> =>
        patient.commit(handle, {
          turn,
          fence,
          components: { c: { version: 1, value } },
        });
      await commit("t1", "v");
      await blobs(database).put(bytesOf('"v"'));
      clock.advance(2 * hour - 1);
      await commit("t2", "w");
      expect(await storedTexts(database)).toContain('"v"');
      await commit("t3", "v");
      clock.advance(1);
      await commit("t4", "w");
      expect(await storedTexts(database)).not.toContain('"v"');
    }),
  );
}

function againTests(fixture: InFixture): void {
  test(
    "does not have its bytes written again when it is put again",
    fixture(async ({ database, clock }) => {
      const all = blobs(database);
      const { hash } = await all.put(bytesOf("abc"));
      clock.advance(1_000);
      await all.put(bytesOf("abc"));
      const tables = await database.read("tables", function* () {
        return {
          blobs: yield* rows(sql`SELECT hash, put_at FROM holdfast_blob`),
          puts: yield* rows(sql`SELECT hash, at FROM holdfast_blob_put`),
        };
      });
      expect(tables).toEqual({
        blobs: [{ hash, put_at: 1_000 }],
        puts: [{ hash, at: 2_000 }],
      });
    }),
  );

  test(
    "is collected when its grace is over, together with the mark of it",
    fixture(async ({ database, clock }) => {
      await blobs(database).put(bytesOf("abc"));
      const keeper = maintenance(database);
      clock.advance(hour - 1);
      expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 0 });
      clock.advance(1);
      expect(await keeper.collect()).toMatchObject({ kept: 0, deleted: 1 });
      const puts = await database.read("puts", () => rows(sql`SELECT hash FROM holdfast_blob_put`));
      expect(puts).toEqual([]);
    }),
  );
}
