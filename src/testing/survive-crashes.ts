import { isHoldfastError } from "../model/errors.ts";
import { isRunFailedError } from "../model/run-failed-error.ts";
import { checkedCount, givenFunction, givenList, optionsOf } from "../model/shape.ts";
import { canonicalText } from "../model/values/canonical.ts";
import { decodeValue, encodeValue } from "../model/values/values.ts";
import type { DurableFunction, Workflow } from "../runtime/definition/definitions.ts";
import type { Run } from "../runtime/client/run-handle.ts";
import type { InputAnd, StartOptions } from "../runtime/definition/workflow-context.ts";
import {
  countRecorded,
  recordedAt,
  type RecordedEvent,
} from "../stores/execution/read/recorded.ts";
import { testHoldfast, type TestHoldfast } from "./test-holdfast.ts";

interface CrashOptions<Out> {
  /**
   * Functions that the workflow calls, and fakes. Created again for each round, so that every round
   * begins the same.
   */
  readonly functions?: () => readonly DurableFunction<never, unknown>[];
  /**
   * Runs in each round after the run has started. Sends the signals that the run waits for, or
   * creates tables.
   */
  readonly during?: (holdfast: TestHoldfast, run: Run<Out>) => Promise<void>;
  /**
   * The effects of the round outside the database, such as rows or requests at its end. They are
   * compared with those of the round without a crash.
   */
  readonly effects?: () => unknown;
  /** The most crashes to try, spread over the events. Defaults to 200. */
  readonly roundsMax?: number;
}

export interface CrashReport {
  /** The number of events that the run and its descendants record without a crash. */
  readonly events: number;
  /**
   * The outcome of the run without a crash. Assert it too: a workflow that always fails in the same
   * way shows no differences.
   */
  readonly result:
    | { readonly kind: "completed"; readonly value: unknown }
    | { readonly kind: string; readonly message: string };
  /** The number of rounds with a crash. */
  readonly rounds: number;
  /**
   * The differences that crashes caused. Empty when the workflow survives a crash after every
   * event.
   */
  readonly differences: readonly {
    /**
     * The event after which the worker was killed: its run, its position in that run's log, and its
     * kind.
     */
    readonly after: {
      readonly run: string;
      readonly version: number;
      readonly kind: string;
    };
    /**
     * The differing part: the run's outcome, all runs and their outcomes, or the outside effects.
     */
    readonly part: "result" | "runs" | "effects";
    readonly expected: unknown;
    readonly actual: unknown;
  }[];
}

type Difference = CrashReport["differences"][number];

const optionNames = [
  "functions",
  "during",
  "effects",
  "roundsMax",
] as const satisfies readonly (keyof CrashOptions<unknown>)[];

/**
 * Runs a workflow once undisturbed, then once for each event with a crash after it. Compares the
 * run's outcome, the runs that exist and the outside effects.
 *
 * @throws HoldfastError `OPTION_INVALID`, and what `during` throws
 * @example
 * const { result, differences } = await surviveCrashes(order, { id: "o-1" }, {
 *   functions: () => [fake(charge, { returns: "receipt" })],
 * });
 * expect(result.kind).toBe("completed");
 * expect(differences).toEqual([]);
 */
export async function surviveCrashes<In, Out>(
  workflow: Workflow<In, Out>,
  input: NoInfer<In>,
  options?: CrashOptions<Out>,
): Promise<CrashReport> {
  const given = optionsOf<CrashOptions<Out>>(options, optionNames);
  const { functions, during, effects, roundsMax = 200 } = given;
  givenFunction("functions", functions);
  givenFunction("during", during);
  givenFunction("effects", effects);
  checkedCount("roundsMax", roundsMax, { min: 1 });
  const round = (crashAfter?: number): Promise<Round> =>
    oneRound(workflow, input, given, crashAfter);
  const undisturbed = await round();
  const { events } = undisturbed;
  const step = Math.max(1, Math.ceil(events / roundsMax));
  const differences: Difference[] = [];
  let rounds = 0;
  for (let after = 1; after <= events; after += step) {
    const crashed = await round(after);
    rounds += 1;
    differences.push(...differencesOf(undisturbed, crashed));
  }
  return { events, result: undisturbed.result, rounds, differences };
}

/** The outcome of one round. */
interface Round {
  readonly events: number;
  readonly crashedAfter: RecordedEvent | undefined;
  readonly result: CrashReport["result"];
  readonly runs: unknown;
  readonly effects: unknown;
}

/** The id is the same in all rounds, because ids and values derived from them are compared. */
const runId = "run-1";
const startInstant = Date.UTC(2026, 0, 1);

async function oneRound<In, Out>(
  workflow: Workflow<In, Out>,
  input: In,
  { functions, during, effects }: CrashOptions<Out>,
  crashAfter: number | undefined,
): Promise<Round> {
  const others = givenList("the result of functions()", functions?.() ?? []);
  const served = [workflow as DurableFunction<never, unknown>, ...others];
  const holdfast = await testHoldfast(served, {
    now: startInstant,
    onEvent: () => undefined,
  });
  try {
    if (crashAfter !== undefined) holdfast.crashAfter(crashAfter);
    const args = [input, { id: runId }] as unknown as InputAnd<In, StartOptions>;
    const run = await holdfast.start(workflow, ...args);
    await during?.(holdfast, run);
    const result = await outcomeOf(run);
    await holdfast.idle();
    const { database } = holdfast;
    return {
      result,
      runs: await runsOf(holdfast),
      effects: copied(effects?.()),
      events: await database.read(countRecorded, undefined),
      crashedAfter:
        crashAfter === undefined ? undefined : await database.read(recordedAt, crashAfter),
    };
  } finally {
    await holdfast.close();
  }
}

/** The outcome of a run, in a form that can be compared. */
async function outcomeOf(run: Run<unknown>): Promise<CrashReport["result"]> {
  try {
    return { kind: "completed", value: await run.result() };
  } catch (error) {
    if (isRunFailedError(error)) {
      const { kind, message } = error;
      // The message names the line of the code, which is the same in all rounds.
      return { kind, message };
    }
    if (!isHoldfastError(error)) throw error;
    return { kind: error.code, message: error.message };
  }
}

/** All runs and their status, sorted by id. */
async function runsOf({ executions }: TestHoldfast): Promise<unknown> {
  const found: (readonly [string, string, string])[] = [];
  let after: string | undefined;
  do {
    const page = await executions.list({
      limit: 500,
      ...(after !== undefined && { after }),
    });
    for (const { id, function: name, status } of page.items) found.push([id, name, status]);
    after = page.next;
  } while (after !== undefined);
  return found.toSorted(([a], [b]) => (a < b ? -1 : 1));
}

function differencesOf(undisturbed: Round, crashed: Round): readonly Difference[] {
  const { crashedAfter } = crashed;
  const after =
    crashedAfter === undefined
      ? { run: runId, version: 0, kind: "created" }
      : {
          run: crashedAfter.id,
          version: crashedAfter.version,
          kind: crashedAfter.kind,
        };
  return (["result", "runs", "effects"] as const).flatMap((part) => {
    const expected = undisturbed[part];
    const actual = crashed[part];
    return textOf(expected) === textOf(actual) ? [] : [{ after, part, expected, actual }];
  });
}

const unlimited = { charactersMax: Number.MAX_SAFE_INTEGER };

/** The text of a value, regardless of the order of its keys. */
function textOf(value: unknown): string {
  return canonicalText(value, unlimited);
}

/** A copy of the current value, which the next round may change. */
function copied(value: unknown): unknown {
  return decodeValue(encodeValue(value, unlimited));
}
