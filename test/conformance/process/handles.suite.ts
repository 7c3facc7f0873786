import { describe, expect, test } from "vitest";
import { rows, sql } from "../../../src/kernel.ts";
import { forgetProcesses } from "../../../src/stores/process/session-end-row.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { altered, onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processHandlesSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("handles of processes", () => {
    grantTests(on);
    grantPageTests(on);
    transferTests(on);
  });
  describe("deleting a session that has handles", () => {
    deletionTests(on);
  });
}

async function registered(
  { store }: Pick<ProcessFixture, "store">,
  ...ids: readonly string[]
): Promise<void> {
  for (const id of ids) await store.register({ id, kind: "tool" });
}

const planner = { session: "s", frame: "planner" };

function grantTests(on: On): void {
  test(
    "[A57] a handle is granted, found, revoked and gone",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await registered(fixture, "p");
      expect(await store.hasHandle("p", "s")).toBe(false);
      clock.advance(1);
      await store.grant("p", "s", { kind: "build", label: "the build" });
      expect(await store.hasHandle("p", "s")).toBe(true);
      expect(await store.hasHandle("p", planner)).toBe(false);
      expect((await store.handles("s")).items).toMatchObject([
        {
          grant: {
            session: "s",
            generation: 1,
            frame: null,
            kind: "build",
            label: "the build",
            grantedAt: 1_000_001,
          },
          process: { id: "p", status: "running" },
        },
      ]);
      await store.grant("p", "s", { label: "renamed" });
      expect((await store.grants("p")).items).toMatchObject([
        { kind: null, label: "renamed", grantedAt: 1_000_001 },
      ]);
      expect(await store.revoke("p", "s")).toBe(true);
      expect(await store.revoke("p", "s")).toBe(false);
      expect(await store.hasHandle("p", "s")).toBe(false);
      expect((await store.handles("s")).items).toEqual([]);
      expect((await store.get("p"))?.sequence).toBe(0);
    }),
  );

  test(
    "[A70] a process may have no handles at all",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture, "p", "q");
      await store.grant("q", "s");
      expect((await store.grants("p")).items).toEqual([]);
      const { items: processes } = await store.list({ orphaned: true });
      expect(processes.map(({ id }) => id)).toEqual(["p"]);
      expect((await store.list({ orphaned: false })).items).toMatchObject([{ id: "q" }]);
    }),
  );

  test(
    "a handle for a session that is not there is refused",
    on(async (fixture) => {
      const { store, database } = fixture;
      await registered(fixture, "p");
      const before = await stored(database);
      for (const [scope, code] of [
        ["nobody", "SESSION_NOT_FOUND"],
        [{ id: "s", generation: 2 }, "SESSION_DELETED"],
        [{ session: "s", frame: "a\0" }, "NAME_INVALID"],
        [{ session: "" }, "ID_MALFORMED"],
      ] as const)
        expect(await rejection(store.grant("p", scope))).toMatchObject({
          code,
        });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "[A72] the list of live handles leaves out what has ended, the full one keeps it",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture, "c", "a", "b");
      for (const id of ["a", "b", "c"]) await store.grant(id, "s");
      await store.complete("b", { kind: "completed", value: 1 });
      const ids = async (
        options: Parameters<typeof store.handles>[1],
      ): Promise<readonly string[]> =>
        (await store.handles("s", options)).items.map(({ process }) => process.id);
      expect(await ids({ live: true })).toEqual(["c", "a"]);
      expect(await ids({})).toEqual(["c", "a", "b"]);
      const page = await store.handles("s", { limit: 2 });
      expect(page.next).toBeTypeOf("string");
      expect(await ids({ after: page.next ?? "" })).toEqual(["b"]);
      expect(await rejection(store.handles(planner, { after: page.next ?? "" }))).toMatchObject({
        code: "CURSOR_INVALID",
      });
    }),
  );
}

function grantPageTests(on: On): void {
  test(
    "those who have a handle of a process are listed page by page, by session and frame",
    on(async (fixture) => {
      const { store, sessions } = fixture;
      await sessions.create("a");
      await registered(fixture, "p", "q");
      for (const scope of ["s", planner, "a"]) await store.grant("p", scope);
      const seen: unknown[] = [];
      let next: string | undefined;
      do {
        const page = await store.grants("p", {
          limit: 1,
          ...(next !== undefined && { after: next }),
        });
        seen.push(...page.items.map(({ session, frame }) => [session, frame]));
        next = page.next;
        if (next !== undefined)
          expect(await rejection(store.grants("q", { after: next }))).toMatchObject({
            code: "CURSOR_INVALID",
          });
      } while (next !== undefined);
      expect(seen).toEqual([
        ["a", null],
        ["s", null],
        ["s", "planner"],
      ]);
    }),
  );
}

function transferTests(on: On): void {
  test(
    "[A69] a transfer moves the handle, appends no event, and moves only that of the source",
    on(async (fixture) => {
      const { store, sessions } = fixture;
      await sessions.create("t");
      await sessions.create("a");
      await registered(fixture, "p", "q");
      for (const scope of ["s", planner, "a"]) await store.grant("p", scope, { label: "mine" });
      await store.grant("q", "s");
      await store.grant("p", "t", { label: "theirs" });
      await store.transfer("s", "t", ["p", "q"]);
      expect(
        (await store.grants("p")).items.map(({ session, frame, label }) => [session, frame, label]),
      ).toEqual([
        ["a", null, "mine"],
        ["s", "planner", "mine"],
        ["t", null, "mine"],
      ]);
      expect(await store.hasHandle("q", "t")).toBe(true);
      expect((await store.get("p"))?.sequence).toBe(0);
      // Repeating it, because its answer was lost, is fine.
      await store.transfer("s", "t", ["p", "q"]);
    }),
  );

  test(
    "[A69] a transfer of what is not held changes nothing at all",
    on(async (fixture) => {
      const { store, sessions, database } = fixture;
      await sessions.create("t");
      await registered(fixture, "p", "q");
      await store.grant("p", "s");
      const before = await stored(database);
      expect(await rejection(store.transfer("s", "t", ["p", "q"]))).toMatchObject({
        code: "HANDLE_NOT_GRANTED",
        details: { process: "q", session: "s" },
      });
      expect(await stored(database)).toEqual(before);
      await store.transfer("s", "s", ["p"]);
      expect(await store.hasHandle("p", "s")).toBe(true);
    }),
  );
}

function deletionTests(on: On): void {
  test(
    "[A71] handles go with the session, and what runs on is reported",
    on(async (fixture) => {
      const { store, sessions, queue } = fixture;
      await sessions.create("t");
      const wake = { input: { kind: "payload" } } as const;
      for (const id of ["sole", "shared", "ended"])
        await store.register({
          id,
          kind: "tool",
          wakeTarget: "s",
          eventTypes: [{ name: "e", wake }],
        });
      await store.grant("sole", "s");
      await store.grant("shared", planner);
      await store.grant("shared", "t");
      await store.grant("ended", "s");
      await store.append("sole", { type: "e", payload: "one" });
      await store.append("shared", { type: "e", payload: "two" });
      await queue.enqueue("s", { items: [{ kind: "input", payload: 1 }] });
      await store.complete("ended", { kind: "completed", value: 1 });
      const report = await sessions.delete("s");
      expect(report.processes).toEqual({
        revoked: 3,
        wakes: 2,
        orphaned: ["sole"],
        preserved: ["shared"],
        hasMore: false,
      });
      expect((await store.grants("sole")).items).toEqual([]);
      expect((await store.grants("shared")).items).toMatchObject([{ session: "t" }]);
      for (const id of ["sole", "shared", "ended"])
        expect(await store.get(id)).toMatchObject({ wakeTarget: null });
      expect(await store.get("sole")).toMatchObject({ status: "running" });
      // Its answer may be lost, so that deleting again says the same.
      expect((await sessions.delete("s")).processes).toEqual(report.processes);
      expect(await sessions.delete("s")).toMatchObject({ rows: 0 });
      const { wake: later } = await store.append("sole", {
        type: "e",
        payload: "three",
      });
      expect(later?.delivery).toEqual({ kind: "noTarget" });
    }),
  );

  test(
    "[A71] in slices, a process with several handles of the session is reported once",
    on(async (fixture) => {
      const { store, sessions } = fixture;
      await registered(fixture, "a", "b", "c");
      for (const id of ["a", "b", "c"])
        for (const frame of ["x", "y"]) await store.grant(id, { session: "s", frame });
      const report = await sessions.delete("s", { rowsPerSlice: 1 });
      expect(report.processes).toEqual({
        revoked: 6,
        wakes: 0,
        orphaned: ["a", "b", "c"],
        preserved: [],
        hasMore: false,
      });
    }),
  );

  test(
    "[A71] what was reported stays known when the deletion stops half-way and is repeated",
    on(async (fixture) => {
      const { store, sessions, faults } = fixture;
      await registered(fixture, "a", "b");
      for (const id of ["a", "b"]) await store.grant(id, "s");
      const stop = new AbortController();
      const stopped = sessions.delete("s", {
        rowsPerSlice: 1,
        signal: stop.signal,
        onProgress: () => stop.abort(),
      });
      await stopped.catch(() => undefined);
      faults.losesAnswer = true;
      await rejection(sessions.delete("s"));
      const told = {
        revoked: 2,
        wakes: 0,
        orphaned: ["a", "b"],
        preserved: [],
        hasMore: false,
      };
      expect((await sessions.delete("s")).processes).toEqual(told);
      // The next generation has a report of its own, and the first keeps its.
      await sessions.create("s");
      await store.grant("a", "s");
      expect((await sessions.delete("s")).processes).toMatchObject({
        revoked: 1,
        orphaned: ["a"],
      });
      const first = { id: "s", generation: 1 };
      expect((await sessions.delete(first)).processes).toEqual(told);
    }),
  );

  test(
    "a report that is damaged does not hold up the deletion of a session",
    on(async (fixture) => {
      const { store, sessions, database } = fixture;
      await registered(fixture, "a");
      await store.grant("a", "s");
      await sessions.delete("s");
      for (const report of ["{", "[]", '{"revoked":1,"orphaned":7}']) {
        await altered(database, sql`UPDATE holdfast_process_session_end SET report = ${report}`);
        expect((await sessions.delete("s")).processes).toEqual({
          revoked: 0,
          wakes: 0,
          orphaned: [],
          preserved: [],
          hasMore: false,
        });
      }
    }),
  );

  test(
    "takes back handles and clears targets in transactions of their own, so that processes are locked in one order",
    on(async (fixture) => {
      const { store, database } = fixture;
      await store.register({ id: "aimed", kind: "tool", wakeTarget: "s" });
      await registered(fixture, "held");
      await store.grant("held", "s");
      const [found] = await database.read("session", () =>
        rows<{ readonly key: number }>(sql`SELECT key FROM holdfast_session WHERE id = 's'`),
      );
      const input = { session: found?.key ?? 0, at: 1, rowsMax: 9 };
      const target = async (): Promise<unknown> => (await store.get("aimed"))?.wakeTarget;
      expect(await database.write(forgetProcesses, input)).toMatchObject({
        report: { revoked: 1, orphaned: ["held"] },
        isDone: false,
      });
      expect(await target()).toMatchObject({ session: "s" });
      expect(await database.write(forgetProcesses, input)).toMatchObject({
        report: { revoked: 1, orphaned: ["held"] },
        isDone: false,
      });
      expect(await target()).toBeNull();
      expect(await database.write(forgetProcesses, input)).toMatchObject({
        isDone: true,
      });
    }),
  );

  test(
    "a damaged process does not hold up the deletion of a session",
    on(async (fixture) => {
      const { store, sessions, database } = fixture;
      await store.register({ id: "p", kind: "tool", wakeTarget: "s" });
      await store.grant("p", "s");
      await altered(database, sql`UPDATE holdfast_process SET status = 'odd'`);
      expect((await sessions.delete("s")).processes).toMatchObject({
        revoked: 1,
      });
    }),
  );
}
