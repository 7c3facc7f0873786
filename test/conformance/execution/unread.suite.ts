import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import type { LockedExecution } from "../../../src/stores/execution/lock/locked.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { childRequested, delayRequested, step, waiting } from "./execution-events.ts";
import { T0, byAnn, dump, onExecutions, refusal, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";
import { result } from "./parent.ts";

/** A new start that says what its run had read. */
function continued(seen?: number, unread?: readonly number[]): GivenEvent {
  return {
    kind: "continued",
    input: "new",
    ...(seen !== undefined && { seen }),
    ...(unread && { unread }),
  };
}

/** Run "a" with signals: 1 go, 2 go, 3 stop, 4 go, each sent a millisecond after the one before. */
async function signalled({ store, clock }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  for (const [n, name] of ["go", "go", "stop", "go"].entries()) {
    await store.signal("a", name, n + 1, { key: `key-${n + 1}` });
    clock.advance(1);
  }
}

async function locked({ store }: ExecutionFixture, id = "a"): Promise<LockedExecution> {
  const { nextVersion } = await store.get(id);
  return store.lock(id, nextVersion, byAnn);
}

async function unreadOf(fixture: ExecutionFixture, id = "a"): Promise<readonly number[]> {
  const { unreadSignals } = await locked(fixture, id);
  return unreadSignals.map(({ seq }) => seq);
}

export function executionUnreadSuite(backend: Backend): void {
  describe("signals that were not read before a new start", () => {
    test(
      "[R2] come with the lock of the new run, in front of its responses, also after another new start",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.receive("a", "go", 1);
        await store.append("a", 2, [continued()]);
        await store.signal("a", "go", 5);
        const first = await locked(fixture);
        expect(first).toMatchObject({
          responsesFrom: 4,
          unreadSignals: [
            { seq: 2, at: T0 + 1, response: { signal: "go", value: 2 } },
            { seq: 3, response: { signal: "stop", value: 3 } },
            { seq: 4, response: { signal: "go", value: 4 } },
          ],
          hasMoreUnreadSignals: false,
          responses: [{ seq: 5 }],
        });
        await store.append("a", 4, [continued()]);
        expect(await unreadOf(fixture)).toEqual([2, 3, 4, 5]);
      }),
    );

    test(
      "[R2] answer a wait that has not seen them, at the time they came",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [continued(3, [2]), waiting(0, T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 1,
        });
        await store.append("a", 3, [waiting(2, T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 3,
        });
        // All that it could read it has seen; what was read before is no news.
        await store.append("a", 4, [waiting(4, T0)]);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
      }),
    );

    test(
      "[R2] answer a wait only before what came to the new run: the first of all is its time",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [continued(4, [])]);
        clock.set(T0 + 10);
        await store.append("a", 2, [delayRequested("Delay_a.o1:1_1", T0)]);
        clock.set(T0 + 20);
        await store.signal("a", "go", 5);
        await store.append("a", 3, [waiting(0, T0)]);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 10,
        });
      }),
    );

    test(
      "[R2] are those that the run says it had not read, and those behind what it had seen",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [continued(3, [2])]);
        expect(await unreadOf(fixture)).toEqual([2, 4]);
        // They are taken in their order, past what was read.
        expect(await store.receive("a", "go", 3)).toMatchObject({ seq: 2 });
        expect(await store.receive("a", "stop", 4)).toBeUndefined();
        expect(await store.receive("a", "go", 4)).toMatchObject({
          seq: 4,
          value: 4,
        });
        expect(await store.receive("a", "go", 5)).toBeUndefined();
        // Until the next new start they belong to this run, whose replay needs them.
        await store.unlock("a", 5, { holder: byAnn.holder, reason: "r" });
        expect(await unreadOf(fixture)).toEqual([2, 4]);
        await store.append("a", 7, [continued()]);
        expect(await unreadOf(fixture)).toEqual([]);
      }),
    );

    test(
      "[R2] are all of them when the run had seen nothing, and none when it had read all",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [continued(0, [])]);
        expect(await unreadOf(fixture)).toEqual([1, 2, 3, 4]);
        await store.append("a", 3, [continued(4, [])]);
        expect(await unreadOf(fixture)).toEqual([]);
        expect((await store.responses("a")).items).toHaveLength(4);
      }),
    );

    test(
      "[R2] cannot be what is no signal, was taken, was read before or is beyond what was seen",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [childRequested("n:x", "a.n:x_1", "g")], {
          children: [{ id: "a.n:x_1", function: "g" }],
        });
        await store.finish("a.n:x_1", 1, result);
        await store.receive("a", "go", 2);
        const refused = async (event: GivenEvent, version: number) => {
          const call = () => store.append("a", version, [step("s"), event]);
          expect(await refusal(fixture, call)).toBe("EVENTS_INVALID");
          return (await rejection(call())).details?.["reason"];
        };
        // Taken by `receive`; a child's answer; not there; not seen.
        expect(await refused(continued(5, [1]), 3)).toBe("response");
        expect(await refused(continued(5, [5]), 3)).toBe("response");
        expect(await refused(continued(6, []), 3)).toBe("response");
        expect(await refused(continued(2, [3]), 3)).toBe("response");
        expect(await refused(continued(undefined, [2]), 3)).toBe("response");
        for (const unread of [[1.5], [-1], [0], ["2"], 2])
          expect(await refused(continued(5, unread as unknown as number[]), 3)).toBe("field");
        await store.append("a", 3, [continued(5, [3])]);
        expect(await refused(continued(5, [2]), 4)).toBe("response");
        await store.append("a", 4, [continued(5, [3])]);
        expect(await unreadOf(fixture)).toEqual([3]);
      }),
    );

    test(
      "[R2] are part of what is repeated, as far as they were told",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        const told = (...unread: readonly number[]) => store.append("a", 1, [continued(4, unread)]);
        const first = await told(2, 4);
        const before = await dump(fixture);
        expect(await told(4, 2, 2)).toEqual(first);
        expect(await dump(fixture)).toEqual(before);
        for (const call of [
          () => told(2),
          () => told(),
          () => store.append("a", 1, [continued(3, [2])]),
          () => store.append("a", 1, [continued()]),
        ])
          expect(await refusal(fixture, call)).toBe("VERSION_CONFLICT");
        const workedOut = () => store.append("a", 2, [continued()]);
        const second = await workedOut();
        await store.signal("a", "go", 5);
        expect(await workedOut()).toEqual(second);
        expect(await refusal(fixture, () => store.append("a", 2, [continued(4, [2, 4])]))).toBe(
          "VERSION_CONFLICT",
        );
      }),
    );

    test(
      "[R2] come in pages with the lock, and are read on by the list of responses",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        for (let n = 0; n < 250; n += 1) await store.signal("a", "go", n);
        await store.append("a", 1, [
          continued(
            250,
            Array.from({ length: 250 }, (_, n) => n + 1).filter((seq) => seq !== 100),
          ),
        ]);
        const { unreadSignals, hasMoreUnreadSignals, responses } = await locked(fixture);
        expect(hasMoreUnreadSignals).toBe(true);
        expect(responses).toEqual([]);
        expect(unreadSignals).toHaveLength(200);
        expect(unreadSignals.slice(98, 100).map(({ seq }) => seq)).toEqual([99, 101]);
        const { items } = await store.responses("a", {
          unread: true,
          from: (unreadSignals.at(-1)?.seq ?? 0) + 1,
        });
        expect(items.map(({ seq }) => seq)).toEqual(Array.from({ length: 49 }, (_, n) => 202 + n));
        const around = await store.responses("a", {
          unread: true,
          from: 99,
          limit: 2,
        });
        expect(around.items.map(({ seq }) => seq)).toEqual([99, 101]);
      }),
    );

    test(
      "[R2] are read within the bytes that a lock may read, one that is larger alone",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        const large = "x".repeat(600_000);
        await store.create({ id: "a", function: "f" });
        for (let n = 0; n < 3; n += 1) await store.signal("a", "go", large);
        await store.append("a", 1, [continued(), step("s", large)]);
        expect(await locked(fixture)).toMatchObject({
          unreadSignals: [{ seq: 1 }],
          hasMoreUnreadSignals: true,
          history: [],
          hasMoreHistory: true,
        });
      }),
    );

    test(
      "[R2] are those of a copy too: from behind the new start, from before it, and tried again",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await signalled(fixture);
        await store.append("a", 1, [step("one", 1, 1, 4), continued(4, [2])]);
        await store.append("a", 3, [step("two", 1, 1, 2), continued(2, [])]);
        await store.finish("a", 5, {
          kind: "failed",
          error: { name: "Error", message: "no" },
        });
        await store.fork("a", 4, { id: "behind" });
        await store.retry("a", { id: "again" });
        await store.fork("a", 3, { id: "between" });
        await store.fork("a", 1, { id: "before" });
        expect(await unreadOf(fixture, "behind")).toEqual([]);
        expect(await unreadOf(fixture, "again")).toEqual([]);
        expect(await unreadOf(fixture, "between")).toEqual([2]);
        // The first run can take them all again.
        expect(await unreadOf(fixture, "before")).toEqual([]);
        expect(await locked(fixture, "before")).toMatchObject({
          responses: [{ seq: 1 }, { seq: 2 }, { seq: 3 }, { seq: 4 }],
        });
        expect(await store.receive("before", "go", 5)).toMatchObject({
          seq: 1,
        });
      }),
    );

    test(
      "[R2] may be many, if they are in few pieces",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const odd = Array.from({ length: 10_001 }, (_, n) => 2 * n + 1);
        const error = await rejection(store.append("a", 1, [continued(30_000, odd)]));
        expect(error).toMatchObject({
          code: "EVENTS_INVALID",
          details: { reason: "field", path: "events[0].unread" },
        });
      }),
    );
  });
}
