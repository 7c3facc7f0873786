import { isHoldfastError } from "../errors.ts";
import { failedRunOf, type FailedRun } from "../run-failed-error.ts";
import { safely } from "../safely.ts";
import { jsonCopy } from "./json-copy.ts";
import { isThrownAt, thrownAt, type ThrownAt } from "./thrown-at.ts";

/**
 * An error as data: what people read and what code matches on. Further fields
 * are left out on purpose: errors in the wild carry sockets, requests and
 * credentials, which can neither be stored nor should be.
 */
export interface StoredError {
  readonly name: string;
  readonly message: string;
  readonly code?: string | number;
  readonly stack?: string;
  /** Its own `data`, which it has for others to read, as JSON; what was thrown, if it was an object and no error. */
  readonly data?: unknown;
  /** Of an error of ours, as JSON. */
  readonly details?: unknown;
  /** Where in a run it was thrown, when that is known. */
  readonly at?: ThrownAt;
  /** Which run failed, when that is what it says. */
  readonly run?: FailedRun;
  readonly cause?: StoredError;
  /** The parts of an AggregateError. */
  readonly errors?: readonly StoredError[];
}

// Beyond these an error stops being read. Together they keep a failure below
// the default size limit of values (16 * 16,384 characters and those of the
// data, each escaped to six at worst), so that it can always be recorded.
const messageCharactersMax = 8_192;
const stackCharactersMax = 8_192;
const codeCharactersMax = 256;
const depthMax = 8;
const errorsMax = 16;
const dataCharactersMax = 16_384;

export interface StoredErrorOptions {
  /** False leaves stacks out, since they differ between machines. */
  readonly stack?: boolean;
  /** Where it was thrown. */
  readonly at?: ThrownAt | undefined;
}

/** Never throws, whatever was thrown: recording a failure must not fail. */
export function storedError(thrown: unknown, options: StoredErrorOptions = {}): StoredError {
  try {
    const stored = new ErrorReader(options.stack ?? true).read(thrown);
    return options.at === undefined ? stored : { ...stored, at: options.at };
  } catch {
    return { name: "NonError", message: "The thrown value cannot be read." };
  }
}

/** What was thrown, in one line. Never throws. */
export function spokenError(thrown: unknown): string {
  const { name, message } = storedError(thrown, { stack: false });
  return isError(thrown) ? `${name}: ${message}` : message;
}

/** A stored error as it would be without stacks. */
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

/** Reads an error with its causes and parts, in bounds and without cycles. */
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

  /** The last for which there is room is the one that began it all: it says most. */
  #causeOf(cause: unknown): Pick<StoredError, "cause"> {
    const isLast = this.#ancestors.length === depthMax - 1;
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
    for (const error of errors) {
      if (this.#fits(error)) stored.push(this.read(error));
      if (this.#errorsLeft === 0) break;
    }
    return stored;
  }

  #fits(thrown: unknown): boolean {
    return (
      thrown !== undefined &&
      this.#errorsLeft > 0 &&
      this.#ancestors.length < depthMax &&
      !this.#ancestors.includes(thrown)
    );
  }
}

/** What has no cause of its own, unless the chain comes back to itself. */
function firstCause(cause: unknown, ancestors: readonly unknown[]): unknown {
  const seen = new Set(ancestors);
  let first = cause;
  while (isError(first) && first.cause !== undefined && !seen.has(first)) {
    seen.add(first);
    first = first.cause;
  }
  return first;
}

function textOf(thrown: unknown): string {
  const { message } = Object(thrown) as { message?: unknown };
  if (typeof message === "string") return clip(message, messageCharactersMax);
  return clip(jsonOf(thrown) ?? thrown, messageCharactersMax);
}

/** The JSON of an object, unless it has none (a cycle, a bigint). */
function jsonOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object") return undefined;
  try {
    return JSON.stringify(thrown);
  } catch {
    return undefined;
  }
}

function clip(value: unknown, charactersMax: number): string {
  const text = String(value);
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}

function isCode(code: unknown): code is string | number {
  return typeof code === "string" ? code.length <= codeCharactersMax : Number.isFinite(code);
}
