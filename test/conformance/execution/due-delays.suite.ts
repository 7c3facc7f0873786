import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { parseDelayId } from "../../../src/model/ids/delay-id.ts";
import { answerDueDelays } from "../../fixtures/execution-operations.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, step, waiting } from "./execution-events.ts";
import {
  T0,
  ann,
  byAnn,
  dump,
  onExecutions,
  openDelays,
  refusal,
  responsesOf,
  standing,
} from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

/** The n-th delay of execution "a", asked for at a call. */
function sleep(n: number, expiresAt: number, call = 0): GivenEvent {
  return { ...delayRequested(delay(n), expiresAt), call } as GivenEvent;
}

const delay = (n: number): string => `Delay_a.n:x_${n}`;

async function sources(fixture: ExecutionFixture): Promise<readonly string[]> {
  return (await responsesOf(fixture, "a")).map(([, , , source]) => source);
}

export function executionDueDelaysSuite(backend: Backend): void {
  describe("a delay that was paused after it was found to be over", () => {
    test(
      "stays, and a sibling that was found with it is answered",
      onExecutions(backend, async (fixture) => {
        const { store, clock, database } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [1, 2, 3].map((n) => sleep(n, T0 + n)),
        );
        clock.set(T0 + 10);
        await store.pauseDelay(delay(2));
        const found = [1, 2, 3].map((n) => parseDelayId(delay(n)));
        const due = { delays: found, at: clock.now() };
        expect(await database.write(answerDueDelays, due)).toEqual({ answered: 2, left: [] });
        expect(await sources(fixture)).toEqual([1, 3].map(delay));
        expect(await openDelays(fixture)).toEqual([delay(2)]);
        await store.unpauseDelay(delay(2));
        expect(await store.expireTimers()).toMatchObject({ delays: 1 });
        expect(await sources(fixture)).toEqual([1, 3, 2].map(delay));
      }),
    );
  });

  describe("a delay that is over when it is asked for", () => {
    test(
      "[R13] is answered in the same transaction, at its instant and not before",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        const answered = store.waitForResponses("a", 0);
        expect(await store.append("a", 1, [sleep(1, T0), sleep(2, T0 + 1)])).toEqual({
          nextVersion: 3,
          at: T0,
        });
        expect(await responsesOf(fixture, "a")).toEqual([
          [1, T0, "n:x", delay(1), "expired", null],
        ]);
        expect(await openDelays(fixture)).toEqual([delay(2)]);
        expect(await answered).toHaveLength(1);
        expect(await store.expireTimers()).toMatchObject({ delays: 0 });
        expect(await store.cancelDelay(delay(1))).toBe("alreadyExpired");
      }),
    );

    test(
      "[R13] comes after others that were over before it; equal ones in the order of their calls",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [
          sleep(1, T0, 7),
          sleep(2, T0 - 5, 8),
          step("between"),
          sleep(3, T0, 6),
          sleep(4, T0, 7),
        ]);
        expect(await sources(fixture)).toEqual([2, 3, 1, 4].map(delay));
      }),
    );

    test.each([
      ["of its set", joinNext("n:x", T0 + 50)],
      ["of anything", waiting(0, T0 + 50)],
    ])(
      "[R13] ends a wait for the next %s in the same append: due once the lease has passed",
      (_, wait) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await store.create({ id: "a", function: "f" });
          await store.lock("a", 1, byAnn);
          await store.append("a", 2, [sleep(1, T0), wait], { fence: ann });
          expect((await standing(fixture, "a")).pending).toMatchObject({
            kind: "pending",
            dueAt: T0 + 50,
            leaseUntil: T0 + 50,
          });
          // Without it, it waits.
          await store.create({ id: "b", function: "f" });
          await store.append("b", 1, [wait]);
          expect((await standing(fixture, "b")).pending.kind).toBe("blocked");
        })(),
    );

    test(
      "[R13] cannot be asked for twice, before or after, in one append or in two",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [sleep(1, T0), sleep(2, T0 + 9)]);
        for (const events of [
          [sleep(1, T0)],
          [sleep(1, T0 + 9)],
          [sleep(2, T0)],
          [sleep(3, T0), sleep(3, T0)],
          [sleep(3, T0), sleep(3, T0 + 9)],
          [sleep(3, T0 + 9), sleep(3, T0)],
        ])
          expect(await refusal(fixture, () => store.append("a", 3, events))).toBe("DELAY_EXISTS");
      }),
    );

    test(
      "[R13] answers nobody when the run ends or starts anew with it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [sleep(1, T0), { kind: "continued", input: 1 }]);
        expect(await responsesOf(fixture, "a")).toEqual([]);
        await store.finish("a", 3, { kind: "timedOut" }, { events: [step("last")] });
        await store.create({ id: "b", function: "f" });
        await store.finish(
          "b",
          1,
          { kind: "timedOut" },
          { events: [delayRequested("Delay_b.n:x_1", T0)] },
        );
        expect(await responsesOf(fixture, "b")).toEqual([]);
      }),
    );

    test(
      "[R13] is answered once when the append is repeated",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        const append = () => store.append("a", 1, [sleep(1, T0 - 1), sleep(2, T0 + 5)]);
        expect(await append()).toEqual({ nextVersion: 3, at: T0 });
        const before = await dump(fixture);
        // By now the second is over too; its own timer answers it.
        clock.advance(10);
        expect(await append()).toEqual({ nextVersion: 3, at: T0 });
        expect(await dump(fixture)).toEqual(before);
      }),
    );
  });

  withdrawal(backend);
}

function withdrawal(backend: Backend): void {
  describe("a delay that is withdrawn", () => {
    test(
      "[R13] goes without an answer, with the events that are appended; what is not open is no mistake",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append(
          "a",
          1,
          [1, 2, 3].map((n) => sleep(n, T0 + n)),
        );
        await store.cancelDelay(delay(3));
        await store.append("a", 4, [step("race is over")], {
          withdraw: [delay(1), delay(3), delay(9)],
        });
        expect(await openDelays(fixture)).toEqual([delay(2)]);
        clock.advance(10);
        expect(await store.expireTimers()).toMatchObject({ delays: 1 });
        expect(await sources(fixture)).toEqual([delay(3), delay(2)]);
      }),
    );

    test(
      "[R13] may be one that the same append asks for, also when it is over",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [sleep(1, T0 + 9), sleep(2, T0), sleep(3, T0), waiting(0, T0)], {
          withdraw: [delay(1), delay(2)],
        });
        expect(await openDelays(fixture)).toEqual([]);
        expect(await sources(fixture)).toEqual([delay(3)]);
      }),
    );

    test(
      "[R13] is part of what is repeated: the same again answers the same, another list is another append",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [sleep(1, T0 + 9), sleep(2, T0 + 9)]);
        const append = (...withdraw: readonly string[]) =>
          store.append("a", 3, [step("one"), step("two")], { withdraw });
        expect(await append(delay(1))).toEqual({ nextVersion: 5, at: T0 });
        const before = await dump(fixture);
        expect(await append(delay(1), delay(1))).toEqual({
          nextVersion: 5,
          at: T0,
        });
        expect(await dump(fixture)).toEqual(before);
        for (const call of [
          () => append(),
          () => append(delay(1), delay(2)),
          () => append(delay(2)),
        ])
          expect(await refusal(fixture, call)).toBe("VERSION_CONFLICT");
      }),
    );

    test(
      "[R13] belongs to the execution, and fences and refusals protect it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f" });
        await store.append("b", 1, [delayRequested("Delay_b.n:x_1", T0 + 9)]);
        await store.append("a", 1, [sleep(1, T0 + 9)]);
        const withdraw = (list: readonly string[], events: readonly GivenEvent[] = [step("s")]) =>
          refusal(fixture, () => store.append("a", 2, events, { withdraw: list }));
        expect(await withdraw(["Delay_b.n:x_1"])).toBe("EVENTS_INVALID");
        expect(await withdraw(["a.n:x_1"])).toBe("ID_MALFORMED");
        expect(await withdraw([delay(1)], [sleep(1, T0)])).toBe("DELAY_EXISTS");
        expect(
          await refusal(fixture, () =>
            store.append("a", 2, [step("s")], {
              withdraw: [delay(1)],
              fence: ann,
            }),
          ),
        ).toBe("LOCK_LOST");
        const many = Array.from({ length: 1_001 }, (_, n) => delay(n + 1));
        expect(await withdraw(many)).toBe("EVENTS_INVALID");
        expect(
          (await rejection(store.append("a", 2, [step("s")], { withdraw: many }))).details,
        ).toMatchObject({ reason: "tooMany" });
      }),
    );

    test(
      "[R13] is not asked for anew by a copy from behind it, and is by one from before it",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.append("a", 1, [sleep(1, T0 + 9), sleep(2, T0 + 9)]);
        await store.append("a", 3, [step("lost")], { withdraw: [delay(1)] });
        await store.finish("a", 4, { kind: "timedOut" });
        await store.fork("a", 3, { id: "b" });
        await store.fork("a", 2, { id: "c" });
        expect(await openDelays(fixture)).toEqual([
          "Delay_b.n:x_2",
          "Delay_c.n:x_1",
          "Delay_c.n:x_2",
        ]);
        // A copy of the copy knows it too.
        await store.fork("b", 4, { id: "d" });
        expect((await openDelays(fixture)).at(-1)).toBe("Delay_d.n:x_2");
        expect(await openDelays(fixture)).toHaveLength(4);
      }),
    );
  });
}
