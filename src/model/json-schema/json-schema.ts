/**
 * A JSON Schema of the supported part: what Zod, Valibot and ArkType write for draft 2020-12 and
 * draft-07, and the usual keywords beside it. `checkedJsonSchema` refuses every other keyword.
 */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A schema inside another one. */
export type Subschema = JsonSchema | boolean;

/** The kinds of a keyword's value. */
export type KeywordKind =
  | "note"
  | "schema"
  | "schemas"
  | "schemasByName"
  | "items"
  | "type"
  | "values"
  | "value"
  | "names"
  | "namesByName"
  | "number"
  | "divisor"
  | "size"
  | "flag"
  | "pattern"
  | "reference";

/** The keywords. A `note` says nothing about validity. */
const keywords: Readonly<Record<string, KeywordKind>> = {
  $schema: "note",
  $comment: "note",
  id: "note",
  title: "note",
  description: "note",
  default: "note",
  example: "note",
  examples: "note",
  deprecated: "note",
  readOnly: "note",
  writeOnly: "note",
  format: "note",
  contentEncoding: "note",
  contentMediaType: "note",
  discriminator: "note",
  type: "type",
  nullable: "flag",
  enum: "values",
  const: "value",
  allOf: "schemas",
  anyOf: "schemas",
  oneOf: "schemas",
  not: "schema",
  if: "schema",
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema.
  then: "schema",
  else: "schema",
  $ref: "reference",
  $defs: "schemasByName",
  definitions: "schemasByName",
  minimum: "number",
  maximum: "number",
  exclusiveMinimum: "number",
  exclusiveMaximum: "number",
  multipleOf: "divisor",
  minLength: "size",
  maxLength: "size",
  pattern: "pattern",
  items: "items",
  prefixItems: "schemas",
  additionalItems: "schema",
  contains: "schema",
  minContains: "size",
  maxContains: "size",
  minItems: "size",
  maxItems: "size",
  uniqueItems: "flag",
  properties: "schemasByName",
  patternProperties: "schemasByName",
  additionalProperties: "schema",
  propertyNames: "schema",
  required: "names",
  dependentRequired: "namesByName",
  minProperties: "size",
  maxProperties: "size",
};

/** Keywords that apply a schema to the same value: a cycle of them would never end. */
export const sameValue: readonly string[] = [
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
];

export function kindOfKeyword(word: string): KeywordKind | undefined {
  if (Object.hasOwn(keywords, word)) return keywords[word];
  return word.startsWith("x-") ? "note" : undefined;
}

/** True for an object of JSON. */
export function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

export function isSubschema(value: unknown): value is Subschema {
  return typeof value === "boolean" || isFields(value);
}

/** The schema that a local reference such as `#/$defs/user` names; undefined when it names none. */
export function referred(root: JsonSchema, reference: string): Subschema | undefined {
  let found: unknown = root;
  for (const step of stepsOf(reference) ?? [undefined]) {
    if (step === undefined || typeof found !== "object" || found === null) return undefined;
    if (!Object.hasOwn(found, step)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[step];
  }
  return isSubschema(found) ? found : undefined;
}

/** The steps of a JSON pointer behind `#`; undefined when it is malformed. */
function stepsOf(reference: string): readonly string[] | undefined {
  if (reference === "#") return [];
  if (!reference.startsWith("#/")) return undefined;
  try {
    return reference
      .slice(2)
      .split("/")
      .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  } catch {
    return undefined;
  }
}
