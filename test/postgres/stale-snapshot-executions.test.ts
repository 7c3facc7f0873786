import { describe, expect, test } from "vitest";
import { executions, parseExecutionId } from "../../src/executions.ts";
import { idSource } from "../../src/kernel.ts";
import { processes } from "../../src/processes.ts";
import { sessions } from "../../src/sessions.ts";
import { again, withStale } from "./stale-snapshot.ts";

describe("events appended with an old snapshot", () => {
  const id = parseExecutionId("order-42");
  const note = { kind: "patched", patch: "p", call: 1, seen: 0 } as const;

  test(
    "are refused when others were appended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(
          () => log.append(id, 1, [{ ...note, patch: "other" }]),
          log.append.prepare(id, 1, [note]),
        ),
      ).toMatchObject({ runs: again, code: "VERSION_CONFLICT" });
    }),
  );

  test(
    "answer as the first call did when they were appended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(() => log.append(id, 1, [note]), log.append.prepare(id, 1, [note])),
      ).toMatchObject({ runs: again, value: { nextVersion: 2 } });
    }),
  );

  test(
    "are refused when another run has locked the execution since",
    withStale(async ({ database, clock, after }) => {
      const log = executions(database);
      const ids = idSource(database);
      const holder = () => ({
        executor: ids.nextId("Exr"),
        run: ids.nextId("Run"),
      });
      await log.create({ id, function: "orders/fulfil" });
      const fence = holder();
      const terms = { limit: 1, functions: ["orders/fulfil"] };
      await log.lockPending({ ...terms, holder: fence, lease: "1s" });
      const outcome = await after(
        async () => {
          clock.advance(60_000);
          await log.expireTimers();
          clock.advance(60_000);
          await log.lockPending({ ...terms, holder: holder(), lease: "1s" });
        },
        log.append.prepare(id, 2, [note], { fence }),
      );
      expect(outcome.runs).toBe(again);
      expect(["LOCK_LOST", "VERSION_CONFLICT"]).toContain(outcome.code);
    }),
  );

  test(
    "are refused when the execution has ended since",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      await log.create({ id, function: "orders/fulfil" });
      expect(
        await after(
          () => log.finish(id, 1, { kind: "completed", value: 1 }),
          log.append.prepare(id, 1, [note]),
        ),
      ).toMatchObject({ runs: again, code: "EXECUTION_FINISHED" });
    }),
  );

  test(
    "and an execution that was created since is found",
    withStale(async ({ database, after }) => {
      const log = executions(database);
      const draft = { id, function: "orders/fulfil", input: { cents: 5 } };
      expect(await after(() => log.create(draft), log.create.prepare(draft))).toMatchObject({
        runs: again,
        value: { existed: true },
      });
    }),
  );
});

const eventTypes = [
  { name: "progress" },
  { name: "done", terminal: { state: "completed" } },
] as const;

describe("an event of a process appended with an old snapshot", () => {
  test(
    "is a replay when it was appended since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const event = { type: "progress", payload: 1, replayKey: "r" };
      const part = store.append.prepare("p", event);
      expect(await after(() => store.append("p", event), part)).toMatchObject({
        runs: again,
        value: { isReplay: true },
      });
    }),
  );

  test(
    "does not end a process that somebody has begun to work on since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const part = store.append.prepare("p", {
        type: "done",
        payload: 1,
        replayKey: "r",
      });
      expect(
        await after(() => store.claim("p", { owner: "w", incarnation: "1" }), part),
      ).toMatchObject({ runs: again, code: "PROCESS_LEASED" });
    }),
  );

  test(
    "is refused when the lease was taken over since",
    withStale(async ({ database, clock, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const claim = async (owner: string) => {
        const outcome = await store.claim("p", { owner, incarnation: owner }, { lease: "10s" });
        if (outcome.kind !== "acquired") throw new Error("It is not free.");
        return outcome.lease;
      };
      const fence = await claim("alice");
      const part = store.append.prepare("p", { type: "progress", fence });
      const rival = async (): Promise<void> => {
        clock.advance(20_000);
        await claim("bob");
      };
      expect(await after(rival, part)).toMatchObject({
        runs: again,
        code: "PROCESS_LEASE_LOST",
      });
    }),
  );

  test(
    "is refused when its lease was shown as over since, also by a clock that goes back",
    withStale(async ({ database, clock, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const outcome = await store.claim(
        "p",
        { owner: "alice", incarnation: "1" },
        { lease: "10s" },
      );
      if (outcome.kind !== "acquired") throw new Error("It is not free.");
      const fence = outcome.lease;
      const part = store.append.prepare("p", { type: "progress", fence });
      const rival = async (): Promise<void> => {
        clock.advance(20_000);
        expect(await store.holder("p")).toBeUndefined();
        clock.set(1_000);
      };
      expect(await after(rival, part)).toMatchObject({
        runs: again,
        code: "PROCESS_LEASE_LOST",
      });
    }),
  );

  test(
    "is refused when the process has ended since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await store.register({ id: "p", kind: "k", eventTypes });
      const part = store.append.prepare("p", {
        type: "done",
        payload: 1,
        replayKey: "r",
      });
      expect(
        await after(() => store.complete("p", { kind: "completed", value: 2 }), part),
      ).toMatchObject({ runs: again, code: "PROCESS_TERMINAL" });
    }),
  );

  test(
    "wakes nobody when the session was deleted since",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      await sessions(database).create("s");
      await store.register({
        id: "p",
        kind: "k",
        wakeTarget: "s",
        eventTypes: [{ name: "tell", wake: { input: { kind: "payload" } } }],
      });
      const part = store.append.prepare("p", { type: "tell", payload: "hi" });
      expect(await after(() => sessions(database).delete("s"), part)).toMatchObject({
        runs: again,
        value: { event: { wake: { delivery: { kind: "noTarget" } } } },
      });
    }),
  );

  test(
    "and a process that was registered or spawned since is found as it is",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      const process = { id: "p", kind: "k" } as const;
      await store.register(process);
      const part = store.register.prepare(process);
      expect(
        await after(() => store.complete("p", { kind: "completed", value: 2 }), part),
      ).toMatchObject({
        runs: again,
        value: { existed: true, record: { status: "completed" } },
      });
    }),
  );

  test(
    "and what was spawned since is not spawned twice",
    withStale(async ({ database, after }) => {
      const store = processes(database);
      const process = {
        id: "p",
        kind: "k",
        execution: { function: "ci/build" },
      } as const;
      const part = store.spawn.prepare(process);
      expect(await after(() => store.spawn(process), part)).toMatchObject({
        runs: again,
        value: { existed: true },
      });
    }),
  );
});
