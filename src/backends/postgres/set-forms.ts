import { monotonicMs } from "../../host/timers.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { Request, done, operationInvalid, rollbackWith } from "../../sql/operation.ts";
import type { Done, Tx } from "../../sql/operation.ts";
import type { Meters } from "../meters.ts";
import type { CallSet } from "./call-queue.ts";
import type { ManyForm } from "./call.ts";
import type { Connection } from "./connection.ts";
import { isLoss } from "./failures.ts";
import { transact, transactLone } from "./transaction.ts";
import type { BeforeCommit, Body, Ending } from "./transaction.ts";

type Verdicts = readonly (Done<unknown> | undefined)[];

export interface SetFormOptions {
  readonly setFormLanes: number;
  readonly meters: Meters;
  readonly beforeCommit: BeforeCommit | undefined;
}

/** The outcome of a set, to be reported once `turn` has come. */
export interface SetOutcome {
  readonly ending: Ending<Verdicts>;
  /** Resolves when the sets before it have been answered. */
  readonly turn: Promise<void>;
  readonly answered: () => void;
}

/**
 * Runs many calls of one operation as one transaction of few statements. A few sets run at once,
 * each in a lane. While all lanes are taken, calls gather. Sets are answered in the order in which
 * they were taken, so each caller's calls are too.
 */
export class SetForms {
  readonly #options: SetFormOptions;
  readonly #lastAnswered = new Map<ManyForm, Promise<void>>();
  #running = 0;

  constructor(options: SetFormOptions) {
    this.#options = options;
  }

  get lanesFree(): number {
    return this.#options.setFormLanes - this.#running;
  }

  async run({ many, calls }: CallSet, connection: Connection): Promise<SetOutcome> {
    const turn = this.#lastAnswered.get(many) ?? Promise.resolve();
    let answered = (): void => undefined;
    const lastAnswered = new Promise<void>((resolve) => (answered = resolve));
    this.#lastAnswered.set(many, lastAnswered);
    this.#running += 1;
    const startedMs = monotonicMs();
    const { meters, beforeCommit } = this.#options;
    const ending =
      beforeCommit === undefined && calls.length === 1 && connection.takesLoneStatements
        ? await runLone({ many, calls }, connection)
        : await transact(connection, "set", together(many, calls), beforeCommit);
    this.#running -= 1;
    if (ending.kind === "committed")
      meters.committed(answers(ending.value), monotonicMs() - startedMs);
    else meters.reruns += 1;
    return { ending, turn, answered };
  }
}

/**
 * Runs a single call. As a set it never waits for a lock, so it cannot block the lane as it might
 * as `one`.
 */
async function runLone(
  { many, calls }: CallSet,
  connection: Connection,
): Promise<Ending<Verdicts>> {
  const [{ input, body }] = calls;
  const lone = many.lone?.(input);
  if (lone === undefined) return transact(connection, "set", together(many, calls), undefined);
  const ending = await transactLone(connection, lone, body.change);
  switch (ending.kind) {
    case "committed":
      return { ...ending, value: [done(ending.value)] };
    case "rolledBack":
      return { ...ending, value: [undefined] };
    default:
      return ending;
  }
}

/**
 * The number of inputs that a set answered. Its changes may be more, because a set form announces
 * topics too.
 */
function answers(verdicts: Verdicts): number {
  return verdicts.filter((verdict) => verdict !== undefined).length;
}

/** The set form, with a change noted for each input it answered. */
function together(many: ManyForm, calls: CallSet["calls"]): Body<Verdicts> {
  const { name } = calls[0].body;
  function* start(): Tx<Verdicts> {
    const verdicts = yield* many(calls.map((call) => call.input));
    if (verdicts.length !== calls.length)
      throw operationInvalid(
        name,
        `answered ${verdicts.length} of ${calls.length} inputs in its set form. Answer undefined for inputs that \`one\` must decide.`,
      );
    for (const [index, call] of calls.entries())
      if (verdicts[index] !== undefined) yield new Request("touch", undefined, call.body.change);
    return verdicts.some((verdict) => verdict !== undefined)
      ? verdicts
      : yield* rollbackWith(verdicts);
  }
  return { name, start, change: undefined };
}

/**
 * The outcome for a call of a set, or undefined when the call must run alone. That is the case for
 * inputs the set skipped, and for all of them when the set failed, because only `one` decides on
 * errors. A broken connection concerns every call.
 */
export function endingInSet(ending: Ending<Verdicts>, index: number): Ending<unknown> | undefined {
  if (ending.kind === "committed") {
    const verdict = ending.value[index];
    // Subscribers are notified once for the whole set.
    return verdict && { ...ending, value: verdict.value, tx: undefined, changes: [] };
  }
  return ending.kind === "failed" && isConnectionNews(ending.error) ? ending : undefined;
}

function isConnectionNews(error: unknown): boolean {
  return isLoss(error) || (isHoldfastError(error) && error.code === "OUTCOME_UNKNOWN");
}
