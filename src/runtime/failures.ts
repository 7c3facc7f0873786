import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ExecutionResult } from "../model/execution/result.ts";
import { isRunFailedError, RunFailedError } from "../model/run-failed-error.ts";
import { safely } from "../model/safely.ts";
import { restoredFailure } from "../model/values/restored-error.ts";
import { isError, storedError, type StoredError } from "../model/values/stored-error.ts";
import { isThrownAt, type ThrownAt } from "../model/values/thrown-at.ts";

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
  if (isHoldfastError(thrown)) return !thrown.retryable;
  return safely(() => nonRetryable in thrown, false);
}

/**
 * Whether repeating the same call may succeed. A server that takes no writes
 * takes them again after a failover, or when its disk has room.
 */
export function isPassing(error: unknown): boolean {
  return isHoldfastError(error) && (error.retryable || error.code === "READ_ONLY");
}

/** True when a payload codec is out of order: that says nothing about the value. */
export function isOfTheCodec(thrown: unknown): boolean {
  return isHoldfastError(thrown) && thrown.code === "PAYLOAD_CODEC_FAILED";
}

/** Says which value of a run cannot be stored: the refusal knows only the path within it. */
export function ofSubject(error: unknown, subject: string): unknown {
  if (!isHoldfastError(error) || error.code !== "NOT_SERIALIZABLE") return error;
  const { code, message, details, stack, cause } = error;
  const named = new HoldfastError(
    code,
    `In ${subject}: ${message}`,
    details,
    cause === undefined ? undefined : { cause },
  );
  if (stack !== undefined) named.stack = stack.replace(message, () => named.message);
  return named;
}

/**
 * Writes an error down: whole, and if it does not fit what values may take,
 * what is most important of it.
 */
export function recorded<T>(
  thrown: unknown,
  at: ThrownAt | undefined,
  write: (stored: StoredError) => T,
): T {
  const whole = storedError(thrown, { at });
  try {
    return write(whole);
  } catch {
    const { name, message, code } = whole;
    return write({
      name: clipped(name),
      message: clipped(message),
      ...(code !== undefined && { code }),
      ...(at !== undefined && { at }),
    });
  }
}

/** The error for a run that did not complete. */
export function runFailure(
  run: { readonly id: string; readonly function: string },
  result: Exclude<ExecutionResult, { kind: "completed" }>,
): RunFailedError {
  const { kind } = result;
  const named = `Run ${run.id} of ${run.function}`;
  const failed = { ...run, kind };
  switch (kind) {
    case "failed": {
      const at = placeOf(result.error);
      const cause = restoredFailure(result.error);
      const message = `${named} failed${spokenPlace(at)}: ${told(cause)}`;
      return new RunFailedError(message, { run: failed, at, cause });
    }
    case "cancelled": {
      const why = result.reason === undefined ? "" : `: ${result.reason}`;
      return new RunFailedError(`${named} was cancelled${why}.`, {
        run: failed,
      });
    }
    case "timedOut":
      return new RunFailedError(
        `${named} was not done in time: its deadline is over, or its worker was lost in the last attempt that it had.`,
        { run: failed },
      );
    default:
      kind satisfies never;
      throw new Error("Unreachable.");
  }
}

/** Where in the run it was thrown. What failed in a child was thrown there. */
function placeOf(stored: StoredError): ThrownAt | undefined {
  if (stored.run !== undefined) return undefined;
  if (isThrownAt(stored.at)) return stored.at;
  return stored.cause === undefined ? undefined : placeOf(stored.cause);
}

function spokenPlace(at: ThrownAt | undefined): string {
  if (at === undefined) return "";
  const { step, attempt } = at;
  return `${step === undefined ? "" : ` in step "${step}"`} (attempt ${attempt})`;
}

/** Which error it was, and the line of the user's code. Not its message, which may hold values: what is said here is stored as it is. */
export function spokenOrigin(thrown: unknown): string {
  const { name, stack } = storedError(thrown);
  const line = userLine(stack);
  return `${clipped(name)}${line === undefined ? "" : ` (at ${clipped(line, 1_000)})`}`;
}

/** An error with its causes and the line of the user's code, in one line. A failed run has told its own. */
function told(error: Error): string {
  if (isRunFailedError(error)) return clipped(error.message, 2_000);
  const chain: string[] = [];
  let line: string | undefined;
  let each: unknown = error;
  for (; isError(each) && chain.length < 4; each = each.cause) {
    if (isRunFailedError(each)) {
      chain.push(clipped(each.message, 2_000));
      return chain.join("; caused by ");
    }
    chain.push(`${each.name}: ${clipped(each.message, 1_000)}`);
    line = userLine(each.stack) ?? line;
  }
  const place = line === undefined ? "" : ` (at ${line})`;
  return `${chain.join("; caused by ")}${place}`;
}

/** The first place of a stack that is not Node's or a package's. */
function userLine(stack: string | undefined): string | undefined {
  for (const line of stack?.split("\n") ?? []) {
    const place = /^\s+at (?:.*\()?([^()]+:\d+:\d+)\)?$/.exec(line)?.[1];
    if (place !== undefined && !/node_modules|^node:/.test(place)) return place;
  }
  return undefined;
}

function clipped(text: string, charactersMax = 100): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}

const cancelled = Symbol.for("holdfast.cancelled");

/** What open calls of a workflow reject with once it is cancelled. */
export function runCancelled(
  id: string,
  reason: string | null,
  /** How what was waited for ended, when it had to be waited for. */
  ended?: {
    readonly call: string;
    readonly outcome: "completed" | "failed";
    readonly cause: Error | undefined;
  },
): HoldfastError {
  const error = new HoldfastError(
    "RUN_CANCELLED",
    `Run ${id} is being cancelled${reason === null ? "" : `: ${reason}`}. Clean up and let this error pass.`,
    { id, ...(ended && { call: ended.call, outcome: ended.outcome }) },
    ended?.cause && { cause: ended.cause },
  );
  Object.defineProperty(error, cancelled, { value: true });
  return error;
}

/** True for the cancellation itself, also when it was recorded and restored. */
export function isCancellation(thrown: unknown): boolean {
  return isHoldfastError(thrown) && thrown.code === "RUN_CANCELLED";
}

/** For a run that goes on elsewhere. */
export function lockWasLost(id: string): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Run ${id} was taken over by another worker; what this one still does is not recorded.`,
    { id },
  );
}

/** Codes after which a run is nobody's, another's, or nothing can be written. */
const losing: ReadonlySet<string> = new Set([
  "LOCK_LOST",
  "EXECUTION_FINISHED",
  "EXECUTION_NOT_FOUND",
  "EXECUTION_PARKED",
  "UNLOCK_REFUSED",
  // It came so late that the lease which it was to begin is over.
  "LOCK_EXPIRY_INVALID",
  "DATABASE_CLOSED",
  "WRITES_STOPPED",
  "FLUSH_FAILED",
  "MOVED_TO_POSTGRES",
]);

/** Whether a refusal means that a run is not this worker's any more, or nothing can be written. */
export function isLosing({ code }: HoldfastError): boolean {
  return losing.has(code);
}
