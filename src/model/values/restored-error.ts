import { isOfTheStore } from "../errors.ts";
import { errorCodes, HoldfastError } from "../errors.ts";
import type { ErrorCode } from "../errors.ts";
import { isFailedRun, RunFailedError } from "../run-failed-error.ts";
import { isRecord } from "./spoken-kind.ts";
import type { StoredError } from "./stored-error.ts";
import { isThrownAt, thrownAt } from "./thrown-at.ts";

const builtIns: Readonly<Record<string, ErrorConstructor>> = {
  EvalError,
  RangeError,
  ReferenceError,
  SyntaxError,
  TypeError,
  URIError,
};

/**
 * Restores an error to throw or inspect. Built-in classes return as themselves, so `instanceof
 * TypeError` holds. Others return as Error with their name.
 */
export function restoredError(stored: StoredError): Error {
  const options = stored.cause === undefined ? {} : { cause: restoredError(stored.cause) };
  const error = construct(stored, options);
  if (error.name !== stored.name) hide(error, "name", stored.name);
  if (stored.code !== undefined) Object.assign(error, { code: stored.code });
  if (stored.data !== undefined) Object.assign(error, { data: stored.data });
  if (isThrownAt(stored.at)) hide(error, thrownAt, stored.at);
  // The stack of this function would point at the wrong place.
  hide(error, "stack", stored.stack ?? `${stored.name}: ${stored.message}`);
  return error;
}

/**
 * Restores the recorded failure of a run, an effect or an answer. A refusal becomes a HoldfastError again, with the
 * recorded details. A store's failure stays an Error with that name, since it says nothing about
 * the store now.
 */
export function restoredFailure(stored: StoredError): Error {
  const error = restoredError(stored);
  const { name, code, message, details, at } = stored;
  if (name !== "HoldfastError" || !isErrorCode(code)) return error;
  const ours = new HoldfastError(
    code,
    message,
    isRecord(details) ? details : {},
    stored.cause === undefined ? {} : { cause: error.cause },
  );
  hide(ours, "stack", error.stack ?? message);
  if (isThrownAt(at)) hide(ours, thrownAt, at);
  return isOfTheStore(ours) ? error : ours;
}

function isErrorCode(code: unknown): code is ErrorCode {
  return errorCodes.some((each) => each === code);
}

function construct(stored: StoredError, options: ErrorOptions): Error {
  if (stored.errors !== undefined) {
    const errors = stored.errors.map(restoredError);
    return new AggregateError(errors, stored.message, options);
  }
  const { run, at } = stored;
  if (isFailedRun(run))
    return new RunFailedError(stored.message, {
      run,
      at: isThrownAt(at) ? at : undefined,
      ...options,
    });
  const Class = Object.hasOwn(builtIns, stored.name) ? builtIns[stored.name] : undefined;
  return new (Class ?? Error)(stored.message, options);
}

/** Sets a non-enumerable property, as Error itself does. */
function hide(error: Error, key: PropertyKey, value: unknown): void {
  Object.defineProperty(error, key, {
    value,
    enumerable: false,
    writable: true,
    configurable: true,
  });
}

// As deep as stored-error.ts writes, with room for errors inside errors.
const depthMax = 32;

/** True when data read back has the shape of a StoredError. */
export function isStoredError(value: unknown, depth: number = 0): value is StoredError {
  if (typeof value !== "object" || value === null || depth > depthMax) {
    return false;
  }
  const { name, message, code, stack, cause, errors } = value as Partial<StoredError>;
  return (
    typeof name === "string" &&
    typeof message === "string" &&
    (code === undefined || typeof code === "string" || typeof code === "number") &&
    (stack === undefined || typeof stack === "string") &&
    (cause === undefined || isStoredError(cause, depth + 1)) &&
    (errors === undefined ||
      (Array.isArray(errors) && errors.every((error) => isStoredError(error, depth + 1))))
  );
}
