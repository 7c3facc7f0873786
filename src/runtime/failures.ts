import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ExecutionResult } from "../model/execution/result.ts";
import { restoredFailure } from "../model/values/restored-error.ts";

const nonRetryable = Symbol.for("holdfast.nonRetryable");

/**
 * Thrown by a step or an activity that would fail the same way again: it is
 * not retried.
 *
 * @example throw new NonRetryableError("the card was declined", { cause: error });
 */
export class NonRetryableError extends Error {
  override readonly name: string = "NonRetryableError";

  constructor(message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    Object.defineProperty(this, nonRetryable, { value: true });
  }
}

/** True for what a retry would not change. */
export function isNonRetryable(thrown: unknown): boolean {
  if (typeof thrown !== "object" || thrown === null) return false;
  return (
    nonRetryable in thrown || (isHoldfastError(thrown) && !thrown.retryable)
  );
}

const runFailed = Symbol.for("holdfast.runFailed");

/** How a run ended that did not complete. */
export type RunFailureKind = "failed" | "cancelled" | "timedOut";

/**
 * What `result()` of a run, and `ctx.call` of a child, reject with. `cause` is
 * the error that its code threw, with message, name, code and stack.
 */
export class RunFailedError extends Error {
  override readonly name: string = "RunFailedError";
  readonly runId: string;
  readonly kind: RunFailureKind;

  constructor(
    message: string,
    {
      runId,
      kind,
      cause,
    }: {
      readonly runId: string;
      readonly kind: RunFailureKind;
      readonly cause?: unknown;
    },
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.runId = runId;
    this.kind = kind;
    Object.defineProperty(this, runFailed, { value: true });
  }
}

/** Recognises it across realms and copies of the package. */
export function isRunFailedError(value: unknown): value is RunFailedError {
  return typeof value === "object" && value !== null && runFailed in value;
}

/** The error for a run that did not complete. */
export function runFailure(
  runId: string,
  result: Exclude<ExecutionResult, { kind: "completed" }>,
): RunFailedError {
  const { kind } = result;
  switch (kind) {
    case "failed": {
      const cause = restoredFailure(result.error);
      const said = `${cause.name}: ${cause.message}`;
      return new RunFailedError(`Run ${runId} failed: ${said}`, {
        runId,
        kind,
        cause,
      });
    }
    case "cancelled": {
      const why = result.reason === undefined ? "" : `: ${result.reason}`;
      return new RunFailedError(`Run ${runId} was cancelled${why}.`, {
        runId,
        kind,
      });
    }
    case "timedOut":
      return new RunFailedError(`Run ${runId} was not done by its deadline.`, {
        runId,
        kind,
      });
    default:
      kind satisfies never;
      throw new Error("Unreachable.");
  }
}

const cancelled = Symbol.for("holdfast.cancelled");

/** What open calls of a workflow reject with once it is cancelled. */
export function runCancelled(id: string, reason: string | null): HoldfastError {
  const error = new HoldfastError(
    "RUN_CANCELLED",
    `Run ${id} is being cancelled${reason === null ? "" : `: ${reason}`}. Clean up and let this error pass.`,
    { id },
  );
  Object.defineProperty(error, cancelled, { value: true });
  return error;
}

/** True for the cancellation itself, also when it was recorded and restored. */
export function isCancellation(thrown: unknown): boolean {
  return isHoldfastError(thrown) && thrown.code === "RUN_CANCELLED";
}
