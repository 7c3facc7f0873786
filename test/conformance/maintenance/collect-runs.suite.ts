import { describe, expect, test } from "vitest";
import { rows, run, sql } from "../../../src/kernel.ts";
import { blobs, maintenance } from "../../../src/blobs.ts";
import { leases, queue, sessions } from "../../../src/sessions.ts";
import type { CollectReport } from "../../../src/blobs.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { addComponent, blobOf, createSession, storedTexts } from "../blob/owners.ts";
import { inFixture, putOrphans } from "./collecting.ts";
import type { InFixture } from "./collecting.ts";
import { holding, said } from "../session/fixture.ts";

export function collectRunsSuite(backend: Backend): void {
  const fixture = inFixture(backend);
  describe("collecting blobs in slices", () => {
    sliceTests(fixture);
  });
  describe("collecting blobs after commits", () => {
    autoTests(fixture);
  });
}

function sliceTests(fixture: InFixture): void {
  const texts = ["a", "b", "c", "d", "e", "f", "g"];

  test(
    "goes on over pages of blobs and of roots, and tells after each",
    fixture(async ({ database, clock, keeper }) => {
      const session = await createSession(database, "s");
      await putOrphans(database, ...texts);
      await database.write("owners", function* () {
        for (const text of ["b", "d", "e", "g"])
          yield* addComponent(session, text, blobOf(database, text, clock));
      });
      const told: CollectReport[] = [];
      const report = await keeper.collect({
        rowsPerSlice: 2,
        onProgress: (soFar) => told.push(soFar),
      });
      expect(report).toMatchObject({ examined: 7, kept: 4, deleted: 3 });
      expect(told.map(({ examined, deleted }) => [examined, deleted])).toEqual([
        [2, 1],
        [4, 2],
        [6, 3],
        [7, 3],
      ]);
      expect(await storedTexts(database)).toEqual(["b", "d", "e", "g"]);
    }),
  );

  test(
    "can be given up between slices, and goes on the next time",
    fixture(async ({ database, keeper }) => {
      await putOrphans(database, ...texts);
      const giveUp = new AbortController();
      const error = await rejection(
        keeper.collect({
          rowsPerSlice: 3,
          signal: giveUp.signal,
          onProgress: () => giveUp.abort(),
        }),
      );
      expect(error.code).toBe("ABORTED");
      expect(await storedTexts(database)).toEqual(["d", "e", "f", "g"]);
      expect(await keeper.collect()).toMatchObject({ deleted: 4 });
    }),
  );

  test(
    "leaves what comes while it goes on to the next time",
    fixture(async ({ database, keeper }) => {
      await putOrphans(database, "a", "b");
      let isFirst = true;
      const putting: Promise<unknown>[] = [];
      const report = await keeper.collect({
        rowsPerSlice: 1,
        onProgress() {
          if (isFirst) putting.push(putOrphans(database, "new"));
          isFirst = false;
        },
      });
      await Promise.all(putting);
      expect(report.deleted).toBe(2);
      expect(await storedTexts(database)).toEqual(["new"]);
    }),
  );

  test(
    "refuses options out of range",
    fixture(async ({ keeper, database }) => {
      expect((await rejection(keeper.collect({ rowsPerSlice: 0 }))).code).toBe("OPTION_INVALID");
      expect((await rejection(keeper.collect({ grace: -1 }))).code).toBe("DURATION_INVALID");
      expect(() => maintenance(database, { collectEvery: -1 })).toThrow("collectEvery");
    }),
  );
}

function autoTests(fixture: InFixture): void {
  test(
    "[A50] [AX16] happens by itself after so many turn commits of sessions that were given it",
    fixture(async ({ database }) => {
      let told: (outcome: object) => void = () => undefined;
      const collected = new Promise<object>((resolve) => (told = resolve));
      const store = sessions(database, {
        maintenance: maintenance(database, {
          collectEvery: 2,
          grace: 0,
          onCollected: told,
        }),
      });
      const { id, generation } = await store.create("s");
      const outcome = await leases(database).acquire(id, {
        owner: "o",
        incarnation: "1",
      });
      if (outcome.kind !== "acquired") throw new Error("The lease is free.");
      const handle = { id, generation };
      await blobs(database).put(new TextEncoder().encode("nobody's"));
      for (const turn of ["t1", "t2"])
        await store.commit(handle, {
          turn,
          fence: outcome.lease,
          components: { plan: { version: 1, value: turn } },
        });
      expect(await collected).toMatchObject({ deleted: 1, kept: 1 });
      expect(await storedTexts(database)).toHaveLength(1);
    }),
  );

  test(
    "[A50] the blobs of one turn are stored in the order of their hashes, whatever they are for",
    fixture(async ({ database }) => {
      const store = sessions(database);
      const { id, generation } = await store.create("s");
      const outcome = await leases(database).acquire(id, {
        owner: "o",
        incarnation: "1",
      });
      if (outcome.kind !== "acquired") throw new Error("The lease is free.");
      await store.commit(
        { id, generation },
        {
          turn: "t1",
          fence: outcome.lease,
          components: Object.fromEntries(
            ["a", "b", "c", "d", "e", "f"].map((value) => [value, { version: 1, value }]),
          ),
        },
      );
      const stored = await database.read("hashes", () =>
        rows<{ readonly hash: string }>(sql`SELECT hash FROM holdfast_blob ORDER BY key`),
      );
      const hashes = stored.map(({ hash }) => hash);
      expect(hashes).toHaveLength(6);
      expect(hashes).toEqual(hashes.toSorted());
    }),
  );

  test(
    "[A50] removes an orphan after every commit and does not stand in its own way",
    fixture(async ({ database, clock }) => {
      const keeper = maintenance(database, { collectEvery: 1, grace: 0 });
      const session = await createSession(database, "s");
      for (const name of ["a", "b"]) {
        await putOrphans(database, `orphan ${name}`);
        await database.write("commit", () =>
          addComponent(session, name, blobOf(database, name, clock)),
        );
        expect(await keeper.afterCommit()).toMatchObject({ deleted: 1 });
      }
      expect(await storedTexts(database)).toEqual(["a", "b"]);
      await putOrphans(database, "orphan");
      const many = await Promise.all(Array.from({ length: 5 }, () => keeper.afterCommit()));
      expect(many.map((report) => report?.deleted)).toEqual([1, 0, 0, 0, 0]);
    }),
  );

  test(
    "[AX16] runs after exactly every third commit, whatever else is written",
    fixture(async ({ database }) => {
      const keeper = maintenance(database, { collectEvery: 3, grace: 0 });
      const counted: ReturnType<typeof keeper.afterCommit>[] = [];
      const store = sessions(database, {
        grace: 0,
        maintenance: {
          afterCommit() {
            const answer = keeper.afterCommit();
            counted.push(answer);
            return answer;
          },
        },
      });
      const { commit, handle } = await holding(store, leases(database), await store.create("s"));
      const work = queue(database);
      const ran: boolean[] = [];
      for (let turn = 1; turn <= 9; turn += 1) {
        await putOrphans(database, `traffic ${turn}`, `more ${turn}`);
        await work.enqueue(handle, {
          items: [{ kind: "input", payload: turn }],
        });
        const given = { turn: `t${turn}`, nodes: [said("hi")] };
        expect(await commit(given)).toMatchObject({ kind: "committed" });
        // Neither a repetition nor a refusal is a commit.
        expect(await commit(given)).toMatchObject({ kind: "replayed" });
        await rejection(commit({ ...given, nodes: [said("other")] }));
        expect(counted).toHaveLength(turn);
        ran.push((await counted.at(-1)) !== undefined);
      }
      expect(ran).toEqual([false, false, true, false, false, true, false, false, true]);
      expect(await storedTexts(database)).toEqual([]);
    }),
  );

  test(
    "forgets source keys that queues need not remember, in slices, and also when it refuses to remove blobs",
    fixture(async ({ database, clock }) => {
      await createSession(database, "s");
      const work = queue(database);
      const items = [{ kind: "input", payload: "a" }];
      const consume = async (source: string): Promise<void> => {
        const queued = await work.enqueue("s", { items, source });
        if (queued.kind === "queued") await work.cancel("s", queued.batch.id);
      };
      for (let index = 0; index < 7; index += 1) await consume(`old ${index}`);
      const keeper = maintenance(database, { collectEvery: 1 });
      clock.advance(30 * 24 * 3_600_000 - 1);
      await consume("new");
      const none = { forgottenSourceKeys: 0 };
      expect(await keeper.afterCommit()).toMatchObject(none);
      clock.advance(1);
      await database.write("damage", () =>
        run(sql`
          INSERT INTO holdfast_artifact (namespace, name, blob, put_at) VALUES ('n', 'a', 'none', 1)`),
      );
      expect(await keeper.collect({ rowsPerSlice: 3 })).toMatchObject({
        forgottenSourceKeys: 7,
        refused: { table: "holdfast_artifact" },
      });
      expect(await work.enqueue("s", { items, source: "new" })).toEqual({
        kind: "consumed",
      });
      const brief = maintenance(database, { sourceKeyMemory: 0 });
      expect(await brief.collect()).toMatchObject({ forgottenSourceKeys: 1 });
    }),
  );

  test(
    "[AX16] never runs unless told, and goes on counting after one failed",
    fixture(async ({ database }) => {
      await putOrphans(database, "orphan");
      expect(await maintenance(database).afterCommit()).toBeUndefined();
      expect(await storedTexts(database)).toEqual(["orphan"]);
      const keeper = maintenance(database, { collectEvery: 2, grace: 0 });
      await keeper.afterCommit();
      await database.write("break", () =>
        run(sql`ALTER TABLE holdfast_artifact RENAME COLUMN blob TO away`),
      );
      expect((await rejection(keeper.afterCommit())).code).toBe("STATEMENT_FAILED");
      await database.write("mend", () =>
        run(sql`ALTER TABLE holdfast_artifact RENAME COLUMN away TO blob`),
      );
      expect(await keeper.afterCommit()).toBeUndefined();
      expect(await keeper.afterCommit()).toMatchObject({ deleted: 1 });
      await database.close(); // It was altered: no other test may have it.
    }),
  );
}
