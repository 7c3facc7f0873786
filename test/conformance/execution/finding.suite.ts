import { describe, expect, test } from "vitest";
import { executionStatuses } from "../../../src/model/execution/status.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import { T0, ann, byAnn, onExecutions } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { parentOf, result } from "./parent.ts";
import { createMany, newExecution } from "./records.ts";

type On = (body: (fixture: ExecutionFixture) => Promise<void>) => () => Promise<void>;

/** Finding runs, and seeing in the list why they do not go on. */
export function executionFindingSuite(backend: Backend): void {
  const on: On = (body) => onExecutions(backend, body);
  describe("finding executions", () => {
    filterTests(on);
    interruptionTests(on);
  });
  describe("how executions stand", () => {
    sleepTests(on);
    statusTests(on);
  });
}

async function found(
  { store }: ExecutionFixture,
  filter: Parameters<ExecutionFixture["store"]["list"]>[0],
): Promise<string> {
  const { items, next } = await store.list(filter);
  expect(next).toBeUndefined();
  return items.map(({ id }) => id).join(" ");
}

/** More than a page looks at, all of them created after the others. */
async function manySleepers({ database }: ExecutionFixture): Promise<void> {
  await createMany(
    database,
    Array.from({ length: 2_500 }, (_, index) =>
      newExecution(`sleeper-${index}`, {
        at: T0 + 1 + index,
        scheduledAt: T0 * 2,
        codeVersion: "v2",
      }),
    ),
  );
}

const parked = {
  kind: "parked",
  code: "NONDETERMINISM",
  reason: "call 3 was a sleep",
  codeVersion: "v7",
} as const;

function filterTests(on: On): void {
  test(
    "[R11] by code version and by concurrency key, also together with others",
    on(async (fixture) => {
      const { store } = fixture;
      const draft = { function: "f", concurrencyKey: "ada" };
      await store.create({ id: "a", ...draft, codeVersion: "v1" });
      await store.create({ id: "b", ...draft, codeVersion: "v2" });
      await store.create({ id: "c", function: "f", codeVersion: "v1" });
      await store.create({ id: "d", function: "f" });
      // The version of the last lock counts.
      await store.lock("c", 1, { ...byAnn, codeVersion: "v2" });
      expect(await found(fixture, { codeVersion: "v1" })).toBe("a");
      expect(await found(fixture, { codeVersion: "v2" })).toBe("c b");
      expect(await found(fixture, { codeVersion: "v" })).toBe("");
      expect(await found(fixture, { concurrencyKey: "ada" })).toBe("b a");
      for (const [filter, ids] of [
        [{ concurrencyKey: "ada", codeVersion: "v2" }, "b"],
        [{ codeVersion: "v2", status: "running" }, "c"],
        [{ concurrencyKey: "ada", status: "running" }, ""],
        [{ concurrencyKey: "ada", function: "f", idPrefix: "b" }, "b"],
      ] as const)
        expect(await found(fixture, filter)).toBe(ids);
      const { next } = await store.list({ concurrencyKey: "ada", limit: 1 });
      const second = { concurrencyKey: "ada", after: String(next) };
      expect(await found(fixture, second)).toBe("a");
    }),
  );

  test(
    "[R11] finds what is parked, paused or being cancelled behind thousands that sleep, on the first page",
    on(async (fixture) => {
      const { store } = fixture;
      for (const id of ["k", "p", "c", "r"])
        await store.create({ id, function: "f", concurrencyKey: id });
      await store.append("k", 1, [parked]);
      await store.pause("p");
      await store.lock("c", 1, { ...byAnn, lease: "1 day" });
      await store.cancel("c");
      await store.lock("r", 1, { ...byAnn, lease: "1 day" });
      await manySleepers(fixture);
      for (const [status, id] of [
        ["parked", "k"],
        ["paused", "p"],
        ["cancelling", "c"],
        ["running", "r"],
      ] as const) {
        expect(await found(fixture, { status })).toBe(id);
        expect(await found(fixture, { status, function: "f" })).toBe(id);
        expect(await found(fixture, { status, hideFinished: true })).toBe(id);
        expect(await found(fixture, { status, function: "g" })).toBe("");
      }
      expect(await found(fixture, { concurrencyKey: "k" })).toBe("k");
    }),
  );
}

function interruptionTests(on: On): void {
  test(
    "[R11] shows since when and why they do not go on",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await store.create({ id: "new", function: "f", isPaused: true });
      for (const id of ["paused", "request", "deadline", "parked", "active"])
        await store.create({
          id,
          function: "f",
          ...(id === "deadline" && { deadline: 20 }),
        });
      clock.advance(10);
      await store.pause("paused");
      for (const id of ["request", "deadline"]) {
        await store.lock(id, 1, { ...byAnn, lease: "1 day" });
        await store.append(id, 2, [step("it has begun")], { fence: ann });
      }
      await store.cancel("request", { reason: "no longer needed" });
      await store.append("parked", 1, [parked]);
      clock.advance(10);
      await store.expireTimers();
      const { items } = await store.list();
      const shown = Object.fromEntries(items.map(({ id, interruption }) => [id, interruption]));
      const expected = {
        new: { kind: "paused", since: T0 },
        paused: { kind: "paused", since: T0 + 10 },
        request: {
          kind: "cancelling",
          since: T0 + 10,
          reason: "no longer needed",
          cause: "request",
        },
        deadline: {
          kind: "cancelling",
          since: T0 + 20,
          reason: "the deadline has passed",
          cause: "deadline",
        },
        parked: {
          kind: "parked",
          since: T0 + 10,
          code: "NONDETERMINISM",
          reason: "call 3 was a sleep",
          codeVersion: "v7",
        },
        active: null,
      };
      expect(shown).toEqual(expected);
      for (const [id, interruption] of Object.entries(expected))
        expect(await store.get(id)).toMatchObject({ interruption });
      const tree = await store.tree("parked");
      expect(tree.items).toMatchObject([{ interruption: expected.parked }]);
    }),
  );

  test(
    "[R11] shows the last reason, and none once they go on or have ended",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await store.create({ id: "a", function: "f" });
      await store.append("a", 1, [parked]);
      await store.unpark("a");
      expect(await store.get("a")).toMatchObject({ interruption: null });
      clock.advance(5);
      await store.append("a", 3, [{ ...parked, reason: "again" }]);
      expect(await store.get("a")).toMatchObject({
        interruption: { kind: "parked", since: T0 + 5, reason: "again" },
      });
      clock.advance(5);
      await store.unpark("a");
      await store.pause("a");
      expect(await store.get("a")).toMatchObject({
        interruption: { kind: "paused", since: T0 + 10 },
      });
      await store.cancel("a", { force: true });
      expect(await store.get("a")).toMatchObject({
        status: "cancelled",
        interruption: null,
      });
    }),
  );
}

function sleepTests(on: On): void {
  test(
    "[R11] tells until when they sleep: the instant they wait for, or the earliest delay that is open and not paused",
    on(async (fixture) => {
      const { store, clock } = fixture;
      const until = async (): Promise<number | null> => {
        const [shown] = (await store.list()).items;
        expect(await store.get("a")).toMatchObject({
          sleepsUntil: shown?.sleepsUntil,
        });
        return shown?.sleepsUntil ?? null;
      };
      await store.create({ id: "a", function: "f" });
      expect(await until()).toBe(null);
      await store.append("a", 1, [
        delayRequested("Delay_a.o:1_1", T0 + 300),
        delayRequested("Delay_a.o:2_1", T0 + 100),
        delayRequested("Delay_a.o:3_1", T0 + 200),
      ]);
      expect(await until()).toBe(T0 + 100);
      await store.pauseDelay("Delay_a.o:2_1");
      expect(await until()).toBe(T0 + 200);
      await store.unpauseDelay("Delay_a.o:2_1");
      clock.advance(100);
      await store.expireTimers();
      expect(await until()).toBe(T0 + 200);
      await store.cancelDelay("Delay_a.o:3_1");
      expect(await until()).toBe(T0 + 300);
      await store.append("a", 4, [waiting(2, clock.now(), T0 + 250)]);
      expect(await until()).toBe(T0 + 250);
      await store.signal("a", "go", 1);
      expect(await until()).toBe(T0 + 300);
      await store.finish("a", 5, result);
      expect(await until()).toBe(null);
    }),
  );
}

function statusTests(on: On): void {
  test(
    "[R11] a run whose answer has come is running as long as its worker keeps it, and then due",
    on(async (fixture) => {
      const { store, clock } = fixture;
      const version = await parentOf(fixture, ["p.n:x_1"]);
      const status = async (): Promise<string> => (await store.get("p")).status;
      expect(await status()).toBe("pending");
      await store.lock("p", version, { holder: ann, lease: 10_000 });
      expect(await status()).toBe("running");
      await store.append("p", version + 1, [joinNext("n:x", T0 + 10_000)], {
        fence: ann,
      });
      expect(await status()).toBe("blocked");
      clock.advance(1_000);
      await store.finish("p.n:x_1", 1, result);
      expect(await status()).toBe("running");
      expect(await found(fixture, { status: "running" })).toBe("p");
      expect(await found(fixture, { status: "scheduled" })).toBe("");
      clock.set(T0 + 9_999);
      expect(await status()).toBe("running");
      clock.set(T0 + 10_000);
      expect(await status()).toBe("pending");
      expect(await found(fixture, { status: "running" })).toBe("");
      expect(await found(fixture, { status: "pending" })).toBe("p");
    }),
  );

  test(
    "[R11] a run that waits until an instant is blocked until then, and running when its worker keeps it for longer",
    on(async (fixture) => {
      const { store, clock } = fixture;
      for (const [id, leaseUntil] of [
        ["cold", T0],
        ["hot", T0 + 900],
      ] as const) {
        await store.createLocked({ id, function: "f" }, byAnn);
        await store.append(id, 2, [waiting(0, leaseUntil, T0 + 800)]);
      }
      const statuses = async (): Promise<string> =>
        `${(await store.get("cold")).status} ${(await store.get("hot")).status}`;
      expect(await statuses()).toBe("blocked blocked");
      clock.set(T0 + 799);
      expect(await statuses()).toBe("blocked blocked");
      expect(await found(fixture, { status: "running" })).toBe("");
      clock.set(T0 + 800);
      expect(await statuses()).toBe("pending running");
      expect(await found(fixture, { status: "running" })).toBe("hot");
      clock.set(T0 + 900);
      expect(await statuses()).toBe("pending pending");
    }),
  );

  test(
    "[R11] lists, counts and single reads agree on the one status of each",
    on(async (fixture) => {
      const { store, clock } = fixture;
      await oneOfEach(fixture);
      for (const instant of [T0, T0 + 999, T0 + 1_000, T0 + 1_001, T0 * 2]) {
        clock.set(instant);
        const { items } = await store.list();
        const single: string[] = [];
        const filtered: string[] = [];
        for (const { id } of items) single.push(`${id} ${(await store.get(id)).status}`);
        for (const status of executionStatuses)
          for (const { id } of (await store.list({ status })).items)
            filtered.push(`${id} ${status}`);
        expect(filtered.toSorted()).toEqual(single.toSorted());
        expect(items.map(({ id, status }) => `${id} ${status}`)).toEqual(single);
        const { counts, unreadable } = await store.count();
        expect(unreadable).toBe(0);
        for (const { status, count } of counts)
          expect([status, count]).toEqual([
            status,
            items.filter((item) => item.status === status).length,
          ]);
      }
    }),
  );
}

/** Executions of one function in every state, some of which time moves. */
async function oneOfEach(fixture: ExecutionFixture): Promise<void> {
  const { store } = fixture;
  const create = (id: string, more: object = {}): Promise<unknown> =>
    store.create({ id, function: "f", ...more });
  await create("due");
  await create("later", { startAt: { at: T0 + 1_000 } });
  await create("external", { role: "external" });
  await create("paused", { isPaused: true });
  await create("parked");
  await store.append("parked", 1, [parked]);
  for (const id of ["locked", "cancelling", "asleep", "hot", "nap", "hotNap"]) {
    await create(id);
    await store.lock(id, 1, byAnn);
  }
  await store.cancel("cancelling");
  for (const [id, event] of [
    ["asleep", waiting(0, T0)],
    ["hot", waiting(0, T0 + 1_000)],
    ["nap", waiting(0, T0, T0 + 1_000)],
    ["hotNap", waiting(0, T0 + 1_001, T0 + 1_000)],
  ] as const)
    await store.append(id, 2, [event]);
  await store.signal("hot", "go", 1);
  for (const kind of ["completed", "timedOut"] as const) {
    await create(kind);
    await store.finish(kind, 1, kind === "completed" ? result : { kind: "timedOut" });
  }
}
