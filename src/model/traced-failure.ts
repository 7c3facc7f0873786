import { HoldfastError, isHoldfastError } from "./errors.ts";

/** Produces the text of a stack. V8 keeps only positions until a caller reads the text. */
type StackText = () => unknown;

/** The original stacks of errors that callers have received. */
const madeAt = new WeakMap<HoldfastError, StackText>();

/**
 * Rejects with the error, and adds the lines of the awaiting functions to its stack. Errors are
 * made where transactions are driven, far from the caller. Recording the line of every call would
 * cost all calls, and only failed ones need it.
 *
 * Return the promise, or pass it to the `resolve` of the caller's promise. V8 finds waiting async
 * functions by following promises from the one that is being settled. So a call pays nothing before
 * it fails.
 */
export function tracedFailure(failure: unknown): Promise<never> {
  const failing: Promise<never> = traced(failure, () => {
    // A promise that is already settled ignores this one, so this rejection would be unhandled. A
    // second follower also hides the functions that await the first.
    failing.catch(() => undefined);
  });
  return failing;
}

async function traced(failure: unknown, onSeen: () => void): Promise<never> {
  // A promise that resolves with this one follows it only after a turn of the microtask queue. No
  // waiting function is visible before that.
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
  // One error may end several calls, as a failed commit does. Each call gets its own copy.
  const told = known === undefined ? error : copyOf(error);
  madeAt.set(told, made);
  let text: unknown;
  // Has no effect on a frozen error.
  Reflect.defineProperty(told, "stack", {
    get: () => (text ??= joined(made(), here.stack)),
    set: (value: unknown) => {
      text = value;
    },
    configurable: true,
  });
  return told;
}

/** Node 20 writes the stack at once, later versions when it is read. */
function stackOf(error: HoldfastError): StackText {
  const stack = Object.getOwnPropertyDescriptor(error, "stack");
  return (): unknown => (stack?.get === undefined ? stack?.value : stack.get.call(error));
}

function joined(own: unknown, here: unknown): unknown {
  // A user's `Error.prepareStackTrace` may return any value as the stack.
  if (typeof own !== "string" || typeof here !== "string") return own;
  const lines = here.split("\n").filter((line) => isCaller(line, own));
  return [own, ...lines].join("\n");
}

/** Excludes Node's own frames below this function, which only run the waiting code. */
function isCaller(line: string, own: string): boolean {
  return /^\s+at /.test(line) && !line.includes("node:internal") && !own.includes(line);
}

/** Copies only plain HoldfastErrors. A subclass may hold more state, so its instance is kept. */
function copyOf(error: HoldfastError): HoldfastError {
  if (Object.getPrototypeOf(error) !== HoldfastError.prototype) return error;
  const { code, message, details } = error;
  const cause = "cause" in error ? { cause: error.cause } : undefined;
  return new HoldfastError(code, message, details, cause);
}
