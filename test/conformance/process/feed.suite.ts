import { describe, expect, test } from "vitest";
import { pruneSlice } from "../../../src/stores/process/prune.ts";
import { rows, sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { altered, onProcesses, fixtureOf } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processFeedSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("the feed of changes", () => {
    feedTests(on);
    if (backend.survives) concurrencyTests(on);
  });
  describe("pruning processes", () => {
    pruneTests(on);
  });
}

const eventTypes = [{ name: "e" }];

/** Everything behind a cursor; on Postgres others may hold the horizon back for a moment. */
async function changesAfter(
  { store }: ProcessFixture,
  count: number,
  after?: string,
): Promise<readonly [string, string]> {
  const told: string[] = [];
  let next = after;
  while (told.length < count) {
    const page = await store.changes({
      ...(next !== undefined && { after: next }),
      limit: 3,
    });
    for (const { process, sequence, type } of page.items)
      told.push(`${process}${sequence} ${type}`);
    ({ next } = page);
  }
  return [told.join(", "), next ?? ""];
}

function feedTests(on: On): void {
  test(
    "everything that happens is told once, in order, from a cursor on",
    on(async (fixture) => {
      const { store } = fixture;
      for (const id of ["p", "q"]) await store.register({ id, kind: "k", eventTypes });
      await store.append("q", { type: "e" });
      await store.append("p", { type: "e" });
      const [first, cursor] = await changesAfter(fixture, 4);
      expect(first).toBe("p0 process.registered, q0 process.registered, q1 e, p1 e");
      expect(await store.changes({ after: cursor })).toEqual({
        items: [],
        next: cursor,
        damaged: [],
      });
      await store.complete("p", { kind: "completed", value: 1 });
      const [later] = await changesAfter(fixture, 1, cursor);
      expect(later).toBe("p2 process.completed");
    }),
  );

  test(
    "a cursor that is none is refused",
    on(async ({ store }) => {
      for (const after of ["", "x", 7 as never])
        expect(await rejection(store.changes({ after }))).toMatchObject({
          code: "CURSOR_INVALID",
        });
    }),
  );
}

function concurrencyTests(on: On): void {
  test(
    "a reader beside writers in two processes misses nothing and is told nothing twice",
    on(async (mine) => {
      const { place, clock, store } = mine;
      const opened = await place.open({ isWithoutPoll: true });
      const theirs = fixtureOf(place, opened, clock);
      const ids = Array.from({ length: 6 }, (_, at) => `p${at}`);
      for (const id of ids) await store.register({ id, kind: "k", eventTypes });
      let isDone = false;
      const writing = Promise.all(
        ids.map(async (id, at) => {
          const { store: own } = at % 2 === 0 ? mine : theirs;
          for (let n = 0; n < 5; n += 1) await own.append(id, { type: "e" });
        }),
      ).finally(() => (isDone = true));
      const told: string[] = [];
      let after: string | undefined;
      const total = ids.length * 6;
      while (!isDone || told.length < total) {
        const page = await store.changes({
          ...(after !== undefined && { after }),
          limit: 7,
        });
        for (const { process, sequence } of page.items) told.push(`${process}:${sequence}`);
        after = page.next;
        // Reads alone would keep the writers from being told that they are done.
        await new Promise((resolve) => setImmediate(resolve));
      }
      await writing;
      expect(told).toHaveLength(total);
      expect(new Set(told).size).toBe(total);
      await opened.close();
    }),
  );
}

function pruneTests(on: On): void {
  test(
    "what ended long ago becomes a tombstone without payloads; the rest stays",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      for (const id of ["new", "old", "runs"]) {
        await store.register({
          id,
          kind: "tool",
          label: "secret label",
          definition: "make",
          input: "secret input",
          eventTypes,
          wakeTarget: "s",
        });
        await store.grant(id, "s", { label: "secret handle" });
        await store.append(id, { type: "e", payload: "secret payload" });
        await store.setExternalRef(id, { backend: "b", id: "secret ref" });
      }
      const registration = await store.get("old");
      await store.complete("old", { kind: "completed", value: "secret" });
      clock.advance(1_000);
      await store.complete("new", { kind: "completed", value: 1 });
      clock.advance(1);
      const removed: number[] = [];
      expect(
        await store.prune(
          { olderThan: 1_000 },
          { rowsPerSlice: 2, onProgress: (soFar) => removed.push(soFar.rows) },
        ),
      ).toEqual({ pruned: 1, rows: 4, damaged: [] });
      expect(removed.slice(0, 2)).toEqual([2, 4]);
      expect(await store.get("old")).toMatchObject({
        id: "old",
        hash: registration?.hash,
        identity: { kind: "tool", label: null, definition: "make" },
        input: null,
        externalRef: null,
        eventTypes: [],
        wakeTarget: null,
        status: "completed",
        createdAt: 1_000_000,
        endedAt: 1_000_000,
        prunedAt: 1_001_001,
      });
      expect((await store.grants("old")).items).toEqual([]);
      const left = await database.read("left", function* () {
        return [
          yield* rows(sql`SELECT * FROM holdfast_process WHERE id = 'old'`),
          yield* rows(sql`
            SELECT e.* FROM holdfast_process_event e JOIN holdfast_process p ON p.key = e.process
            WHERE p.id = 'old'`),
        ];
      });
      expect(JSON.stringify(left)).not.toContain("secret");
      expect(left[1]).toMatchObject([{ type: "process.pruned", sequence: 4 }]);
      for (const id of ["new", "runs"])
        expect((await store.events(id)).items[0]).toMatchObject({
          payload: "secret payload",
        });
    }),
  );

  test(
    "a tombstone can be registered again as it was, and is otherwise only a tombstone",
    on(async (fixture) => {
      const { store, clock } = fixture;
      const draft = { id: "p", kind: "k", input: 1, eventTypes };
      await store.register(draft);
      await store.complete("p", { kind: "completed", value: 1 });
      clock.advance(1);
      await store.prune({ olderThan: 0 });
      expect(await store.register(draft)).toMatchObject({
        existed: true,
        record: { status: "completed", prunedAt: 1_000_001 },
      });
      expect(await rejection(store.register({ ...draft, input: 2 }))).toMatchObject({
        code: "PROCESS_CONFLICT",
        details: { part: "input" },
      });
      for (const call of [
        () => store.append("p", { type: "e" }),
        () => store.complete("p", { kind: "completed", value: 1 }),
        () => store.cancel("p"),
        () => store.setWait("p", { signal: "go", ordinal: 1 }),
        () => store.setExternalRef("p", { backend: "b", id: "1" }),
        () => store.clearWait("p"),
        () => store.grant("p", "s"),
        () => store.claim("p", { owner: "a", incarnation: "1" }),
        () => store.output("p"),
        () => store.events("p"),
        () => store.waitForEnd("p"),
      ])
        expect(await rejection(call())).toMatchObject({
          code: "PROCESS_PRUNED",
          details: { id: "p" },
        });
      const [told] = await changesAfter(fixture, 1);
      expect(told).toBe("p2 process.pruned");
      expect(await store.prune({ olderThan: 0 })).toMatchObject({ pruned: 0 });
    }),
  );

  test(
    "what was stopped half way is a tombstone already, and the next call goes on",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      await store.register({ id: "p", kind: "k", eventTypes });
      for (let n = 0; n < 5; n += 1) await store.append("p", { type: "e" });
      await store.complete("p", { kind: "completed", value: 1 });
      clock.advance(1);
      const { key: process } = await store.register({
        id: "p",
        kind: "k",
        eventTypes,
      });
      const slice = { process, at: clock.now(), rowsMax: 2 };
      expect(await database.write(pruneSlice, slice)).toEqual({
        rows: 2,
        isPruned: true,
        isDone: false,
      });
      expect(await rejection(store.events("p"))).toMatchObject({
        code: "PROCESS_PRUNED",
      });
      const stop = AbortSignal.abort();
      expect(await rejection(store.prune({ olderThan: 0 }, { signal: stop }))).toMatchObject({
        code: "ABORTED",
      });
      expect(await store.prune({ olderThan: "1 day" }, { rowsPerSlice: 2 })).toEqual({
        pruned: 0,
        rows: 5,
        damaged: [],
      });
      expect(await store.prune({ olderThan: 0 })).toMatchObject({ rows: 0 });
      expect(await store.get("p")).toMatchObject({ prunedAt: 1_000_001 });
    }),
  );

  test(
    "a damaged process is named, and the others are pruned",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      for (const id of ["a", "b"]) {
        await store.register({ id, kind: "k", eventTypes });
        await store.complete(id, { kind: "completed", value: 1 });
      }
      clock.advance(1);
      await altered(database, sql`UPDATE holdfast_process SET status = 'odd' WHERE id = 'a'`);
      expect(await store.prune({ olderThan: 0 })).toMatchObject({
        pruned: 1,
        damaged: [{ table: "holdfast_process", key: "a" }],
      });
    }),
  );

  test(
    "a damaged process whose pruning was interrupted is named by its id",
    on(async (fixture) => {
      const { store, database } = fixture;
      await store.register({ id: "a", kind: "k", eventTypes });
      await altered(
        database,
        sql`UPDATE holdfast_process SET status = 'odd', is_pruning = 1 WHERE id = 'a'`,
      );
      expect(await store.prune({ olderThan: "1 day" })).toEqual({
        pruned: 0,
        rows: 0,
        damaged: [{ table: "holdfast_process", key: "a" }],
      });
    }),
  );

  test(
    "a tombstone has no lease and no handles",
    on(async (fixture) => {
      const { store, clock, database } = fixture;
      await store.register({ id: "p", kind: "k", eventTypes });
      await store.grant("p", "s");
      const outcome = await store.claim("p", { owner: "a", incarnation: "1" });
      if (outcome.kind === "busy") throw new Error("Nobody else asks.");
      const output = { kind: "completed", value: 1 } as const;
      await store.complete("p", output, { fence: outcome.lease });
      clock.advance(1);
      await store.prune({ olderThan: 0 });
      const left = await database.read("left", function* () {
        return [
          yield* rows(sql`SELECT * FROM holdfast_process_lease`),
          yield* rows(sql`SELECT * FROM holdfast_process_grant`),
        ];
      });
      expect(left).toEqual([[], []]);
      expect(await store.holder("p")).toBeUndefined();
    }),
  );
}
