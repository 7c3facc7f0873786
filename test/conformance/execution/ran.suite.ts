import { describe, expect, test } from "vitest";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { sql } from "../../../src/sql/statement.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";
import { joinNext, step } from "./execution-events.ts";
import { T0, ann, byAnn, dump, logOf, onExecutions, refusal } from "./fixture.ts";
import type { ExecutionFixture } from "./fixture.ts";

type Ran = readonly [number, number];

/** The three events that say when a body ran. */
function outcomes(ran: Ran): readonly GivenEvent[] {
  const outcome = { outcome: "completed", value: 1 } as const;
  return [
    { kind: "stepFinished", name: "s", ...outcome, ran },
    { kind: "transactionFinished", name: "t", ...outcome, input: 5, ran },
    { kind: "stepAttemptFailed", name: "s", attempt: 1, retryAt: T0, error: "no", ran },
  ];
}

/** Instant and offsets of each event of an execution that has some. */
async function ranOf({ store }: ExecutionFixture, id: string): Promise<readonly unknown[]> {
  const { items } = await store.events(id);
  return items.flatMap(({ at, event }) => ("ran" in event ? [[at - T0, event.ran]] : []));
}

/** When bodies ran, as events carry it. */
export function executionRanSuite(backend: Backend): void {
  describe("when the body behind an event ran", () => {
    keptTests(backend);
    repeatedTests(backend);
    refusedTests(backend);
  });
}

function keptTests(backend: Backend): void {
  test(
    "[RN1] is read back as it was given, from the log, by a lock and in a copy",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      const { key } = await store.lock("a", 1, byAnn);
      await store.append("a", 2, outcomes([-301, -2]), { fence: ann, key });
      await store.append("a", 5, outcomes([-7, 0]));
      const expected = [
        ...outcomes([-301, -2]).map(() => [0, [-301, -2]]),
        ...outcomes([-7, 0]).map(() => [0, [-7, 0]]),
      ];
      expect(await ranOf(fixture, "a")).toEqual(expected);
      await store.unlock("a", 8, { holder: ann, reason: "r" });
      await store.fork("a", 8, { id: "b" });
      expect(await ranOf(fixture, "b")).toEqual(expected);
      const { history } = await store.lock("a", 9, byAnn);
      expect(history.map(({ event }) => "ran" in event && event.ran)).toEqual(
        expected.map(([, ran]) => ran),
      );
    }),
  );

  test(
    "[RN1] takes no room when it took no time and was recorded at once",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      await store.append("a", 1, [step("none"), ...outcomes([0, 0])]);
      const log = await logOf(fixture, "a");
      expect(log.slice(1).map(([, , body]) => body)).toEqual([
        { name: "none" },
        { name: "s" },
        { name: "t", inputHash: expect.any(String) as string, outcome: "completed" },
        { name: "s", attempt: 1, retryAt: T0 },
      ]);
    }),
  );

  test(
    "[RN1] is the same instants when the event is recorded later than it was given",
    onExecutions(backend, async (fixture) => {
      const { store, clock, database } = fixture;
      for (const id of ["quick", "whole"]) await store.create({ id, function: "f" });
      const quick = store.append.prepare("quick", 1, outcomes([-301, -2]));
      // What asks for something is judged when it is written.
      const whole = store.append.prepare("whole", 1, [
        ...outcomes([-301, -2]),
        ...outcomes([0, 0]),
        step("old"),
        joinNext("n:x", T0 + 1_000),
      ]);
      clock.advance(40);
      await database.write("quick", quick);
      await database.write("whole", whole);
      expect(await ranOf(fixture, "quick")).toEqual(outcomes([0, 0]).map(() => [0, [-301, -2]]));
      expect(await ranOf(fixture, "whole")).toEqual([
        ...outcomes([0, 0]).map(() => [40, [-341, -42]]),
        ...outcomes([0, 0]).map(() => [40, [-40, -40]]),
      ]);
    }),
  );

  test(
    "[RN1] is that of each execution when many append at once",
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      const ids = Array.from({ length: 20 }, (_, n) => `a${n}`);
      for (const id of ids) await store.create({ id, function: "f" });
      await Promise.all(ids.map((id, n) => store.append(id, 1, outcomes([-n - 2, -n - 1]))));
      for (const [n, id] of ids.entries())
        expect(await ranOf(fixture, id)).toEqual(outcomes([0, 0]).map(() => [0, [-n - 2, -n - 1]]));
    }),
  );
}

function repeatedTests(backend: Backend): void {
  test(
    "[RN1] stays as it was when the append is made again, also with others or without",
    onExecutions(backend, async (fixture) => {
      const { store, clock } = fixture;
      await store.create({ id: "a", function: "f" });
      await store.lock("a", 1, byAnn);
      const append = (events: readonly GivenEvent[]) =>
        store.append("a", 2, events, { fence: ann });
      const first = await append(outcomes([-301, -2]));
      const before = await dump(fixture);
      clock.advance(50);
      const none = outcomes([0, 0]).map((event) => ({ ...event, ran: undefined }));
      for (const events of [outcomes([-301, -2]), outcomes([-351, -52]), none])
        expect(await append(events)).toEqual(first);
      expect(await dump(fixture)).toEqual(before);
      const [one, two, three] = outcomes([-301, -2]) as [GivenEvent, GivenEvent, GivenEvent];
      const other = { ...three, attempt: 2 } as GivenEvent;
      expect(await refusal(fixture, () => append([one, two, other]))).toBe("VERSION_CONFLICT");
    }),
  );

  test(
    "[RN1] beside a torn body is damage, and no other answer to a repetition",
    onExecutions(backend, async (fixture) => {
      const { store, database } = fixture;
      await store.create({ id: "a", function: "f" });
      const append = () => store.append("a", 1, [step("s")]);
      await append();
      await database.write("edit", () =>
        pastChecks(
          database,
          sql`UPDATE holdfast_execution_event SET body = 'torn' WHERE kind = 'stepFinished'`,
        ),
      );
      expect(await refusal(fixture, append)).toBe("CORRUPT_ROW");
    }),
  );
}

function refusedTests(backend: Backend): void {
  test.each([
    ["a number", -1],
    ["null", null],
    ["a text", "[-2,-1]"],
    ["one offset", [-1]],
    ["three offsets", [-3, -2, -1]],
    ["an end before the beginning", [-1, -2]],
    ["an end after the event", [-1, 1]],
    ["half milliseconds", [-1.5, -1]],
    ["NaN", [Number.NaN, -1]],
    ["no finite number", [-Infinity, 0]],
    ["texts", ["-2", "-1"]],
    ["nothing twice", Array.from({ length: 2 })],
    ["a beginning before all time", [-8.64e15 - 1, 0]],
    ["an object", { 0: -2, 1: -1, length: 2 }],
  ])("[RN1] is refused as %s, for each kind, and nothing is written", (_, ran) =>
    onExecutions(backend, async (fixture) => {
      const { store } = fixture;
      await store.create({ id: "a", function: "f" });
      for (const event of outcomes(ran as unknown as Ran)) {
        const append = (): Promise<unknown> => store.append("a", 1, [event]);
        expect(await refusal(fixture, append)).toBe("EVENTS_INVALID");
        expect((await rejection(append())).details).toMatchObject({ path: "events[0].ran" });
      }
      const other = { kind: "patched", patch: "p", ran: [-2, -1] } as unknown as GivenEvent;
      expect(await refusal(fixture, () => store.append("a", 1, [other]))).toBe("EVENTS_INVALID");
    })(),
  );
}
