import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { ada, bob, claimed, registered } from "../lease/leased-processes.ts";
import { altered, onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";
import { build } from "./spawned-build.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processRecoverySuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("recovering processes", () => {
    worklistTests(on);
    attemptTests(on);
    abandonTests(on);
  });
}

function worklistTests(on: On): void {
  test(
    "[A72] the worklist has what runs and nobody works on, with what is to be done",
    on(async (fixture) => {
      const { store, clock, faults, database } = fixture;
      for (const [id, disposition] of [
        ["again", "rerunnable"],
        ["bound", "ownerBound"],
        ["done", "rerunnable"],
        ["held", "rerunnable"],
        ["new", "ownerBound"],
        ["out", "external"],
        ["unheld", "rerunnable"],
      ] as const)
        await registered(fixture, id, { disposition });
      for (const id of ["again", "bound"]) await store.start(await claimed(fixture, ada, id));
      await store.complete("done", { kind: "completed", value: 1 });
      clock.advance(1_000);
      const local = { owner: "eve", incarnation: "1" };
      await store.claim("held", { ...local, process: null }, { lease: 1_000 });
      await store.release(await claimed(fixture, bob, "unheld"));
      await store.claim("out", local, { lease: 1_000 });
      const todo = async (
        options?: Parameters<typeof store.worklist>[0],
      ): Promise<readonly unknown[]> =>
        (await store.worklist(options)).items.map(({ process, lease, recovery }) => [
          process.id,
          lease,
          recovery,
        ]);
      expect(await todo()).toEqual([
        ["again", "expired", "run"],
        ["bound", "expired", "abandon"],
        ["new", "none", "run"],
        ["unheld", "none", "run"],
      ]);
      expect(await todo({ started: false })).toEqual([
        ["new", "none", "run"],
        ["unheld", "none", "run"],
      ]);
      faults.die(database.owner);
      expect(await todo({ started: false })).toEqual([
        ["new", "none", "run"],
        ["out", "ownerDead", "external"],
        ["unheld", "none", "run"],
      ]);
      const page = await store.worklist({ limit: 2 });
      expect(page.items).toHaveLength(2);
      expect(await todo({ after: page.next ?? "" })).toHaveLength(3);
    }),
  );

  test(
    "a damaged row is named, and the worklist goes on past it",
    on(async (fixture) => {
      const { store, database } = fixture;
      await registered(fixture, "a");
      await registered(fixture, "b");
      await claimed(fixture, ada, "a");
      await altered(database, sql`UPDATE holdfast_process_lease SET owner = NULL`);
      expect(await store.worklist()).toMatchObject({
        items: [{ process: { id: "b" } }],
        damaged: [{ table: "holdfast_process", key: "a" }],
      });
      expect(await rejection(store.claim("a", bob))).toMatchObject({
        code: "CORRUPT_ROW",
        details: { table: "holdfast_process_lease" },
      });
    }),
  );
}

function attemptTests(on: On): void {
  test(
    "[AX11] what was begun as often as it may be is given up, not begun again",
    on(async (fixture) => {
      const { store, database } = fixture;
      await registered(fixture, "p", { attemptsMax: 2 });
      const todo = async (): Promise<unknown> =>
        (await store.worklist()).items.map(({ recovery }) => recovery);
      for (const attempt of [1, 2]) {
        expect(await todo()).toEqual(["run"]);
        const lease = await claimed(fixture);
        expect(await store.start(lease)).toBe(attempt);
        // Its answer was lost: the same lease has begun it already.
        expect(await store.start(lease)).toBe(attempt);
        await store.release(lease);
      }
      expect(await todo()).toEqual(["abandon"]);
      const lease = await claimed(fixture);
      const before = await stored(database);
      expect(await rejection(store.start(lease))).toMatchObject({
        code: "PROCESS_ATTEMPTS_USED",
        details: { id: "p", attempts: 2 },
      });
      expect(await stored(database)).toEqual(before);
      await store.release(lease);
      expect(await store.abandon("p", "tried twice")).toMatchObject({
        status: "abandoned",
      });
      expect(await store.get("p")).toMatchObject({
        attempts: 2,
        attemptsMax: 2,
      });
    }),
  );

  test(
    "how often a process may be begun is part of what it was registered with",
    on(async (fixture) => {
      const { store } = fixture;
      await registered(fixture, "p", { attemptsMax: 2 });
      await registered(fixture, "p", { attemptsMax: 2 });
      expect(await rejection(registered(fixture, "p", { attemptsMax: 3 }))).toMatchObject({
        code: "PROCESS_CONFLICT",
        details: { part: "attemptsMax" },
      });
      for (const attemptsMax of [0, -1, 1.5, "2", Number.NaN])
        expect(await rejection(registered(fixture, "q", { attemptsMax }))).toMatchObject({
          code: "PROCESS_INVALID",
          details: { path: "$.attemptsMax" },
        });
      expect(await store.get("q")).toBeUndefined();
    }),
  );
}

function abandonTests(on: On): void {
  test(
    "what nobody can finish is abandoned, once, and wakes as declared",
    on(async (fixture) => {
      const { store, queue, faults, database } = fixture;
      const wake = {
        input: { kind: "pointer", pointer: "/output/message" },
      } as const;
      await registered(fixture, "p", {
        wakeTarget: "s",
        eventTypes: [{ name: "process.abandoned", wake }],
      });
      await claimed(fixture);
      const before = await stored(database);
      expect(await rejection(store.abandon("p", "gone"))).toMatchObject({
        code: "PROCESS_LEASED",
      });
      expect(await stored(database)).toEqual(before);
      faults.die(database.owner);
      expect(await store.abandon("p", "its owner died")).toMatchObject({
        status: "abandoned",
        wake: { input: "its owner died" },
      });
      expect(await store.abandon("p", "its owner died")).toMatchObject({
        isReplay: true,
      });
      expect(await store.waitForEnd("p")).toEqual({
        kind: "abandoned",
        message: "its owner died",
      });
      expect((await queue.list("s")).items).toHaveLength(1);
      expect(await rejection(store.complete("p", { kind: "completed", value: 1 }))).toMatchObject({
        code: "PROCESS_TERMINAL",
      });
    }),
  );

  test(
    "what runs as an execution is not abandoned while that is alive",
    on(async ({ store, database }) => {
      await store.spawn(build);
      const before = await stored(database);
      expect(await rejection(store.abandon("build", "gone"))).toMatchObject({
        code: "PROCESS_SPAWNED",
        details: { id: "build", execution: "build" },
      });
      expect(await stored(database)).toEqual(before);
      // Somebody has removed it by hand: nobody will ever end the process.
      await altered(database, sql`DELETE FROM holdfast_execution`);
      expect(await store.abandon("build", "gone")).toMatchObject({
        status: "abandoned",
      });
      expect(await store.abandon("build", "gone")).toMatchObject({
        isReplay: true,
      });
    }),
  );

  test(
    "only the registry abandons",
    on(async (fixture) => {
      const { store, database } = fixture;
      await registered(fixture);
      const before = await stored(database);
      expect(
        await rejection(
          store.append("p", {
            type: "process.abandoned",
            payload: { output: { kind: "abandoned", message: "m" } },
            replayKey: "k",
          }),
        ),
      ).toMatchObject({ code: "EVENT_TYPE_RESERVED" });
      expect(await stored(database)).toEqual(before);
    }),
  );
}
