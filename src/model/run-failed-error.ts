import { safely } from "./safely.ts";
import { draftOf, givenInvalid, readGiven } from "./shape.ts";
import { isThrownAt, thrownAt, type ThrownAt } from "./values/thrown-at.ts";

const runFailed = Symbol.for("holdfast.runFailed");

/** How a run ended that did not complete. */
export type RunFailureKind = "failed" | "cancelled" | "timedOut";

/** What an error says of the run that failed, as data. */
export interface FailedRun {
  readonly id: string;
  readonly function: string;
  readonly kind: RunFailureKind;
}

/** What there is to say of it beside the message. */
interface Failure {
  readonly run: FailedRun;
  readonly at?: ThrownAt | undefined;
  readonly cause?: unknown;
}

/**
 * What `result()` of a run, and `ctx.call` of a child, reject with. `cause` is
 * the error that its code threw, with name, message, code, data and stack as
 * they were; its message tells all of it in one line.
 */
export class RunFailedError extends Error {
  override readonly name: string = "RunFailedError";
  readonly runId: string;
  /** The name of the workflow or activity. */
  readonly function: string;
  readonly kind: RunFailureKind;
  /** In which step of it the error was thrown, if it was in one. */
  readonly step: string | undefined;
  /** Of that step, or of the activity; from 1 on. */
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

/** For tests of one's own that make such an error: without a run it would be one of none. */
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

/** Recognises it across realms and copies of the package. */
export function isRunFailedError(value: unknown): value is RunFailedError {
  if (typeof value !== "object" || value === null) return false;
  return safely(() => {
    const { kind, message } = value as Partial<RunFailedError>;
    return runFailed in value && kind !== undefined && message !== undefined;
  }, false);
}

/** What is recorded of it, so that it can be made again. */
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
