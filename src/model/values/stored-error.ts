import { isHoldfastError } from "../errors.ts";
import { failedRunOf, type FailedRun } from "../run-failed-error.ts";
import { safely } from "../safely.ts";
import { jsonCopy } from "./json-copy.ts";
import { isList } from "./spoken-kind.ts";
import { isThrownAt, thrownAt, type ThrownAt } from "./thrown-at.ts";

/**
 * An error as data, with the fields that people read and code matches on. Other fields are omitted
 * on purpose. Real errors carry sockets, requests and credentials, which cannot or should not be
 * stored.
 */
export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  /** The error's `data` field as JSON, or the thrown object when it was not an error. */
  readonly data?: unknown;
  /** The details of a HoldfastError, as JSON. */
  readonly details?: unknown;
  /** The place in a run where it was thrown, if known. */
  readonly at?: ThrownAt;
  /** The failed run, for an error that reports one. */
  readonly run?: FailedRun;
  readonly cause?: StoredError;
  /** The parts of an AggregateError. */
  readonly errors?: readonly StoredError[];
}

// The bounds at which reading an error stops. Together they keep a failure below the default size
// limit of values (16 * 16,384 characters and those of the data, each escaped to six at worst). So
// a failure can always be recorded.
const messageCharactersMax = 8_192;
const stackCharactersMax = 8_192;
const codeCharactersMax = 256;
/** The most errors stored from a chain of causes. The root cause is always among them. */
export const errorDepthMax = 8;
const errorsMax = 16;
/** The most causes that are followed, since a getter may produce causes without end. */
const causesMax = 1_000;
const dataCharactersMax = 16_384;
/** The limit for reading a larger object. Its message is the beginning of its JSON. */
const jsonCharactersMax = 1_048_576;

export interface StoredErrorOptions {
  /** False omits stacks, which differ between machines. */
  readonly stack?: boolean;
  /** The place where it was thrown. */
  readonly at?: ThrownAt | undefined;
}

/** Returns any thrown value as data. It never throws, because recording a failure must not fail. */
export function storedError(thrown: unknown, options: StoredErrorOptions = {}): StoredError {
  try {
    const stored = new ErrorReader(options.stack ?? true).read(thrown);
    return options.at === undefined ? stored : { ...stored, at: options.at };
  } catch {
    return { name: "NonError", message: "The thrown value cannot be read." };
  }
}

/** Returns a thrown value in one line. Never throws. */
export function spokenError(thrown: unknown): string {
  const { name, message } = storedError(thrown, { stack: false });
  return isError(thrown) ? `${name}: ${message}` : message;
}

/** Returns a stored error without stacks. */
export function withoutStacks(stored: StoredError): StoredError {
  const { stack: _, cause, errors, ...rest } = stored;
  return {
    ...rest,
    ...(cause !== undefined && { cause: withoutStacks(cause) }),
    ...(errors !== undefined && { errors: errors.map(withoutStacks) }),
  };
}

/** True for errors of any realm, DOMException included. */
export function isError(value: unknown): value is Error {
  return safely(
    () => value instanceof Error || Object.prototype.toString.call(value) === "[object Error]",
    false,
  );
}

/** Reads an error with its causes and parts, within bounds and without cycles. */
class ErrorReader {
  readonly #withStack: boolean;
  readonly #ancestors: unknown[] = [];
  #errorsLeft = errorsMax;
  #dataLeft = dataCharactersMax;

  constructor(withStack: boolean) {
    this.#withStack = withStack;
  }

  read(thrown: unknown): StoredError {
    this.#errorsLeft -= 1;
    if (!isError(thrown)) return this.#readOther(thrown);
    const { name, message, stack, cause } = thrown;
    const {
      code,
      errors,
      data,
      [thrownAt]: at,
    } = thrown as Partial<Record<"code" | "errors" | "data" | typeof thrownAt, unknown>>;
    const run = failedRunOf(thrown);
    this.#ancestors.push(thrown);
    const stored: StoredError = {
      name: clip(name, codeCharactersMax),
      message: clip(message, messageCharactersMax),
      ...(isCode(code) && { code }),
      ...(this.#withStack &&
        typeof stack === "string" && {
          stack: clip(stack, stackCharactersMax),
        }),
      ...this.#copied("data", data),
      ...(isHoldfastError(thrown) && this.#copied("details", thrown.details)),
      ...(isThrownAt(at) && { at }),
      ...(run !== undefined && { run }),
      ...this.#causeOf(cause),
      ...(Array.isArray(errors) && { errors: this.#readAll(errors) }),
    };
    this.#ancestors.pop();
    return stored;
  }

  /** Stores the root cause in the last free place, because it is the most useful one. */
  #causeOf(cause: unknown): Pick<StoredError, "cause"> {
    const isLast = this.#ancestors.length === errorDepthMax - 1;
    const told = isLast ? firstCause(cause, this.#ancestors) : cause;
    return this.#fits(told) ? { cause: this.read(told) } : {};
  }

  #readOther(thrown: unknown): StoredError {
    const isObject = typeof thrown === "object" && thrown !== null;
    return {
      name: "NonError",
      message: textOf(thrown),
      ...(isObject && this.#copied("data", thrown)),
    };
  }

  #copied(name: "data" | "details", value: unknown): object {
    const copied = value === undefined ? undefined : jsonCopy(value, this.#dataLeft);
    if (copied === undefined) return {};
    this.#dataLeft -= copied.characters;
    return { [name]: copied.copy };
  }

  #readAll(errors: readonly unknown[]): StoredError[] {
    const stored: StoredError[] = [];
    // Reads no further than the limit: a list may consist only of holes.
    for (let at = 0; at < errorsMax && at < errors.length; at += 1)
      if (this.#fits(errors[at])) stored.push(this.read(errors[at]));
    return stored;
  }

  #fits(thrown: unknown): boolean {
    return (
      thrown !== undefined &&
      this.#errorsLeft > 0 &&
      this.#ancestors.length < errorDepthMax &&
      !this.#ancestors.includes(thrown)
    );
  }
}

/** Returns the root of a chain of causes, or the last cause before a cycle. */
function firstCause(cause: unknown, ancestors: readonly unknown[]): unknown {
  const seen = new Set(ancestors);
  let first = cause;
  while (isError(first) && !seen.has(first) && seen.size < causesMax) {
    if (first.cause === undefined) break;
    seen.add(first);
    first = first.cause;
  }
  return first;
}

function textOf(thrown: unknown): string {
  const { message } = Object(thrown) as { message?: unknown };
  if (typeof message === "string") return clip(message, messageCharactersMax);
  const isObject = typeof thrown === "object" && thrown !== null;
  return clip((isObject ? jsonOf(thrown) : undefined) ?? thrown, messageCharactersMax);
}

/** Returns the JSON of an object, or undefined when it exceeds the bounds. */
function jsonOf(thrown: object): string | undefined {
  const copied = jsonCopy(thrown, jsonCharactersMax);
  return copied && JSON.stringify(copied.copy);
}

function clip(value: unknown, charactersMax: number): string {
  const text = textFor(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}

/** Names only the size of a list or of bytes, whose text would be built by walking all of them. */
function textFor(value: unknown): string {
  if (isList(value)) return `an array of ${String(value.length)}`;
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`;
  return String(value);
}

function isCode(code: unknown): code is string | number {
  return typeof code === "string" ? code.length <= codeCharactersMax : Number.isFinite(code);
}
