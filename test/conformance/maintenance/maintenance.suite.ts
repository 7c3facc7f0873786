import { describe, expect, test } from "vitest";
import { run, sql, type Statement } from "../../../src/kernel.ts";
import { artifacts, maintenance } from "../../../src/blobs.ts";
import { attachments, leases, sessions } from "../../../src/sessions.ts";
import { removeUnused } from "../../../src/stores/blob-roots.ts";
import type { Backend } from "../backend.ts";
import {
  addComponent,
  addFrame,
  blobOf,
  bytesOf,
  createSession,
  dump,
  hashes,
  referFromComponent,
  storedTexts,
} from "../blob/owners.ts";
import { inFixture, putOrphans } from "./collecting.ts";
import type { InFixture } from "./collecting.ts";
import { holding, said } from "../session/fixture.ts";

export function maintenanceSuite(backend: Backend): void {
  const fixture = inFixture(backend);

  describe("collecting blobs over a root that cannot be believed", () => {
    doubtTests(fixture);
  });
  describe("collecting blobs", () => {
    keepingTests(fixture);
  });
  describe("removing the blobs of a deleted session", () => {
    removalTests(fixture);
  });
  describe("the size report", () => {
    sizeTests(fixture);
  });
}

function doubtTests(fixture: InFixture): void {
  const nothing = {
    examined: 0,
    kept: 0,
    deleted: 0,
    deletedBytes: 0,
    forgottenSourceKeys: 0,
  };

  const doubt = (
    how: string,
    damage: Statement,
    refused: { readonly table: string; readonly key: (n: number) => string },
  ) =>
    test(
      `[A51] ${how}: nothing is deleted, and the row is named`,
      fixture(async ({ database, keeper }) => {
        const session = await createSession(database, "s");
        const clock = database.clock;
        await database.write("owners", function* () {
          yield* addComponent(session, "c", blobOf(database, "one", clock));
          yield* addFrame(session, "f", blobOf(database, "two", clock));
        });
        await artifacts(database).put("n", "a", bytesOf("three"));
        await putOrphans(database, "orphan");
        await database.write("damage", () => run(damage));
        const before = await dump(database);
        expect(await keeper.collect()).toEqual({
          ...nothing,
          refused: { table: refused.table, key: refused.key(session) },
        });
        expect(await dump(database)).toEqual(before);
      }),
    );

  const component = {
    table: "holdfast_session_component",
    key: (session: number) => `${session}/c`,
  };
  const frame = {
    table: "holdfast_session_frame",
    key: (session: number) => `${session}/f`,
  };
  const artifact = { table: "holdfast_artifact", key: () => "n/a" };
  doubt(
    "a component whose blob is missing",
    sql`DELETE FROM holdfast_blob WHERE hash = ${hashes.one}`,
    component,
  );
  doubt(
    "a component with a malformed hash",
    sql`UPDATE holdfast_session_component SET blob = ${`${hashes.one}0`}`,
    component,
  );
  doubt(
    "a component with an empty hash",
    sql`UPDATE holdfast_session_component SET blob = ${""}`,
    component,
  );
  doubt(
    "a frame whose blob is missing",
    sql`DELETE FROM holdfast_blob WHERE hash = ${hashes.two}`,
    frame,
  );
  doubt(
    "a pointer whose blob is missing",
    sql`DELETE FROM holdfast_blob WHERE hash = ${hashes.three}`,
    artifact,
  );
  doubt(
    "a pointer with a malformed hash",
    sql`UPDATE holdfast_artifact SET blob = ${"ABC"}`,
    artifact,
  );
}

function keepingTests(fixture: InFixture): void {
  test(
    "[A48] keeps what a component and a pointer refer to, and deletes exactly the orphan",
    fixture(async ({ database, clock, keeper }) => {
      const session = await createSession(database, "s");
      await database.write("owners", () =>
        addComponent(session, "tools", blobOf(database, "one", clock)),
      );
      await artifacts(database).put("n", "a", bytesOf("two"));
      await putOrphans(database, "orphan");
      expect(await keeper.collect()).toEqual({
        examined: 3,
        kept: 2,
        deleted: 1,
        deletedBytes: 6,
        forgottenSourceKeys: 0,
      });
      expect(await storedTexts(database)).toEqual(["one", "two"]);
      expect(await keeper.collect()).toMatchObject({ examined: 2, deleted: 0 });
    }),
  );

  test(
    "[A49] keeps every component of every session and fork, also when they share one, and collects what was replaced",
    fixture(async ({ database, keeper }) => {
      const store = sessions(database, { grace: 0 });
      const rights = leases(database);
      const parts = (...names: readonly string[]) =>
        Object.fromEntries(names.map((value) => [value, { version: 1, value }]));
      const own = await holding(store, rights, await store.create("s"));
      await own.commit({
        turn: "t1",
        nodes: [said("hi")],
        components: parts("tools", "plugins", "state"),
      });
      const fork = await holding(store, rights, await store.fork("s", "fork"));
      await own.commit({
        turn: "t2",
        components: { ...parts("next"), state: null, tools: null },
      });
      await putOrphans(database, "orphan");
      expect(await keeper.collect()).toMatchObject({ kept: 4, deleted: 1 });
      expect(await store.components("s")).toMatchObject(parts("next", "plugins"));
      expect(await store.components("fork")).toMatchObject(parts("plugins", "state", "tools"));
      await fork.commit({ turn: "t1", components: { state: null } });
      expect(await keeper.collect()).toMatchObject({ kept: 3, deleted: 0 });
      expect((await storedTexts(database)).toSorted()).toEqual(['"next"', '"plugins"', '"tools"']);
    }),
  );

  test(
    "[AX15] keeps every blob that any frame refers to, the current and those before it",
    fixture(async ({ database, clock, keeper }) => {
      const session = await createSession(database, "s");
      await database.write("frames", function* () {
        for (const id of ["f1", "f2", "f3"])
          yield* addFrame(session, id, blobOf(database, `state ${id}`, clock));
        yield* run(sql`UPDATE holdfast_session SET current_frame = ${"f3"}`);
        // A frame without a blob keeps nothing and is no reason to doubt.
        yield* run(sql`
          INSERT INTO holdfast_session_frame (session, id, ordinal, hash, payload, blob)
          VALUES (${session}, ${"f4"}, ${4}, ${"hash"}, ${"{}"}, NULL)`);
      });
      await putOrphans(database, "orphan");
      expect(await keeper.collect()).toMatchObject({ kept: 3, deleted: 1 });
      expect(await storedTexts(database)).toEqual(["state f1", "state f2", "state f3"]);
    }),
  );

  test(
    "leaves what was put within the grace period, and begins it anew when it is put again",
    fixture(async ({ database, clock, keeper }) => {
      await putOrphans(database, "early", "twice");
      clock.advance(1_000);
      await putOrphans(database, "twice", "late");
      clock.advance(999);
      expect(await keeper.collect({ grace: "1s" })).toEqual({
        examined: 3,
        kept: 2,
        deleted: 1,
        deletedBytes: 5,
        forgottenSourceKeys: 0,
      });
      expect(await storedTexts(database)).toEqual(["twice", "late"]);
      clock.advance(1);
      expect(await keeper.collect({ grace: "1s" })).toMatchObject({
        deleted: 2,
      });
    }),
  );

  test(
    "has an hour of grace unless told, and does not take a clock that was set back for age",
    fixture(async ({ database, clock }) => {
      clock.set(7_200_000);
      await putOrphans(database, "abc");
      clock.set(7_200_000 + 3_599_999);
      expect(await maintenance(database).collect()).toMatchObject({ kept: 1 });
      clock.set(1);
      expect(await maintenance(database).collect()).toMatchObject({ kept: 1 });
      clock.set(7_200_000 + 3_600_000);
      expect(await maintenance(database).collect()).toMatchObject({
        deleted: 1,
      });
    }),
  );

  test(
    "finds nothing to do in an empty database",
    fixture(async ({ keeper }) => {
      expect(await keeper.collect()).toEqual({
        examined: 0,
        kept: 0,
        deleted: 0,
        deletedBytes: 0,
        forgottenSourceKeys: 0,
      });
    }),
  );
}

function removalTests(fixture: InFixture): void {
  test(
    "takes those that only it had, and leaves those that others have too",
    fixture(async ({ database, clock }) => {
      const gone = await createSession(database, "gone");
      const other = await createSession(database, "other");
      await database.write("owners", function* () {
        for (const text of ["one", "two", "three"])
          yield* addComponent(gone, text, blobOf(database, text, clock));
        yield* referFromComponent(other, "shared", hashes.two);
      });
      await artifacts(database).put("n", "a", bytesOf("three"));
      const removed = await database.write(
        "delete",
        function* () {
          yield* run(sql`
            DELETE FROM holdfast_session_component WHERE session = ${gone}`);
          return yield* removeUnused({
            hashes: [hashes.one, hashes.two, hashes.three, hashes.abc],
            putUntil: clock.now(),
          });
        },
        { isolation: "readCommitted" },
      );
      expect(removed).toEqual({ blobs: 1, bytes: 3 });
      expect(await storedTexts(database)).toEqual(["two", "three"]);
    }),
  );
}

function sizeTests(fixture: InFixture): void {
  test(
    "counts bytes by kind and in all, before compression and as stored",
    fixture(async ({ database, clock, keeper }) => {
      expect(await keeper.sizes()).toEqual({
        kinds: [],
        attachments: { attachments: 0, size: 0 },
        total: { size: 0, stored: 0 },
      });
      const session = await createSession(database, "s");
      const kind = { name: "state", isCompressible: true };
      const state = blobOf(database, "a".repeat(5_000), clock, kind);
      const stored = state.content.length;
      expect(stored).toBeLessThan(100);
      await putOrphans(database, "one", "two");
      await database.write("owner", () => addComponent(session, "c", state));
      await attachments(database).put({ id: "s" }, bytesOf("12345"), {
        mediaType: "text/plain",
      });
      const states = { kind: "state", blobs: 1, size: 5_000, stored };
      expect(await keeper.sizes()).toEqual({
        kinds: [{ kind: "generic", blobs: 2, size: 6, stored: 6 }, states],
        attachments: { attachments: 1, size: 5 },
        total: { size: 5_011, stored: stored + 11 },
      });
    }),
  );
}
