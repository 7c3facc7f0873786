import { describe, expect, test } from "vitest";
import { sql } from "../../../src/kernel.ts";
import type { SpawnDraft } from "../../../src/processes.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { byAnn } from "../execution/fixture.ts";
import { altered, onProcesses, stored } from "./fixture.ts";
import type { ProcessFixture } from "./fixture.ts";
import { build } from "./spawned-build.ts";

type On = (body: (fixture: ProcessFixture) => Promise<void>) => () => Promise<void>;

export function processSpawnSuite(backend: Backend): void {
  const on: On = (body) => onProcesses(backend, body);
  describe("spawning a process", () => {
    spawnTests(on);
  });
  describe("a process that runs as an execution", () => {
    endTests(on);
    cancelTests(on);
    retentionTests(on);
  });
}

function spawnTests(on: On): void {
  test(
    "[AX10] the execution, its process and the handle are there together",
    on(async ({ store, executions }) => {
      expect(await store.spawn(build)).toMatchObject({
        id: "build",
        existed: false,
        execution: "build",
        record: {
          status: "running",
          execution: "build",
          input: { branch: "main" },
        },
      });
      expect(await executions.get("build")).toMatchObject({
        function: "ci/build",
      });
      expect((await store.grants("build")).items).toMatchObject([
        { session: "s", label: "the build" },
      ]);
      // Its workers are those of executions.
      expect((await store.worklist()).items).toEqual([]);
    }),
  );

  test(
    "spawning twice is spawning once; other content is a conflict that names it",
    on(async ({ store, database, faults }) => {
      faults.losesAnswer = true;
      expect(await rejection(store.spawn(build))).toMatchObject({
        code: "OUTCOME_UNKNOWN",
      });
      await store.revoke("build", "s");
      const before = await stored(database);
      expect(await store.spawn(build)).toMatchObject({ existed: true });
      for (const [part, change] of [
        ["execution", { execution: { ...build.execution, function: "other" } }],
        ["execution", { execution: { ...build.execution, id: "other" } }],
        ["input", { execution: { function: "ci/build", input: 1 } }],
        ["causedBy", { causedBy: null }],
      ] as const)
        expect(await rejection(store.spawn({ ...build, ...change }))).toMatchObject({
          code: "PROCESS_CONFLICT",
          details: { part },
        });
      expect(await stored(database)).toEqual(before);
    }),
  );

  test(
    "many who spawn the same at once get one process with one execution",
    on(async ({ store }) => {
      const all = await Promise.all(Array.from({ length: 6 }, () => store.spawn(build)));
      expect(all.filter(({ existed }) => !existed)).toHaveLength(1);
      expect(new Set(all.map(({ key }) => key)).size).toBe(1);
    }),
  );

  test.each<[string, string, Partial<SpawnDraft>]>([
    ["a handle for nobody", "SESSION_NOT_FOUND", { grants: [{ scope: "no" }] }],
    ["a wake target that is gone", "SESSION_NOT_FOUND", { wakeTarget: "no" }],
    [
      "a wake that selects from a payload",
      "PROCESS_INVALID",
      {
        eventTypes: [{ name: "process.completed", wake: { input: { kind: "payload" } } }],
      },
    ],
    ["a bad function", "NAME_INVALID", { execution: { function: "a b" } }],
    ["an id that no execution can have", "ID_MALFORMED", { id: "a b" }],
  ])("%s is refused and leaves nothing", (_, code, change) =>
    on(async ({ store, database }) => {
      const before = await stored(database);
      expect(await rejection(store.spawn({ ...build, ...change }))).toMatchObject({ code });
      expect(await stored(database)).toEqual(before);
    })(),
  );

  test(
    "an execution that was there before gets a process; one that has another does not",
    on(async ({ store, executions, queue }) => {
      await executions.create({ ...build.execution, id: "run" });
      await executions.create({
        ...build.execution,
        id: "old",
        role: "external",
      });
      await executions.resolve("old", { kind: "completed", value: 7 });
      const running = { ...build.execution, id: "run" };
      await store.spawn({ ...build, id: "first", execution: running });
      expect(
        await rejection(store.spawn({ ...build, id: "second", execution: running })),
      ).toMatchObject({
        code: "PROCESS_CONFLICT",
        details: { id: "second", part: "execution" },
      });
      const ended = {
        ...build.execution,
        id: "old",
        role: "external",
      } as const;
      await store.spawn({ ...build, id: "late", execution: ended });
      expect(await store.waitForEnd("late")).toEqual({
        kind: "completed",
        value: 7,
      });
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );
}

const external: SpawnDraft = {
  ...build,
  execution: { ...build.execution, role: "external" },
};

const givenUp = {
  name: "given up",
  terminal: {
    state: "cancelled",
    output: { kind: "payload" },
  },
} as const;

function endTests(on: On): void {
  test(
    "no key of a caller stands in the way of its end",
    on(async ({ store, executions, database }) => {
      await store.spawn({
        ...build,
        eventTypes: [{ name: "e" }],
        execution: { ...build.execution, role: "external" },
      });
      const before = await stored(database);
      for (const replayKey of [
        "process:terminal:process.completed",
        "process:started:1",
        "process:external_ref",
        "signal:go:k",
      ])
        expect(await rejection(store.append("build", { type: "e", replayKey }))).toMatchObject({
          code: "REPLAY_KEY_RESERVED",
          details: { id: "build", replayKey },
        });
      expect(await stored(database)).toEqual(before);
      await executions.resolve("build", { kind: "completed", value: 7 });
      expect(await store.get("build")).toMatchObject({ status: "completed" });
    }),
  );

  test.each([
    [
      { kind: "completed", value: { url: "x" } },
      "completed",
      { kind: "completed", value: { url: "x" } },
    ],
    [
      { kind: "failed", error: { name: "E", message: "no disk", code: "E7" } },
      "failed",
      { kind: "failed", code: "E7", message: "no disk" },
    ],
    [
      { kind: "cancelled", reason: "enough" },
      "cancelled",
      { kind: "cancelled", message: "enough" },
    ],
    [{ kind: "timedOut" }, "failed", { kind: "failed", code: "timed_out" }],
  ] as const)(
    "ends with it, as %j, and its session is woken in the same transaction",
    (result, status, output) =>
      on(async ({ store, executions, queue, clock }) => {
        await store.spawn(external);
        const end = store.waitForEnd("build");
        clock.advance(5);
        await executions.resolve("build", result);
        expect(await end).toMatchObject(output);
        expect(await store.get("build")).toMatchObject({
          status,
          endedAt: 1_000_005,
          endedSequence: 1,
        });
        const { items: events } = await store.events("build");
        expect(events).toMatchObject([
          {
            type: `process.${status}`,
            end: status,
            executionVersion: 1,
            wake: { delivery: { kind: "queued", session: "s" } },
          },
        ]);
        const { items: batches } = await queue.list("s");
        expect(batches).toMatchObject([
          {
            source: { process: "build", sequence: 1 },
            items: [
              {
                kind: "process.wake",
                payload: {
                  process: "build",
                  type: `process.${status}`,
                  input: `Process build: ${status}.`,
                  causedBy: "turn-1",
                },
              },
            ],
          },
        ]);
        // The same answer again ends nothing twice.
        await executions.resolve("build", result);
        expect((await queue.list("s")).items).toHaveLength(1);
      })(),
  );

  test(
    "wakes with what it was declared to wake with, or not at all",
    on(async ({ store, executions, queue }) => {
      await store.spawn({
        ...external,
        eventTypes: [
          {
            name: "process.completed",
            wake: {
              input: { kind: "constant", value: "all done" },
              dedupe: { kind: "constant", value: "builds" },
            },
          },
        ],
      });
      await store.spawn({ ...external, id: "quiet", wakeTarget: null });
      await executions.resolve("quiet", { kind: "timedOut" });
      await executions.resolve("build", {
        kind: "completed",
        value: 1,
      });
      const { items: batches } = await queue.list("s");
      expect(batches).toMatchObject([{ items: [{ payload: { input: "all done" } }] }]);
    }),
  );

  test(
    "many that end at once, some with a process and some without, all end and wake once",
    on(async ({ store, executions, queue }) => {
      const ids = Array.from({ length: 12 }, (_, at) => `r${at}`);
      for (const [at, id] of ids.entries()) {
        const execution = { ...external.execution, id };
        if (at % 2 === 0) await store.spawn({ ...external, id, execution, grants: [] });
        else await executions.create(execution);
      }
      await Promise.all(
        ids.map((id) =>
          executions.append(id, 1, [
            { kind: "finished", result: { kind: "completed", value: id } },
          ]),
        ),
      );
      for (const [at, id] of ids.entries())
        if (at % 2 === 0)
          expect(await store.output(id)).toEqual({
            kind: "completed",
            value: id,
          });
      expect((await queue.list("s")).items).toHaveLength(6);
    }),
  );

  test(
    "[R8] cannot be ended by hand while its execution runs, so that the result of that is told",
    on(async ({ store, executions, database, queue }) => {
      await store.spawn({ ...external, eventTypes: [givenUp] });
      const before = await stored(database);
      const output = { kind: "failed", code: "c", message: "m" } as const;
      const event = { type: "given up", replayKey: "k", payload: "m" };
      for (const attempt of [
        () => store.complete("build", output),
        () => store.append("build", event),
        () => store.abandon("build", "m"),
      ])
        expect(await rejection(attempt())).toMatchObject({
          code: "PROCESS_SPAWNED",
          details: { id: "build", execution: "build" },
        });
      expect(await stored(database)).toEqual(before);
      await executions.resolve("build", { kind: "completed", value: 1 });
      expect(await store.output("build")).toEqual({
        kind: "completed",
        value: 1,
      });
      expect((await queue.list("s")).items).toHaveLength(1);
    }),
  );

  test(
    "[R8] cannot be claimed or started while its execution runs, which alone can end it",
    on(async ({ store, database }) => {
      await store.spawn(external);
      const worker = { owner: "w", incarnation: "1" };
      const before = await stored(database);
      expect(await rejection(store.claim("build", worker))).toMatchObject({
        code: "PROCESS_SPAWNED",
        details: { id: "build", execution: "build" },
      });
      expect(await stored(database)).toEqual(before);
      expect(await store.get("build")).toMatchObject({ attempts: 0 });
      expect(await store.holder("build")).toBeUndefined();
      // A lease from before its execution came, as an older release gave it out.
      await altered(database, sql`UPDATE holdfast_process SET execution = -1`);
      const held = await store.claim("build", worker);
      if (held.kind !== "acquired") throw new Error("The lease is free.");
      await altered(
        database,
        sql`UPDATE holdfast_process SET execution = (SELECT key FROM holdfast_execution)`,
      );
      const claimed = await stored(database);
      expect(await rejection(store.start(held.lease))).toMatchObject({ code: "PROCESS_SPAWNED" });
      expect(await stored(database)).toEqual(claimed);
    }),
  );

  test(
    "[R8] can be claimed, started and ended once its execution was removed by hand",
    on(async ({ store, database }) => {
      await store.spawn(external);
      await altered(database, sql`DELETE FROM holdfast_execution`);
      const held = await store.claim("build", { owner: "w", incarnation: "1" });
      if (held.kind !== "acquired") throw new Error("The lease is free.");
      expect(await store.start(held.lease)).toBe(1);
      const output = { kind: "completed", value: 2 } as const;
      expect(await store.complete("build", output, { fence: held.lease })).toMatchObject({
        status: "completed",
      });
    }),
  );

  test(
    "[R8] can be ended by hand once its execution was removed by hand",
    on(async ({ store, database }) => {
      await store.spawn(external);
      await altered(database, sql`DELETE FROM holdfast_execution`);
      const output = { kind: "completed", value: 2 } as const;
      expect(await store.complete("build", output)).toMatchObject({
        status: "completed",
      });
      expect(await store.output("build")).toEqual(output);
    }),
  );

  test(
    "[R8] that has ended answers as any other that has",
    on(async ({ store, executions }) => {
      await store.spawn(external);
      await executions.resolve("build", { kind: "timedOut" });
      expect(
        await rejection(store.complete("build", { kind: "completed", value: 1 })),
      ).toMatchObject({ code: "PROCESS_TERMINAL" });
    }),
  );
}

function cancelTests(on: On): void {
  test(
    "a cancel request ends an execution that nobody runs, after it was recorded",
    on(async ({ store, executions }) => {
      await store.spawn(build);
      expect(await store.cancel("build", { reason: "enough" })).toMatchObject({
        status: "cancelled",
      });
      const types = (await store.events("build")).items.map(({ type }) => type);
      expect(types).toEqual(["process.cancel_requested", "process.cancelled"]);
      expect(await store.output("build")).toEqual({
        kind: "cancelled",
        message: "enough",
      });
      expect(await executions.result("build")).toMatchObject({
        kind: "cancelled",
        reason: "enough",
      });
      expect(await store.cancel("build", { reason: "enough" })).toMatchObject({
        isReplay: true,
        status: "cancelled",
      });
    }),
  );

  test(
    "a cancel request marks an execution that somebody runs",
    on(async ({ store, executions }) => {
      await store.spawn(build);
      await executions.lock("build", 1, byAnn);
      expect(await store.cancel("build")).toMatchObject({
        status: "running",
      });
      expect(await executions.get("build")).toMatchObject({
        state: { lifecycle: "cancelling" },
      });
    }),
  );
}

function retentionTests(on: On): void {
  test(
    "retention keeps the execution until the process is pruned, and spawning again then finds the tombstone",
    on(async ({ store, executions, clock }) => {
      await store.spawn(external);
      await executions.resolve("build", {
        kind: "completed",
        value: 7,
      });
      clock.advance(10);
      expect(await executions.removeFinished({ olderThan: 0 })).toMatchObject({
        trees: 0,
        skipped: 1,
      });
      expect(await store.output("build")).toMatchObject({ value: 7 });
      expect(await store.prune({ olderThan: 0 })).toMatchObject({ pruned: 1 });
      expect(await executions.removeFinished({ olderThan: 0 })).toMatchObject({
        trees: 1,
        skipped: 0,
      });
      expect(await store.spawn(external)).toMatchObject({
        existed: true,
        record: { status: "completed" },
      });
      expect(await rejection(executions.get("build"))).toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
      expect(await store.get("build")).toMatchObject({ execution: "build" });
    }),
  );
}
