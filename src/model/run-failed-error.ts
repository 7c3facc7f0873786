import { safely } from "./safely.ts";
import { draftOf, givenInvalid, readGiven } from "./shape.ts";
import { isThrownAt, thrownAt, type ThrownAt } from "./values/thrown-at.ts";

const runFailed = Symbol.for("holdfast.runFailed");

/** The outcome of a run that did not complete. */
export type RunFailureKind = "failed" | "cancelled" | "timedOut";

/** The failed run, as data that its error carries. */
export interface FailedRun {
  readonly id: string;
  readonly function: string;
  readonly kind: RunFailureKind;
}

/** The facts beside the message. */
interface Failure {
  readonly run: FailedRun;
  readonly at?: ThrownAt | undefined;
  readonly cause?: unknown;
}

/**
 * The error with which `result()` of a run and `ctx.call` of a child reject. `cause` is the error
 * that the run's code threw, with its name, message, code, data and stack. The message says all of
 * it in one line.
 */
export class RunFailedError extends Error {
  override readonly name: string = "RunFailedError";
  readonly runId: string;
  /** The name of the workflow or activity. */
  readonly function: string;
  readonly kind: RunFailureKind;
  /** The step of the run that threw the error, if a step threw it. */
  readonly step: string | undefined;
  /** The attempt of that step, or of the activity, counted from 1. */
  readonly attempt: number | undefined;

  /** @throws HoldfastError `OPTION_INVALID` */
  constructor(message: string, failure: Failure) {
    const { run, at, cause } = givenFailure(failure);
    const text = safely(() => String(message as unknown), "");
    super(text, cause === undefined ? undefined : { cause });
    this.runId = run.id;
    this.function = run.function;
    this.kind = run.kind;
    this.step = at?.step;
    this.attempt = at?.attempt;
    Object.defineProperty(this, runFailed, { value: run });
    if (at !== undefined) Object.defineProperty(this, thrownAt, { value: at, configurable: true });
  }
}

/** Checks a failure that a test builds by itself. Without a run it would describe no run. */
function givenFailure(given: Failure): Failure {
  const failure = draftOf<Failure>("the failure", given, ["run", "at", "cause"]);
  const { run, at } = failure;
  if (!readGiven("run", () => isFailedRun(run)))
    throw givenInvalid(
      "run",
      '{ id, function, kind }, with "failed", "cancelled" or "timedOut" as its kind',
      run,
    );
  if (at !== undefined && !readGiven("at", () => isThrownAt(at)))
    throw givenInvalid("at", "{ step, attempt }", at);
  return failure;
}

/** True for this error, also from another realm or another copy of the package. */
export function isRunFailedError(value: unknown): value is RunFailedError {
  if (typeof value !== "object" || value === null) return false;
  return safely(() => {
    const { kind, message } = value as Partial<RunFailedError>;
    return runFailed in value && kind !== undefined && message !== undefined;
  }, false);
}

/** Returns the recorded data of the error, from which it can be rebuilt. */
export function failedRunOf(error: Error): FailedRun | undefined {
  const { [runFailed]: run } = error as { [runFailed]?: unknown };
  return isFailedRun(run) ? run : undefined;
}

export function isFailedRun(value: unknown): value is FailedRun {
  const { id, function: name, kind } = Object(value) as Partial<FailedRun>;
  return (
    typeof id === "string" &&
    typeof name === "string" &&
    (kind === "failed" || kind === "cancelled" || kind === "timedOut")
  );
}
