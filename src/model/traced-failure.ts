import { HoldfastError, isHoldfastError } from "./errors.ts";

/** Writes a stack: V8 only keeps where it was, until somebody wants to read it. */
type StackText = () => unknown;

/** Of errors that callers have met: their stack as it was when they were made. */
const madeAt = new WeakMap<HoldfastError, StackText>();

/**
 * Rejects with the error, whose stack by then ends with the lines of those who
 * await this promise. Errors of calls are made where transactions are driven,
 * far from the caller, and remembering every call's line would cost each
 * call what only those that fail need.
 *
 * To be returned, or given to the `resolve` of the promise that a caller has.
 * V8 finds async functions that wait by following promises from the one that
 * is being settled, so nothing is paid for it before something fails.
 */
export function tracedFailure(failure: unknown): Promise<never> {
  const failing: Promise<never> = traced(failure, () => {
    // A promise that was settled before takes no notice of this one, and then
    // nobody would. A second follower also hides those who await the first.
    failing.catch(() => undefined);
  });
  return failing;
}

async function traced(failure: unknown, onSeen: () => void): Promise<never> {
  // A promise that is resolved with this one follows it only after a turn of
  // the microtask queue, and nobody could be seen before that.
  await Promise.resolve();
  await Promise.resolve();
  const here = {};
  Error.captureStackTrace?.(here, traced);
  onSeen();
  throw isHoldfastError(failure) && "stack" in here ? withCallers(failure, here) : failure;
}

function withCallers(error: HoldfastError, here: { readonly stack: unknown }): HoldfastError {
  const known = madeAt.get(error);
  const made = known ?? stackOf(error);
  // One error may end many calls, a failed commit does: each gets its own.
  const told = known === undefined ? error : copyOf(error);
  madeAt.set(told, made);
  let text: unknown;
  // Changes nothing of one that was frozen.
  Reflect.defineProperty(told, "stack", {
    get: () => (text ??= joined(made(), here.stack)),
    set: (value: unknown) => {
      text = value;
    },
    configurable: true,
  });
  return told;
}

/** Node 20 writes it at once, later versions when it is read. */
function stackOf(error: HoldfastError): StackText {
  const stack = Object.getOwnPropertyDescriptor(error, "stack");
  return (): unknown => (stack?.get === undefined ? stack?.value : stack.get.call(error));
}

function joined(own: unknown, here: unknown): unknown {
  // Somebody's `Error.prepareStackTrace` may make anything of a stack.
  if (typeof own !== "string" || typeof here !== "string") return own;
  const lines = here.split("\n").filter((line) => isCaller(line, own));
  return [own, ...lines].join("\n");
}

/** Below this function there is only Node itself, which runs what waits. */
function isCaller(line: string, own: string): boolean {
  return /^\s+at /.test(line) && !line.includes("node:internal") && !own.includes(line);
}

/** Somebody's own class could have more to it, and stays the one object that it is. */
function copyOf(error: HoldfastError): HoldfastError {
  if (Object.getPrototypeOf(error) !== HoldfastError.prototype) return error;
  const { code, message, details } = error;
  const cause = "cause" in error ? { cause: error.cause } : undefined;
  return new HoldfastError(code, message, details, cause);
}
