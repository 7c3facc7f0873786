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
  readonly cause?: StoredError;
  /** The parts of an AggregateError. */
  readonly errors?: readonly StoredError[];
}

// Beyond these an error stops being read. Together they keep a failure below
// the default size limit of values (16 * 16,384 characters, each escaped to six
// at worst), so that it can always be recorded.
const messageCharactersMax = 8_192;
const stackCharactersMax = 8_192;
const codeCharactersMax = 256;
const depthMax = 8;
const errorsMax = 16;

export interface StoredErrorOptions {
  /** False leaves stacks out, since they differ between machines. */
  readonly stack?: boolean;
}

/** Never throws, whatever was thrown: recording a failure must not fail. */
export function storedError(
  thrown: unknown,
  options: StoredErrorOptions = {},
): StoredError {
  try {
    return new ErrorReader(options.stack ?? true).read(thrown);
  } catch {
    return { name: "NonError", message: "The thrown value cannot be read." };
  }
}

/** A stored error as it would be without stacks. */
export function withoutStacks(stored: StoredError): StoredError {
  const { name, message, code, cause, errors } = stored;
  return {
    name,
    message,
    ...(code !== undefined && { code }),
    ...(cause !== undefined && { cause: withoutStacks(cause) }),
    ...(errors !== undefined && { errors: errors.map(withoutStacks) }),
  };
}

/** True for errors of any realm, DOMException included. */
export function isError(value: unknown): value is Error {
  return (
    value instanceof Error ||
    Object.prototype.toString.call(value) === "[object Error]"
  );
}

/** Reads an error with its causes and parts, in bounds and without cycles. */
class ErrorReader {
  readonly #withStack: boolean;
  readonly #ancestors: unknown[] = [];
  #errorsLeft = errorsMax;

  constructor(withStack: boolean) {
    this.#withStack = withStack;
  }

  read(thrown: unknown): StoredError {
    this.#errorsLeft -= 1;
    if (!isError(thrown)) return { name: "NonError", message: textOf(thrown) };
    const { name, message, stack, cause } = thrown;
    const { code, errors } = thrown as { code?: unknown; errors?: unknown };
    this.#ancestors.push(thrown);
    const stored: StoredError = {
      name: clip(name, codeCharactersMax),
      message: clip(message, messageCharactersMax),
      ...(isCode(code) && { code }),
      ...(this.#withStack &&
        typeof stack === "string" && {
          stack: clip(stack, stackCharactersMax),
        }),
      ...(this.#fits(cause) && { cause: this.read(cause) }),
      ...(Array.isArray(errors) && { errors: this.#readAll(errors) }),
    };
    this.#ancestors.pop();
    return stored;
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
  return text.length > charactersMax
    ? `${text.slice(0, charactersMax)}…`
    : text;
}

function isCode(code: unknown): code is string | number {
  return typeof code === "string"
    ? code.length <= codeCharactersMax
    : Number.isFinite(code);
}
