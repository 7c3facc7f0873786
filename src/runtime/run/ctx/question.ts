import { parseFunctionName } from "../../../model/ids/function-name.ts";
import { externalFunction } from "../../../model/execution/open-waits.ts";
import type { AskedQuestion } from "../../../model/execution/question.ts";
import { checkedJsonSchema } from "../../../model/json-schema/check-schema.ts";
import type { JsonSchema } from "../../../model/json-schema/json-schema.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { givenInvalid, optionsOf, readGiven } from "../../../model/shape.ts";
import type { ExternalOptions } from "../../definition/workflow-context.ts";
import type { RunState } from "../run-state.ts";
import type { ChildDraft } from "./child-draft.ts";

/** The function name of externals: no worker runs them. */
const askingFunction = parseFunctionName(externalFunction);

/** The child that stands for a question. Its input is the question, and its deadline the timeout. */
export function questionFor(run: RunState, options: ExternalOptions | undefined): ChildDraft {
  const bare = { function: askingFunction, role: "external", input: undefined } as const;
  // The recorded question stands: other words in newer code must not park a run that waits. Options
  // that were refused left no question, and are refused again.
  if (!run.replay.isOver && run.replay.childOf(run.calls + 1) === askingFunction) return bare;
  const { about, schema, timeout, tags } = optionsOf<ExternalOptions>(options, [
    "about",
    "schema",
    "timeout",
    "tags",
  ]);
  const asked: AskedQuestion = {
    ...(about !== undefined && { about }),
    ...(schema !== undefined && { schema: jsonSchemaOf(schema) }),
  };
  return {
    ...bare,
    ...(Object.keys(asked).length > 0 && { input: asked }),
    ...(timeout !== undefined && { deadline: timeout }),
    ...(tags !== undefined && { tags }),
  };
}

/** The part of Standard JSON Schema that is used here. */
interface Convertible {
  readonly validate?: unknown;
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown };
}

/** Converts the schema of an answer. @throws HoldfastError `OPTION_INVALID` */
function jsonSchemaOf(given: unknown): JsonSchema {
  if ((typeof given !== "object" && typeof given !== "function") || given === null)
    throw givenInvalid("schema", "a JSON Schema, or a schema that can be converted to one", given);
  const standard = readGiven(
    "schema",
    () => (given as { readonly "~standard"?: Convertible })["~standard"],
  );
  if (standard === undefined) return checkedJsonSchema(given);
  const convert = readGiven("schema", () => standard.jsonSchema?.input);
  if (typeof convert !== "function") throw notConvertible("has no conversion to JSON Schema");
  let converted: unknown;
  try {
    // The answer is what the code receives: nothing transforms it, so the schema of inputs counts.
    converted = standard.jsonSchema?.input?.({ target: "draft-2020-12" });
  } catch (cause) {
    throw notConvertible("cannot be written as JSON Schema, see the cause", cause);
  }
  return checkedJsonSchema(converted);
}

function notConvertible(fault: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    `The schema of ctx.external ${fault}. It is stored with the question, so it must be JSON Schema: ` +
      "use Zod 4.2, ArkType 2.1.28, or toStandardJsonSchema of @valibot/to-json-schema, or newer; " +
      'or pass a JSON Schema yourself, such as { type: "object", properties: { … } }.',
    { option: "schema" },
    cause === undefined ? undefined : { cause },
  );
}
