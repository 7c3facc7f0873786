import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ExecutionResult } from "../model/execution/result.ts";
import { isRunFailedError, RunFailedError } from "../model/run-failed-error.ts";
import { safely } from "../model/safely.ts";
import { restoredFailure } from "../model/values/restored-error.ts";
import {
  errorDepthMax,
  isError,
  storedError,
  type StoredError,
} from "../model/values/stored-error.ts";
import { isThrownAt, type ThrownAt } from "../model/values/thrown-at.ts";

const nonRetryable = Symbol.for("holdfast.nonRetryable");

/**
 * Thrown by a step or an activity that would fail the same way again, so that it is not
 * retried.
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

/** True for an error that a retry would not change. */
export function isNonRetryable(thrown: unknown): boolean {
  if (typeof thrown !== "object" || thrown === null) return false;
  if (isHoldfastError(thrown)) return !thrown.retryable;
  return safely(() => nonRetryable in thrown, false);
}

/**
 * True if the same call may succeed when repeated. A server that refuses writes accepts them
 * again after a failover, or once its disk has room.
 */
export function isPassing(error: unknown): boolean {
  return isHoldfastError(error) && (error.retryable || error.code === "READ_ONLY");
}

/** True for a failure of the payload codec, which says nothing about the value. */
export function isOfTheCodec(thrown: unknown): boolean {
  return isHoldfastError(thrown) && thrown.code === "PAYLOAD_CODEC_FAILED";
}

/** Names the value of a run that cannot be stored: the refusal knows only the path within the value. */
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

/** Stores an error in full, or its most important parts if it exceeds the limits of values. */
export function recorded<T>(
  thrown: unknown,
  at: ThrownAt | undefined,
  write: (stored: StoredError) => T,
): T {
  const whole = storedError(thrown, { at });
  const { name, message, code, details } = whole;
  const facts = { ...(code !== undefined && { code }), ...(at !== undefined && { at }) };
  const said = { name, message, ...facts, ...(details !== undefined && { details }) };
  for (const stored of [whole, said])
    try {
      return write(stored);
    } catch {
      // Tried again with less of it.
    }
  return write({ name: clipped(name), message: clipped(message), ...facts });
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
        `${named} timed out: its deadline has passed, or its worker was lost during its last attempt.`,
        { run: failed },
      );
    default:
      kind satisfies never;
      throw new Error("Unreachable.");
  }
}

/** The place in the run at which the error was thrown. An error of a child was thrown in the child. */
/** The step and the attempt in which an error was thrown, if they are known. */
export function placeOf(stored: StoredError): ThrownAt | undefined {
  if (stored.run !== undefined) return undefined;
  if (isThrownAt(stored.at)) return stored.at;
  return stored.cause === undefined ? undefined : placeOf(stored.cause);
}

export function spokenPlace(at: ThrownAt | undefined): string {
  if (at === undefined) return "";
  const { step, attempt } = at;
  return `${step === undefined ? "" : ` in step "${step}"`} (attempt ${attempt})`;
}

/**
 * Names the error and the line of the user's code. The message is left out, since it may hold
 * values and this text is stored unencoded.
 */
export function spokenOrigin(thrown: unknown): string {
  const { name, stack } = storedError(thrown);
  const line = userLine(stack);
  return `${clipped(name)}${line === undefined ? "" : ` (at ${clipped(line, 1_000)})`}`;
}

/**
 * Describes an error with its causes and the line of the user's code, in one line. Runs that
 * only passed the error on are left out. The run that threw it is named.
 */
function told(error: Error): string {
  const chain: string[] = [];
  let line: string | undefined;
  let thrower: RunFailedError | undefined;
  let each: unknown = error;
  let depth = 0;
  for (; isError(each) && chain.length < 4; each = each.cause, depth += 1) {
    if (isRunFailedError(each) && each.kind === "failed" && isError(each.cause)) {
      thrower = each;
      line = undefined;
      continue;
    }
    const isOfRun = isRunFailedError(each);
    chain.push(
      isOfRun ? clipped(each.message, 2_000) : `${each.name}: ${clipped(each.message, 1_000)}`,
    );
    if (!isOfRun) line = userLine(each.stack) ?? line;
  }
  // A chain that was cut to fit may lack the run that threw.
  const run = depth < errorDepthMax ? thrower : undefined;
  const place = [line && `at ${line}`, run && `in ${spokenRun(run)}`].filter(Boolean).join(", ");
  return `${chain.join("; caused by ")}${place && ` (${place})`}`;
}

function spokenRun({ runId, function: name, step, attempt }: RunFailedError): string {
  const inStep = step === undefined ? "" : `, step "${step}"`;
  return `run ${runId} of ${name}${inStep}${attempt === undefined ? "" : `, attempt ${attempt}`}`;
}

/** The first place of a stack outside Node and packages. */
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

/** The error with which open calls of a workflow reject once the run is cancelled. */
export function runCancelled(
  id: string,
  reason: string | null,
  /** The outcome of the awaited work, if the call had to wait for it. */
  ended?: {
    readonly call: string;
    readonly outcome: "completed" | "failed";
    readonly cause: Error | undefined;
  },
): HoldfastError {
  const error = new HoldfastError(
    "RUN_CANCELLED",
    `Run ${id} is being cancelled${reason === null ? "" : `: ${reason}`}. Clean up, and let this error propagate.`,
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

/** The error for a run that continues elsewhere. */
export function lockWasLost(id: string): HoldfastError {
  return new HoldfastError(
    "LOCK_LOST",
    `Run ${id} was taken over by another worker; further work of this one is not recorded.`,
    { id },
  );
}

/** Codes after which a run has no owner or another one, or nothing can be written. */
const losing: ReadonlySet<string> = new Set([
  "LOCK_LOST",
  "EXECUTION_FINISHED",
  "EXECUTION_NOT_FOUND",
  "EXECUTION_PARKED",
  "UNLOCK_REFUSED",
  // The append came so late that its new lease would already have expired.
  "LOCK_EXPIRY_INVALID",
  "DATABASE_CLOSED",
  "WRITES_STOPPED",
  "FLUSH_FAILED",
  "MOVED_TO_POSTGRES",
  // The process was set up wrongly, which is not the fault of the run.
  "PREPARED_STATEMENT_LOST",
]);

/** True if a refusal means that this worker no longer holds the run, or that nothing can be written. */
export function isLosing({ code }: HoldfastError): boolean {
  return losing.has(code);
}
