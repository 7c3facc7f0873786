import { HoldfastError } from "../../model/errors.ts";
import { givenInvalid } from "../../model/shape.ts";

/**
 * A schema of any library that speaks Standard Schema (Zod, Valibot, ArkType
 * and others): the part of it that is used here.
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
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly Issue[] };

interface Issue {
  readonly message: string;
  readonly path?:
    readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function givenSchema(
  place: string,
  given: Schema | undefined,
): Schema | undefined {
  if (given === undefined) return undefined;
  const { "~standard": standard } = Object(given) as {
    readonly "~standard"?: { readonly validate?: unknown };
  };
  const validate = standard?.validate;
  if (typeof validate === "function") return given;
  throw givenInvalid(place, "a schema that speaks Standard Schema", given);
}

/** The value as the schema gives it back, which is what is stored. @throws HoldfastError `INPUT_INVALID` */
export async function validated(
  what: string,
  schema: Schema | undefined,
  value: unknown,
): Promise<unknown> {
  if (schema === undefined) return value;
  return accepted(what, await schema["~standard"].validate(value));
}

/**
 * The same without waiting, for calls of a workflow: its code must not go on
 * at another moment than it will when it is run again.
 * @throws HoldfastError `INPUT_INVALID`
 */
export function validatedNow(
  what: string,
  schema: Schema | undefined,
  value: unknown,
): unknown {
  if (schema === undefined) return value;
  const verdict = schema["~standard"].validate(value);
  if (!("then" in verdict)) return accepted(what, verdict);
  void verdict.then(undefined, () => undefined);
  throw new HoldfastError(
    "INPUT_INVALID",
    `${what} has a schema that answers later, which code of a workflow cannot wait for. ` +
      "Check it in a step and give the function a schema without promises.",
    { issues: [] },
  );
}

function accepted(what: string, verdict: Verdict<unknown>): unknown {
  if (verdict.issues === undefined) return verdict.value;
  const issues = verdict.issues.map(({ message, path }) => ({
    path: pathText(path ?? []),
    message,
  }));
  const spoken = issues
    .slice(0, 5)
    .map(({ path, message }) => `${path === "" ? "" : `${path}: `}${message}`)
    .join("; ");
  throw new HoldfastError(
    "INPUT_INVALID",
    `${what} does not fit its schema: ${spoken}. Nothing was written.`,
    { issues: issues.slice(0, 20) },
  );
}

function pathText(path: NonNullable<Issue["path"]>): string {
  return path
    .map((step) => String(typeof step === "object" ? step.key : step))
    .join(".");
}
