import { describe, expect, test } from "vitest";
import { parseDelayId } from "../../../src/model/ids/delay-id.ts";
import { answerDelay } from "../../fixtures/execution-operations.ts";
import type { AnswerDelayOutcome } from "../../../src/stores/execution/timers/delays.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { delayRequested, joinNext, step } from "./execution-events.ts";
import {
  T0,
  dump,
  onExecutions,
  openDelays,
  refusal,
  responsesOf,
  standing,
} from "./fixture.ts";
import type { Setting } from "./fixture.ts";

const delay = "Delay_a.o:1_1";

/** Execution "a" with one open delay, due 100 ms later. */
async function withDelay({ store }: Setting): Promise<void> {
  await store.create({ id: "a", function: "f" });
  await store.append("a", 1, [delayRequested(delay, T0 + 100)]);
}

/** What whoever watches the clock does when a delay is due. */
function expire(
  { database, clock }: Setting,
  id = delay,
): Promise<AnswerDelayOutcome> {
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
      ["after it expired", (setting: Setting) => expire(setting)],
      [
        "after it was cancelled",
        ({ store }: Setting) => store.cancelDelay(delay),
      ],
    ] as const)(
      "[E35] the same delay cannot be requested again %s, and log and version are unchanged",
      (_, meanwhile) =>
        onExecutions(backend, async (setting) => {
          const { store } = setting;
          await withDelay(setting);
          await meanwhile(setting);
          const again = delayRequested(delay, T0 + 500);
          for (const events of [[again], [step("first"), again]])
            expect(
              await refusal(setting, () => store.append("a", 2, events)),
            ).toBe("DELAY_EXISTS");
          expect(await store.append("a", 2, [step("goes on")])).toEqual({
            nextVersion: 3,
            at: T0,
          });
        })(),
    );

    test(
      "[E36] a delay that expired stays expired: expiring again is told so, and nothing changes",
      onExecutions(backend, async (setting) => {
        await withDelay(setting);
        setting.clock.advance(100);
        expect(await expire(setting)).toBe("answered");
        expect(await responsesOf(setting, "a")).toEqual([
          [1, T0 + 100, "o:1", delay, "expired", null],
        ]);
        const before = await dump(setting);
        setting.clock.advance(1);
        expect(await expire(setting)).toBe("alreadyExpired");
        expect(await dump(setting)).toEqual(before);
      }),
    );

    test(
      "[E37] the first cancellation succeeds, later ones are told that it is cancelled",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await withDelay(setting);
        expect(await store.cancelDelay(delay)).toBe("answered");
        expect(await openDelays(setting)).toEqual([]);
        expect(await responsesOf(setting, "a")).toEqual([
          [1, T0, "o:1", delay, "cancelled", null],
        ]);
        const before = await dump(setting);
        expect(await store.cancelDelay(delay)).toBe("alreadyCancelled");
        expect(await dump(setting)).toEqual(before);
      }),
    );

    test(
      "[E37] cancelling after it expired is told so; expiring after it was cancelled changes nothing",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await withDelay(setting);
        await store.append("a", 2, [delayRequested("Delay_a.o:2_1", T0 + 100)]);
        await expire(setting);
        expect(await store.cancelDelay(delay)).toBe("alreadyExpired");
        await store.cancelDelay("Delay_a.o:2_1");
        const before = await dump(setting);
        expect(await expire(setting, "Delay_a.o:2_1")).toBe("alreadyCancelled");
        expect(await dump(setting)).toEqual(before);
        expect(await openDelays(setting)).toEqual([]);
      }),
    );

    test(
      "[E37] of an expiry and a cancellation at once one wins, and there is one response",
      onExecutions(backend, async (setting) => {
        await withDelay(setting);
        const outcomes = await Promise.all([
          expire(setting),
          setting.store.cancelDelay(delay),
          expire(setting),
          setting.store.cancelDelay(delay),
        ]);
        expect(outcomes.filter((one) => one === "answered")).toHaveLength(1);
        expect(await responsesOf(setting, "a")).toHaveLength(1);
      }),
    );

    test(
      "one that was never requested cannot be answered, cancelled or paused",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await store.create({ id: "a", function: "f" });
        for (const call of [
          () => expire(setting),
          () => store.cancelDelay(delay),
          () => store.pauseDelay(delay),
          () => store.unpauseDelay(delay),
        ])
          expect(await refusal(setting, call)).toBe("DELAY_NOT_FOUND");
        expect(
          await refusal(setting, () => store.cancelDelay("Delay_b.o:1_1")),
        ).toBe("EXECUTION_NOT_FOUND");
      }),
    );

    test(
      "a delay belongs to the execution and the set that its id names",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await store.create({ id: "a", function: "f" });
        await store.create({ id: "b", function: "f" });
        for (const event of [
          delayRequested("Delay_b.o:1_1", T0),
          { ...delayRequested(delay, T0), joinSet: "o:2" },
        ] as ReturnType<typeof delayRequested>[])
          expect(
            await refusal(setting, () => store.append("a", 1, [event])),
          ).toBe("EVENTS_INVALID");
      }),
    );

    test(
      "the answer makes the one that waits for it due, with no lease when nobody keeps it",
      onExecutions(backend, async (setting) => {
        const { store, clock } = setting;
        await withDelay(setting);
        await store.append("a", 2, [joinNext("o:1", T0)]);
        expect((await standing(setting, "a")).pending.kind).toBe("blocked");
        clock.advance(100);
        await expire(setting);
        expect((await standing(setting, "a")).pending).toMatchObject({
          kind: "pending",
          dueAt: T0 + 100,
          leaseUntil: null,
        });
      }),
    );

    test(
      "the end of a workflow takes its open delays along",
      onExecutions(backend, async (setting) => {
        const { store } = setting;
        await withDelay(setting);
        await store.finish("a", 2, { kind: "completed", value: 1 });
        expect(await openDelays(setting)).toEqual([]);
        const error = await rejection(store.cancelDelay(delay));
        expect(error.code).toBe("DELAY_NOT_FOUND");
      }),
    );
  });
}
