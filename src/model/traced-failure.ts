import { HoldfastError, isHoldfastError } from "./errors.ts";

/** Of errors that callers have met: their stack as it was when they were made. */
const madeAt = new WeakMap<HoldfastError, string>();

/**
 * Rejects with the error, whose stack by then ends with the lines of those who
 * await this promise. Errors of calls are made where transactions are driven,
 * far from whoever called, and remembering every call's line would cost each
 * call what only those that fail need.
 *
 * To be returned, or given to the `resolve` of the promise that a caller has.
 * V8 finds async functions that wait by following promises from the one that
 * is being settled, so nothing is paid for it before something fails.
 */
export function tracedFailure(error: unknown): Promise<never> {
  const failing: Promise<never> = traced(error, () => {
    // A promise that was settled before takes no notice of this one, and then
    // nobody would. A second follower also hides those who await the first.
    failing.catch(() => undefined);
  });
  return failing;
}

async function traced(error: unknown, onSeen: () => void): Promise<never> {
  // A promise that is resolved with this one follows it only after a turn of
  // the microtask queue, and nobody could be seen before that.
  await Promise.resolve();
  await Promise.resolve();
  const here: { stack?: string } = {};
  Error.captureStackTrace?.(here, traced);
  onSeen();
  const { stack } = here;
  throw isHoldfastError(error) && typeof stack === "string"
    ? withCallers(error, stack)
    : error;
}

function withCallers(error: HoldfastError, here: string): HoldfastError {
  const own = madeAt.get(error) ?? error.stack;
  // Somebody's `Error.prepareStackTrace` may make anything of a stack.
  if (typeof own !== "string") return error;
  const lines = here.split("\n").filter((line) => isCaller(line, own));
  if (lines.length === 0) return error;
  // One error may end many calls, a failed commit does: each gets its own.
  const isShared = madeAt.has(error);
  const told = isShared ? copyOf(error) : error;
  madeAt.set(told, own);
  Object.defineProperty(told, "stack", {
    value: [own, ...lines].join("\n"),
    writable: true,
    configurable: true,
  });
  return told;
}

/** Below this function there is only Node itself, which runs what waits. */
function isCaller(line: string, own: string): boolean {
  return (
    /^\s+at /.test(line) &&
    !line.includes("node:internal") &&
    !own.includes(line)
  );
}

function copyOf(error: HoldfastError): HoldfastError {
  const { code, message, details } = error;
  const cause = "cause" in error ? { cause: error.cause } : undefined;
  return new HoldfastError(code, message, details, cause);
}
