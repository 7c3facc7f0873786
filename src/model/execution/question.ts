import { isFields, type JsonSchema } from "../json-schema/json-schema.ts";
import { externalFunction } from "./open-waits.ts";

/** The content of a question. It is the input of the question's own execution. */
export interface AskedQuestion {
  readonly about?: unknown;
  /** The JSON Schema that an answer must fit; undefined when any value answers. */
  readonly schema?: JsonSchema | undefined;
}

/** The question in the input of an external execution. One without a workflow asks by its input alone. */
export function askedIn(name: string, input: unknown): AskedQuestion {
  if (name !== externalFunction || !isFields(input)) return { about: input };
  const { about, schema } = input;
  return { about, ...(isFields(schema) && { schema }) };
}
