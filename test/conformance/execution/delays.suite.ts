import { describe, expect, test } from "vitest";
import { parseDelayId } from "../../../src/model/ids/delay-id.ts";
import { answerDelay } from "../../fixtures/execution-operations.ts";
import type { AnswerDelayOutcome } from "../../../src/stores/execution/timers/delays.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, step } from "./execution-events.ts";
import { T0, dump, onExecutions, openDelays, refusal, responsesOf, standing } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

const delay = "Delay_a.o:1_1";

/** Execution "a" with one open delay, due 100 ms later. */
async function withDelay({ store }: ExecutionFixture): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.append("a", 1, [delayRequested(delay, T0 + 100)]);
}

/** What whoever watches the clock does when a delay is due. */
function expire({ database, clock }: ExecutionFixture, id = delay): Promise<AnswerDelayOutcome> {
  return database.write(answerDelay, {
    delay: parseDelayId(id),
    at: clock.now(),
    outcome: "expired",
  });
}

export function executionDelaysSuite(backend: Backend): void {
  describe("delays", () => {
    test.each([
      ["while it is open", async () => undefined],
      ["after it expired", (fixture: ExecutionFixture) => expire(fixture)],
      ["after it was cancelled", ({ store }: ExecutionFixture) => store.cancelDelay(delay)],
    ] as const)(
      "[E35] the same delay cannot be requested again %s, and log and version are unchanged",
      (_, meanwhile) =>
        onExecutions(backend, async (fixture) => {
          const { store } = fixture;
          await withDelay(fixture);
          await meanwhile(fixture);
          const again = delayRequested(delay, T0 + 500);
          for (const events of [[again], [step("first"), again]])
            expect(await refusal(fixture, () => store.append("a", 2, events))).toBe("DELAY_EXISTS");
          expect(await store.append("a", 2, [step("goes on")])).toEqual({
            nextVersion: 3,
            at: T0,
          });
        })(),
    );

    test(
      "[E36] a delay that expired stays expired: expiring again is told so, and nothing changes",
      onExecutions(backend, async (fixture) => {
        await withDelay(fixture);
        fixture.clock.advance(100);
        expect(await expire(fixture)).toBe("answered");
        expect(await responsesOf(fixture, "a")).toEqual([
          [1, T0 + 100, "o:1", delay, "expired", null],
        ]);
        const before = await dump(fixture);
        fixture.clock.advance(1);
        expect(await expire(fixture)).toBe("alreadyExpired");
        expect(await dump(fixture)).toEqual(before);
      }),
    );

    test(
      "[E37] the first cancellation succeeds, later ones are told that it is cancelled",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withDelay(fixture);
        expect(await store.cancelDelay(delay)).toBe("answered");
        expect(await openDelays(fixture)).toEqual([]);
        expect(await responsesOf(fixture, "a")).toEqual([[1, T0, "o:1", delay, "cancelled", null]]);
        const before = await dump(fixture);
        expect(await store.cancelDelay(delay)).toBe("alreadyCancelled");
        expect(await dump(fixture)).toEqual(before);
      }),
    );

    test(
      "[E37] cancelling after it expired is told so; expiring after it was cancelled changes nothing",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withDelay(fixture);
        await store.append("a", 2, [delayRequested("Delay_a.o:2_1", T0 + 100)]);
        await expire(fixture);
        expect(await store.cancelDelay(delay)).toBe("alreadyExpired");
        await store.cancelDelay("Delay_a.o:2_1");
        const before = await dump(fixture);
        expect(await expire(fixture, "Delay_a.o:2_1")).toBe("alreadyCancelled");
        expect(await dump(fixture)).toEqual(before);
        expect(await openDelays(fixture)).toEqual([]);
      }),
    );

    test(
      "[E37] of an expiry and a cancellation at once one wins, and there is one response",
      onExecutions(backend, async (fixture) => {
        await withDelay(fixture);
        const outcomes = await Promise.all([
          expire(fixture),
          fixture.store.cancelDelay(delay),
          expire(fixture),
          fixture.store.cancelDelay(delay),
        ]);
        expect(outcomes.filter((one) => one === "answered")).toHaveLength(1);
        expect(await responsesOf(fixture, "a")).toHaveLength(1);
      }),
    );

    test(
      "one that was never requested cannot be answered, cancelled or paused",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        for (const call of [
          () => expire(fixture),
          () => store.cancelDelay(delay),
          () => store.pauseDelay(delay),
          () => store.unpauseDelay(delay),
        ])
          expect(await refusal(fixture, call)).toBe("DELAY_NOT_FOUND");
        expect(await refusal(fixture, () => store.cancelDelay("Delay_b.o:1_1"))).toBe(
          "EXECUTION_NOT_FOUND",
        );
      }),
    );

    test(
      "a delay belongs to the execution and the set that its id names",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f" });
        for (const event of [
          delayRequested("Delay_b.o:1_1", T0),
          { ...delayRequested(delay, T0), joinSet: "o:2" },
        ] as ReturnType<typeof delayRequested>[])
          expect(await refusal(fixture, () => store.append("a", 1, [event]))).toBe(
            "EVENTS_INVALID",
          );
      }),
    );

    test(
      "the answer makes the one that waits for it due, with no lease when nobody keeps it",
      onExecutions(backend, async (fixture) => {
        const { store, clock } = fixture;
        await withDelay(fixture);
        await store.append("a", 2, [joinNext("o:1", T0)]);
        expect((await standing(fixture, "a")).pending.kind).toBe("blocked");
        clock.advance(100);
        await expire(fixture);
        expect((await standing(fixture, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 100,
          leaseUntil: null,
        });
      }),
    );

    test(
      "the end of a workflow takes its open delays along",
      onExecutions(backend, async (fixture) => {
        const { store } = fixture;
        await withDelay(fixture);
        await store.finish("a", 2, { kind: "completed", value: 1 });
        expect(await openDelays(fixture)).toEqual([]);
        const error = await rejection(store.cancelDelay(delay));
        expect(error.code).toBe("DELAY_NOT_FOUND");
      }),
    );
  });
}
