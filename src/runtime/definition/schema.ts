import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { storedError } from "../../model/values/stored-error.ts";
import { givenInvalid, readGiven } from "../../model/shape.ts";

/**
 * The part of Standard Schema that is used here (Zod, Valibot, ArkType and
 * other libraries implement it).
 */
export interface Schema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Verdict<Out> | Promise<Verdict<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
  };
}

type Verdict<Out> =
  { readonly value: Out; readonly issues?: undefined } | { readonly issues: readonly Issue[] };

/** The longest path that an issue shows. */
const pathStepsMax = 100;

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenSchema(place: string, given: Schema | undefined): Schema | undefined {
  if (given === undefined) return undefined;
  const validate = readGiven(place, () => {
    const { "~standard": standard } = Object(given) as {
      readonly "~standard"?: { readonly validate?: unknown };
    };
    return standard?.validate;
  });
  if (typeof validate === "function") return given;
  throw givenInvalid(place, "a schema that speaks Standard Schema", given);
}

/**
 * Validates a value and makes something of the schema's output, which is the
 * value that is stored. It does so at once unless the schema answers later, so
 * nobody can change the value in between.
 * @throws HoldfastError `INPUT_INVALID`
 */
export function validated<Made>(
  what: string,
  schema: Schema,
  value: unknown,
  make: (valid: unknown) => Made,
): Made | Promise<Made> {
  return guarded(what, () => {
    const verdict = schema["~standard"].validate(value);
    return isPromise(verdict)
      ? validatedLater(what, verdict).then(make)
      : make(accepted(what, verdict));
  });
}

async function validatedLater(
  what: string,
  verdict: PromiseLike<Verdict<unknown>>,
): Promise<unknown> {
  try {
    return accepted(what, await verdict);
  } catch (error) {
    throw refusalOf(what, error);
  }
}

/**
 * Validates without waiting, for calls of a workflow. The workflow's code must
 * not resume at another moment than on replay.
 * @throws HoldfastError `INPUT_INVALID`
 */
export function validatedNow(what: string, schema: Schema | undefined, value: unknown): unknown {
  if (schema === undefined) return value;
  return guarded(what, () => {
    const verdict = schema["~standard"].validate(value);
    if (!isPromise(verdict)) return accepted(what, verdict);
    void verdict.then(undefined, () => undefined);
    throw new HoldfastError(
      "INPUT_INVALID",
      `${what} has a schema that answers later, which code of a workflow cannot wait for. ` +
        "Check it in a step and give the function a schema without promises.",
      { issues: [] },
    );
  });
}

/** Converts errors of the schema: a custom schema may throw, and so may reading its answer. */
function guarded<T>(what: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw refusalOf(what, error);
  }
}

function refusalOf(what: string, error: unknown): HoldfastError {
  return isHoldfastError(error) ? error : schemaFailed(what, error);
}

function isPromise<T extends object>(verdict: T | Promise<T>): verdict is Promise<T> {
  return "then" in Object(verdict);
}

function schemaFailed(what: string, error: unknown): HoldfastError {
  return new HoldfastError(
    "INPUT_INVALID",
    `${what} could not be checked, its schema threw: ${storedError(error).message}. Nothing was written.`,
    { issues: [] },
    { cause: error },
  );
}

function accepted(what: string, verdict: Verdict<unknown>): unknown {
  const { issues: found } = Object(verdict) as Partial<Verdict<unknown>>;
  if (found === undefined && "value" in Object(verdict))
    return (verdict as { readonly value: unknown }).value;
  if (!Array.isArray(found))
    throw new HoldfastError(
      "INPUT_INVALID",
      `${what} could not be checked: its schema answered with neither a value nor a list of issues. Nothing was written.`,
      { issues: [] },
    );
  // Cut first: the list is the schema's, and may report any length.
  const issues = (found as readonly Issue[]).slice(0, 20).map(({ message, path }) => ({
    path: pathText((path ?? []).slice(0, pathStepsMax)),
    message,
  }));
  const spoken = issues
    .slice(0, 5)
    .map(({ path, message }) => `${path === "" ? "" : `${path}: `}${message}`)
    .join("; ");
  throw new HoldfastError(
    "INPUT_INVALID",
    `${what} does not fit its schema: ${spoken}. Nothing was written.`,
    { issues },
  );
}

function pathText(path: NonNullable<Issue["path"]>): string {
  return path.map((step) => String(typeof step === "object" ? step.key : step)).join(".");
}
