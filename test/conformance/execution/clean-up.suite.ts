import { describe, expect, test } from "vitest";
import { executionContext } from "../../../src/stores/execution/context.ts";
import { releaseExecution } from "../../../src/stores/execution/timers/release.ts";
import { runInterrupted } from "../../../src/stores/execution/topics.ts";
import type { Backend } from "../backend.ts";
import { executionId } from "./awaited-executions.ts";
import { joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  annLater,
  bob,
  byAnn,
  byBob,
  dump,
  lockedIds,
  onExecutions,
  refusal,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** A workflow "a" that has recorded a step, and that nobody has. */
async function withHistory({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.lock("a", 1, byAnn);
  await store.append("a", 2, [step("booked")], { fence: ann });
  await store.unlock("a", 3, { holder: ann, reason: "busy", after: 500 });
}

/** Where a workflow with a history stands, what it is then, and when it is due once it was asked to end. */
const standings = [
  [
    "is due later",
    ({ store }: ExecutionFixture) =>
      store.append("a", 2, [step("s"), { kind: "unlocked", dueAt: T0 + 500, reason: "busy" }]),
    { dueAt: T0 + 10, leaseUntil: null },
  ],
  [
    "waits for a join set",
    ({ store }: ExecutionFixture) => store.append("a", 2, [joinNext("n:x", T0)]),
    { dueAt: T0 + 10, leaseUntil: null },
  ],
  [
    "waits, and its lease has passed",
    ({ store }: ExecutionFixture) => store.append("a", 2, [waiting(0, T0 + 10)]),
    { dueAt: T0 + 10, leaseUntil: null },
  ],
  [
    "waits, and its worker keeps it in memory",
    ({ store }: ExecutionFixture) => store.append("a", 2, [waiting(0, T0 + 500)]),
    { dueAt: T0 + 500, leaseUntil: T0 + 500 },
  ],
  [
    "was answered, and its worker keeps it in memory",
    async ({ store }: ExecutionFixture) => {
      await store.signal("a", "go", 1);
      await store.append("a", 2, [waiting(0, T0 + 500)]);
    },
    { dueAt: T0 + 500, leaseUntil: T0 + 500 },
  ],
  [
    "is paused",
    async ({ store }: ExecutionFixture) => {
      await store.append("a", 2, [waiting(0, T0)]);
      await store.pause("a");
    },
    { dueAt: T0 + 10, leaseUntil: null },
  ],
  [
    "is parked",
    ({ store }: ExecutionFixture) =>
      store.append("a", 2, [
        waiting(0, T0),
        { kind: "parked", code: "X", reason: "x", codeVersion: null },
      ]),
    { dueAt: T0 + 10, leaseUntil: null },
  ],
] as const;

export function executionCleanUpSuite(backend: Backend): void {
  describe("a workflow with a history that is asked to end", () => {
    test.each(standings)("[R9] is due when it %s", (_, before, due) =>
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await before(fixture);
        clock.set(T0 + 10);
        expect(await store.cancel("a", { reason: "why" })).toBe("requested");
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "cancelling",
          pending: {
            kind: "pending",
            ...due,
            lastLock: { ...ann, owner: database.owner },
          },
        });
        const after = await dump(fixture);
        expect(await store.cancel("a")).toBe("alreadyCancelling");
        expect(await dump(fixture)).toEqual(after);
        clock.set(due.dueAt - 1);
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        clock.set(due.dueAt);
        await store.waitForPending(["f"], { timeout: 0 });
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
      })(),
    );

    test(
      "[R9] comes to its worker with why, waits and wakes as any, and ends",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await withHistory(fixture);
        clock.advance(20);
        await store.cancel("a", { reason: "not needed" });
        clock.advance(5);
        const { locked } = await store.lockPending({
          ...byBob,
          functions: ["f"],
          limit: 1,
        });
        expect(locked).toMatchObject([
          {
            id: "a",
            nextVersion: 6,
            history: [{ version: 2 }],
            cancellation: {
              requestedAt: T0 + 20,
              reason: "not needed",
              cause: "request",
            },
          },
        ]);
        const child = "a.n:undo_1";
        await store.append("a", 6, [step("refunded"), joinNext("n:undo", clock.now())], {
          fence: bob,
          children: [{ id: child, function: "undo" }],
        });
        expect(await lockedIds(store, 9, "f")).toEqual([]);
        clock.advance(5);
        await store.finish(child, 1, { kind: "completed", value: 1 });
        expect(await lockedIds(store, 9, "f")).toEqual(["a"]);
        await store.finish("a", 9, { kind: "cancelled" }, { fence: bob });
        expect(await standing(fixture, "a")).toMatchObject({
          lifecycle: "active",
          pending: { kind: "finished", resultKind: "cancelled" },
        });
      }),
    );

    test(
      "[R9] takes a child from its worker's append, and from nobody else",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withHistory(fixture);
        await store.cancel("a");
        const draft = { id: "a.n:x_1", function: "g" };
        expect(await refusal(fixture, () => store.create(draft))).toBe("EXECUTION_CANCELLING");
        await store.lock("a", 5, byBob);
        await store.append("a", 6, [step("s")], {
          fence: bob,
          children: [draft],
        });
        expect((await store.get("a.n:x_1")).parent).toBe("a");
      }),
    );

    test(
      "[R9] goes on cleaning up after a death and after its lock ran out, however often",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await withHistory(fixture);
        await store.cancel("a");
        const once = { maxRetries: 0, backoffMs: 100, backoffMaxMs: 1_000 };
        const lockAgain = async (): Promise<number> => {
          const { pending } = await standing(fixture, "a");
          if (pending.kind !== "pending") throw new Error(pending.kind);
          clock.set(Math.max(clock.now(), pending.dueAt));
          const { locked } = await store.lockPending({
            holder: annLater,
            lease: 1_000,
            retry: once,
            functions: ["f"],
            limit: 1,
            suspects: "alone",
          });
          return locked[0]?.nextVersion ?? 0;
        };
        for (let round = 0; round < 6; round += 1) {
          await lockAgain();
          await database.write(releaseExecution(executionContext(database)), {
            id: executionId("a"),
            owner: database.owner,
            at: clock.now(),
            random: 0,
          });
        }
        for (let round = 0; round < 3; round += 1) {
          await lockAgain();
          clock.advance(1_000);
          expect((await store.expireTimers()).locks).toBe(1);
        }
        const version = await lockAgain();
        await store.append("a", version, [step("cleaned")], {
          fence: annLater,
        });
        expect((await standing(fixture, "a")).lifecycle).toBe("cancelling");
        await store.finish("a", version + 1, { kind: "cancelled" });
      }),
    );

    test(
      "[R9] its worker that keeps it in memory goes on behind the request, and extends",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.lock("a", 1, byAnn);
        await store.append("a", 2, [waiting(0, T0 + 500)], { fence: ann });
        await store.cancel("a");
        expect(
          await refusal(fixture, () => store.append("a", 4, [step("late")], { fence: bob })),
        ).toBe("LOCK_LOST");
        await store.append("a", 4, [step("cleaned")], { fence: ann });
        await store.extend("a", 5, byAnn);
        expect((await standing(fixture, "a")).pending.kind).toBe("locked");
        await store.finish("a", 6, { kind: "cancelled" }, { fence: ann });
      }),
    );

    test(
      "[R9] its deadline is such a request too",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f", deadline: 100 });
        await store.append("a", 1, [step("s"), waiting(0, T0)]);
        clock.advance(100);
        expect((await store.expireTimers()).deadlines).toBe(1);
        const { locked } = await store.lockPending({
          ...byBob,
          functions: ["f"],
          limit: 1,
        });
        expect(locked.map(({ cancellation }) => cancellation)).toEqual([
          {
            requestedAt: T0 + 100,
            reason: "the deadline has passed",
            cause: "deadline",
          },
        ]);
      }),
    );
  });

  hints(backend);
}

function hints(backend: Backend): void {
  describe("whoever runs an execution", () => {
    test(
      "[R9] is told, by its id, when it is paused, unpaused, parked, asked to end or ended over it",
      onExecutions(backend, async ({ store, clock, database }) => {
        const heard: string[] = [];
        database.subscribe((hint) => {
          if (hint.kind === "change" && hint.operation === runInterrupted) heard.push(hint.key);
        });
        const during = async (call: () => Promise<unknown>): Promise<readonly string[]> => {
          heard.length = 0;
          await call();
          return [...heard];
        };
        for (const id of ["a", "late"]) {
          await store.create({ id, function: "f", deadline: 900 });
          await store.lock(id, 1, byAnn);
        }
        await store.create({ id: "act", function: "f", role: "activity" });
        await store.lock("act", 1, byAnn);
        expect(await during(() => store.pause("a"))).toEqual(["a"]);
        expect(await during(() => store.pause("a"))).toEqual([]);
        expect(
          await during(() =>
            store.append("a", 3, [step("quiet"), waiting(0, T0)], {
              fence: ann,
            }),
          ),
        ).toEqual([]);
        expect(await during(() => store.unpause("a"))).toEqual(["a"]);
        expect(
          await during(() =>
            store.append("a", 6, [{ kind: "parked", code: "X", reason: "x", codeVersion: null }]),
          ),
        ).toEqual(["a"]);
        expect(await during(() => store.unpark("a"))).toEqual(["a"]);
        expect(await during(() => store.cancel("a"))).toEqual(["a"]);
        expect(await during(() => store.cancel("a"))).toEqual([]);
        expect(await during(() => store.cancel("act"))).toEqual(["act"]);
        expect(await during(() => store.cancelActivity("act"))).toEqual(["act"]);
        clock.advance(900);
        expect(await during(() => store.expireTimers())).toEqual(["late"]);
        expect(await during(() => store.cancel("late", { force: true }))).toEqual(["late"]);
      }),
    );
  });
}
