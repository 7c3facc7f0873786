import { describe, expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { attachments, type SessionId } from "../../src/sessions.ts";
import { lockRow, row, rows, run, type Tx, sql, type Database } from "../../src/kernel.ts";
import { artifacts, blobs, maintenance } from "../../src/blobs.ts";
import { stampAttachments } from "../../src/stores/attachment/attachment-row.ts";
import { recordIntent } from "../../src/stores/attachment/manifest.ts";
import { sweepIntents } from "../../src/stores/attachment/sweep.ts";
import { removeUnused } from "../../src/stores/blob-roots.ts";
import { holdBlobs, lockedBlobs } from "../../src/stores/blob/blob-row.ts";
import { artifactRoots, removeLocked } from "../../src/stores/blob/root-row.ts";
import { lockedSession } from "../../src/stores/session-row.ts";
import {
  addComponent,
  blobOf,
  bytesOf,
  createSession,
  hashes,
  referFromComponent,
  storedTexts,
  textOf,
} from "../conformance/blob/owners.ts";
import { rejection } from "../conformance/backend.ts";
import { Barrier, blocked } from "./barrier.ts";
import { withPlace } from "./place.ts";
import type { Place } from "./place.ts";

interface Fixture {
  readonly database: Database;
  readonly place: Place;
  readonly barrier: Barrier;
  readonly session: number;
}

/** Two transactions at once are Postgres' own: on SQLite one waits for the other anyway. */
function fixture(body: (fixture: Fixture) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const database = await place.open({ clock: manualClock(1_000) });
      const session = await createSession(database, "s");
      const barrier = await Barrier.raise(place);
      await body({ database, place, barrier, session });
    });
}

describe("two commits that refer to the same blob", () => {
  test(
    "do not wait for each other",
    fixture(async ({ database, barrier, session }) => {
      await blobs(database).put(bytesOf("abc"));
      const blob = blobOf(database, "abc", database.clock);
      const first = database.write(
        "first",
        function* () {
          yield* addComponent(session, "a", blob);
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      await database.write("second", () => addComponent(session, "b", blob), {
        isolation: "readCommitted",
      });
      await barrier.lift();
      await first;
      expect(await storedTexts(database)).toEqual(["abc"]);
    }),
  );
});

describe("collecting a blob that nothing refers to yet", () => {
  const referring = [
    [
      "put again",
      (database: Database) => () => addComponent(0, "c", blobOf(database, "abc", database.clock)),
    ],
    [
      "held",
      () =>
        function* () {
          yield* holdBlobs([hashes.abc]);
          yield* referFromComponent(0, "c", hashes.abc);
        },
    ],
    ["kept", (database: Database) => () => blobs(database).keep.prepare(hashes.abc, "a")()],
  ] as const;

  test.each(referring)(
    "passes over one that is being %s by a transaction that has not ended",
    (_, refer) =>
      fixture(async ({ database, barrier }) => {
        await blobs(database).put(bytesOf("abc"));
        const committing = database.write(
          "commit",
          function* () {
            yield* refer(database)();
            yield* barrier.stop();
          },
          { isolation: "readCommitted" },
        );
        await barrier.stopped(1);
        const keeper = maintenance(database, { grace: 0 });
        expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 0 });
        await barrier.lift();
        await committing;
        expect(await keeper.collect()).toMatchObject({ kept: 1, deleted: 0 });
        expect(await storedTexts(database)).toEqual(["abc"]);
      })(),
  );

  test(
    "makes whoever puts it meanwhile wait, and then store it anew",
    fixture(async (around) => {
      const { database, barrier } = around;
      await blobs(database).put(bytesOf("abc"));
      const removing = database.write(
        "remove",
        function* () {
          const locked = yield* lockedBlobs([hashes.abc], "passOver");
          return yield* removeLocked(locked, 1_000, [
            {
              ...artifactRoots,
              *usedOf(wanted) {
                yield* barrier.stop();
                return yield* artifactRoots.usedOf(wanted);
              },
            },
          ]);
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const putting = artifacts(database).put("n", "a", bytesOf("abc"));
      await blocked(around);
      await barrier.lift();
      expect(await removing).toEqual({ blobs: 1, bytes: 3 });
      await putting;
      const found = await artifacts(database).load("n", "a");
      expect(textOf(found.content)).toBe("abc");
    }),
  );
});

describe("keeping a blob for an owner of the app", () => {
  test(
    "waits for a collection that removes it, and is then refused",
    fixture(async (around) => {
      const { database, barrier } = around;
      await blobs(database).put(bytesOf("abc"));
      const removing = database.write(
        "remove",
        function* () {
          const removed = yield* removeUnused({
            hashes: [hashes.abc],
            putUntil: 1_000,
          });
          yield* barrier.stop();
          return removed.blobs;
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const keeping = rejection(blobs(database).keep(hashes.abc, "a"));
      await blocked(around);
      await barrier.lift();
      expect(await removing).toBe(1);
      expect(await keeping).toMatchObject({ code: "BLOB_NOT_FOUND" });
      expect((await blobs(database).keeps()).items).toEqual([]);
    }),
  );

  test(
    "beside a collection succeeds for all and keeps it, or is refused for all and it is gone",
    fixture(async ({ database }) => {
      const store = blobs(database);
      for (let round = 0; round < 10; round += 1) {
        await store.put(bytesOf("abc"));
        const collecting = maintenance(database, { grace: 0 }).collect();
        const keeps = await Promise.allSettled(
          ["a", "a", "b"].map((owner) => store.keep(hashes.abc, owner)),
        );
        await collecting;
        const refusals = keeps.flatMap((keep) =>
          keep.status === "rejected" ? [keep.reason as unknown] : [],
        );
        for (const refusal of refusals) expect(refusal).toMatchObject({ code: "BLOB_NOT_FOUND" });
        const { items } = await store.keeps();
        const isThere = (await store.get(hashes.abc)) !== undefined;
        expect([items.length, isThere]).toEqual(refusals.length === 0 ? [2, true] : [0, false]);
        for (const { hash, owner } of items) await store.release(hash, owner);
      }
    }),
  );
});

describe("removing the blobs of two sessions at once", () => {
  test(
    "takes along what both had",
    fixture(async (around) => {
      const { database, barrier } = around;
      await database.write(
        "owners",
        function* () {
          for (const session of [1, 2])
            yield* addComponent(session, "c", blobOf(database, "abc", database.clock));
        },
        { isolation: "readCommitted" },
      );
      const leave = (session: number, end: () => Tx<void>): Promise<unknown> =>
        database.write(
          `leave ${session}`,
          function* () {
            yield* run(sql`
            DELETE FROM holdfast_session_component WHERE session = ${session}`);
            const removed = yield* removeUnused({
              hashes: [hashes.abc],
              putUntil: 1_000,
            });
            yield* end();
            return removed.blobs;
          },
          { isolation: "readCommitted" },
        );
      const first = leave(1, () => barrier.stop());
      await barrier.stopped(1);
      const second = leave(2, function* () {});
      await blocked(around);
      await barrier.lift();
      expect([await first, await second]).toEqual([0, 1]);
      expect(await storedTexts(database)).toEqual([]);
    }),
  );
});

describe("sweeping an attachment", () => {
  const s = { id: "s" };
  const text = { mediaType: "text/plain" };

  test(
    "[AX12] waits for whoever intends the same bytes, and then leaves them",
    fixture(async (around) => {
      const { database, barrier } = around;
      await createSession(database, "other");
      const store = attachments(database);
      await store.put(s, bytesOf("abc"), text);
      const intending = database.write(
        "intend",
        function* () {
          const intended = yield* recordIntent({
            session: { id: "other" as SessionId },
            id: hashes.abc,
            size: 3,
            description: text,
            at: 2_000,
            store: "database",
            name: "not needed",
          });
          yield* barrier.stop();
          return intended.stored !== undefined;
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const sweeping = store.sweep({ olderThan: 0 });
      await blocked(around);
      await barrier.lift();
      expect(await intending).toBe(true);
      expect(await sweeping).toEqual({ forgotten: 1, removed: 0, failed: [] });
      const kept = await store.get({ id: "other" }, hashes.abc);
      expect(textOf(kept.content)).toBe("abc");
    }),
  );

  test(
    "[AX12] makes whoever puts the same bytes wait, and then write them anew",
    fixture(async (around) => {
      const { database, barrier } = around;
      await createSession(database, "other");
      const store = attachments(database);
      await store.put(s, bytesOf("abc"), text);
      const sweeping = database.write(
        "sweep",
        function* () {
          const swept = yield* sweepIntents({ until: 1_000, limit: 10 });
          yield* barrier.stop();
          return swept.forgotten;
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const putting = store.put({ id: "other" }, bytesOf("abc"), text);
      await blocked(around);
      await barrier.lift();
      expect(await sweeping).toBe(1);
      await putting;
      await store.removeForgotten();
      const kept = await store.get({ id: "other" }, hashes.abc);
      expect(textOf(kept.content)).toBe("abc");
    }),
  );

  test(
    "[AX12] leaves an intent that came while it waited, and its copies, to the next sweep",
    fixture(async (around) => {
      const { database, barrier } = around;
      await createSession(database, "other");
      const store = attachments(database);
      await store.put(s, bytesOf("abc"), text);
      const holding = database.write(
        "hold",
        function* () {
          yield* row(sql`SELECT name FROM holdfast_attachment_copy ${lockRow}`);
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const sweeping = store.sweep({ olderThan: 0 });
      await blocked(around);
      await database.write(recordIntent, {
        session: { id: "other" as SessionId },
        id: hashes.abc,
        size: 3,
        description: text,
        at: 1_000,
        store: "elsewhere",
        name: "newer",
      });
      await barrier.lift();
      await holding;
      expect(await sweeping).toEqual({ forgotten: 1, removed: 0, failed: [] });
      const next = await store.sweep({ olderThan: 0 });
      expect(next).toEqual({ forgotten: 1, removed: 1, failed: [] });
      const left = await database.read("left", () =>
        rows(sql`SELECT name, state FROM holdfast_attachment_copy`),
      );
      expect(left).toEqual([{ name: "newer", state: "condemned" }]);
    }),
  );

  test(
    "[AX12] leaves an intent that a commit stamps meanwhile",
    fixture(async (around) => {
      const { database, barrier } = around;
      const store = attachments(database);
      await store.put(s, bytesOf("abc"), text);
      const committing = database.write(
        "commit",
        function* () {
          const root = yield* lockedSession({ id: "s" as SessionId });
          yield* stampAttachments(root, [hashes.abc], 1_000);
          yield* barrier.stop();
        },
        { isolation: "readCommitted" },
      );
      await barrier.stopped(1);
      const sweeping = store.sweep({ olderThan: 0 });
      await blocked(around);
      await barrier.lift();
      await committing;
      expect(await sweeping).toEqual({ forgotten: 0, removed: 0, failed: [] });
      expect(textOf((await store.get(s, hashes.abc)).content)).toBe("abc");
    }),
  );
});
