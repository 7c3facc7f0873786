import { processInvalid } from "../process/errors.ts";
import { canonicalText } from "../values/canonical.ts";
import { isHoldfastError } from "../errors.ts";
import { pathText } from "../values/value-path.ts";
import type { PathStep } from "../values/value-path.ts";

/** The supported part of JSON Schema for payloads of declared events. */
export interface PayloadSchema {
  readonly anyOf?: readonly PayloadSchema[];
  /**
   * Acts like `anyOf`: several alternatives may fit, and one is enough. If both are given, the
   * payload must fit one of each.
   */
  readonly oneOf?: readonly PayloadSchema[];
  readonly enum?: readonly unknown[];
  readonly type?: SchemaType | readonly SchemaType[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: PayloadSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, PayloadSchema>>;
  /**
   * The rule for unlisted properties. Without it, or with `false`, they are refused if `properties`
   * is given.
   */
  readonly additionalProperties?: boolean | PayloadSchema;
}

type SchemaType = "null" | "boolean" | "integer" | "number" | "string" | "array" | "object";

const types: readonly string[] = [
  "null",
  "boolean",
  "integer",
  "number",
  "string",
  "array",
  "object",
] satisfies SchemaType[];

/** The place where a payload breaks a schema, and the broken rule. */
interface SchemaViolation {
  readonly path: string;
  readonly rule: string;
}

type Violation = SchemaViolation | undefined;
type Fields = Readonly<Record<string, unknown>>;

/** Returns the first rule that a value breaks; undefined when it fits. */
export function schemaViolation(
  schema: PayloadSchema,
  value: unknown,
  path: readonly PathStep[] = [],
): Violation {
  const broken = (rule: string): SchemaViolation => ({
    path: pathText(path),
    rule,
  });
  for (const choices of [schema.anyOf, schema.oneOf])
    if (choices?.every((choice) => schemaViolation(choice, value, path)))
      return broken("it fits none of the alternatives");
  if (schema.enum?.some((allowed) => isEqual(allowed, value)) === false)
    return broken("it is none of the values in enum");
  const { type } = schema;
  const wanted = typeof type === "string" ? [type] : type;
  if (wanted?.some((one) => isOfType(one, value)) === false)
    return broken(`type is not ${wanted.join(" or ")}`);
  const size = sizeRule(schema, value);
  if (size !== undefined) return broken(size);
  if (Array.isArray(value)) return itemsViolation(schema, value, path);
  return isFields(value) ? fieldsViolation(schema, value, path) : undefined;
}

function sizeRule(schema: PayloadSchema, value: unknown): string | undefined {
  const within = (
    size: number,
    low: "minimum" | "minLength" | "minItems",
    high: "maximum" | "maxLength" | "maxItems",
  ): string | undefined => {
    const [min, max] = [schema[low], schema[high]];
    if (min !== undefined && size < min) return `${low} is ${min}`;
    return max !== undefined && size > max ? `${high} is ${max}` : undefined;
  };
  if (typeof value === "number") return within(value, "minimum", "maximum");
  if (typeof value === "string") return within(codePoints(value), "minLength", "maxLength");
  if (Array.isArray(value)) return within(value.length, "minItems", "maxItems");
  return undefined;
}

/** Counts code points, as JSON Schema does, not halves of surrogate pairs. */
function codePoints(text: string): number {
  return Array.from(text).length;
}

function itemsViolation(
  { items }: PayloadSchema,
  value: readonly unknown[],
  path: readonly PathStep[],
): Violation {
  if (items === undefined) return undefined;
  for (const [index, item] of value.entries()) {
    const violation = schemaViolation(items, item, [...path, index]);
    if (violation !== undefined) return violation;
  }
  return undefined;
}

function fieldsViolation(
  schema: PayloadSchema,
  value: Fields,
  path: readonly PathStep[],
): Violation {
  const missing = schema.required?.find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return { path: pathText([...path, missing]), rule: "it is required" };
  const { properties, additionalProperties } = schema;
  for (const [name, field] of Object.entries(value)) {
    const own =
      properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
    const others =
      properties === undefined ? (additionalProperties ?? true) : (additionalProperties ?? false);
    const at = [...path, name];
    if (own === undefined && others === false)
      return {
        path: pathText(at),
        rule: "no property of that name is declared",
      };
    const held = own ?? (typeof others === "object" ? others : {});
    const violation = schemaViolation(held, field, at);
    if (violation !== undefined) return violation;
  }
  return undefined;
}

function isOfType(type: SchemaType, value: unknown): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    case "array":
      return Array.isArray(value);
    case "object":
      return isFields(value);
    default:
      return typeof value === type;
  }
}

/** Compares values as they are stored, ignoring the order of properties. */
function isEqual(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  try {
    return canonicalText(a) === canonicalText(b);
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}

/** True for a plain object, the only kind in JSON. */
export function isFields(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

const numbers: ReadonlySet<string> = new Set([
  "minimum",
  "maximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
]);
const schemaDepthMax = 32;
const schemaItemsMax = 1_000;
/** Counted at every place: a schema that is named twice on each of 16 levels is walked 65,536 times. */
const schemasMax = 10_000;

/**
 * Checks a schema from a caller. Unknown keywords are refused, because an unchecked rule would be
 * worse than none. Lists are measured before they are walked, since a proxy may report any length.
 *
 * @throws HoldfastError `PROCESS_INVALID`
 */
export function checkedSchema(
  given: unknown,
  path: readonly PathStep[],
  walked: { schemas: number } = { schemas: 0 },
): PayloadSchema {
  const at = pathText(path);
  if (!isFields(given)) throw processInvalid(at, "is not a schema object.");
  if (path.length > schemaDepthMax)
    throw processInvalid(at, `is nested deeper than ${schemaDepthMax}.`);
  walked.schemas += 1;
  if (walked.schemas > schemasMax)
    throw processInvalid(at, `follows ${schemasMax} other schemas, the most that one may have.`);
  for (const [word, value] of Object.entries(given))
    checkWord(word, value, [...path, word], walked);
  return given;
}

function checkWord(
  word: string,
  value: unknown,
  path: readonly PathStep[],
  walked: { schemas: number },
): void {
  const wrong = (why: string): Error => processInvalid(pathText(path), why);
  if (numbers.has(word)) {
    if (typeof value !== "number" || !Number.isFinite(value)) throw wrong("is not a number.");
    return;
  }
  // Only the size of a registration limits the values of an enum, which are not walked here.
  if (Array.isArray(value) && word !== "enum" && value.length > schemaItemsMax)
    throw wrong(`is an array of more than ${schemaItemsMax} items.`);
  switch (word) {
    case "anyOf":
    case "oneOf":
      if (!Array.isArray(value) || value.length === 0)
        throw wrong("must be an array of one or more schemas.");
      value.forEach((choice, index) => checkedSchema(choice, [...path, index], walked));
      return;
    case "enum":
      if (!Array.isArray(value)) throw wrong("is not an array of values.");
      return;
    case "type": {
      const list: readonly unknown[] = Array.isArray(value) ? value : [value];
      if (list.length === 0 || !list.every((one) => types.includes(one as string)))
        throw wrong(`has an unknown type. Types are ${types.join(", ")}.`);
      return;
    }
    case "required":
      if (!Array.isArray(value) || !value.every((one) => typeof one === "string"))
        throw wrong("is not an array of names.");
      return;
    case "properties":
      if (!isFields(value)) throw wrong("is not an object of schemas.");
      for (const [name, held] of Object.entries(value))
        checkedSchema(held, [...path, name], walked);
      return;
    case "items":
      checkedSchema(value, path, walked);
      return;
    case "additionalProperties":
      if (typeof value !== "boolean") checkedSchema(value, path, walked);
      return;
    default:
      throw wrong("is an unknown keyword for payload schemas.");
  }
}
