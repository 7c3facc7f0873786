import { canonicalText } from "../values/canonical.ts";
import { safely } from "../safely.ts";
import { pathText, type PathStep } from "../values/value-path.ts";
import { isFields, referred, type JsonSchema, type Subschema } from "./json-schema.ts";
import { matches, parsedPattern, type Pattern } from "./pattern.ts";
import { Work, WorkExceeded } from "./work.ts";

/** The first place where a value breaks a schema, and the broken rule as a sentence's predicate. */
export interface SchemaFault {
  readonly path: string;
  readonly message: string;
}

/** About 0.2 s of processor time at most, for any schema and value. */
const workMax = 2_000_000;
/** Applying a schema costs as much as this number of steps of a pattern. */
const perSchema = 10;
const depthMax = 2_000;

/** Returns the first rule of a checked schema that a value breaks; undefined when it fits. */
export function schemaFault(schema: JsonSchema, value: unknown): SchemaFault | undefined {
  try {
    return new Check(schema).fault(schema, value, []);
  } catch (error) {
    if (!(error instanceof WorkExceeded)) throw error;
    return { path: "$", message: "takes too much work to check; shorten it" };
  }
}

type Fields = Readonly<Record<string, unknown>>;
type Path = readonly PathStep[];
type Fault = SchemaFault | undefined;

class Check {
  readonly #root: JsonSchema;
  readonly #work = new Work(workMax);
  readonly #patterns = new Map<string, Pattern>();
  #depth = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  fault(schema: Subschema, value: unknown, path: Path): Fault {
    this.#work.spend(perSchema);
    if (schema === true) return undefined;
    if (schema === false) return broken(path, "is not allowed");
    if (this.#depth > depthMax) this.#work.exhaust();
    this.#depth += 1;
    try {
      return (
        this.#ownFault(schema, value, path) ??
        this.#partsFault(schema, value, path) ??
        this.#choiceFault(schema, value, path)
      );
    } finally {
      this.#depth -= 1;
    }
  }

  #ownFault(schema: JsonSchema, value: unknown, path: Path): Fault {
    const { type, enum: values, const: only, nullable } = schema;
    if (type !== undefined) {
      const allowed = (Array.isArray(type) ? type : [type]) as readonly string[];
      const isAllowed = allowed.some((one) => isOfType(one, value));
      if (!isAllowed && !(nullable === true && value === null))
        return broken(path, `must be ${allowed.join(" or ")}`);
    }
    if (
      values !== undefined &&
      !(values as readonly unknown[]).some((one) => this.#isSame(one, value))
    )
      return broken(path, "is none of the allowed values");
    if ("const" in schema && !this.#isSame(only, value))
      return broken(path, "is not the allowed value");
    if (typeof value === "number") return numberFault(schema, value, path);
    if (typeof value === "string") return this.#textFault(schema, value, path);
    return undefined;
  }

  #textFault(schema: JsonSchema, value: string, path: Path): Fault {
    const { minLength, maxLength, pattern } = schema;
    if (minLength !== undefined || maxLength !== undefined) {
      this.#work.spend(value.length);
      // Code points, not UTF-16 units.
      const fault = sizeFault(Array.from(value).length, minLength, maxLength, "characters");
      if (fault !== undefined) return broken(path, fault);
    }
    return typeof pattern === "string" && !this.#matches(pattern, value)
      ? broken(path, `must match the pattern ${pattern}`)
      : undefined;
  }

  #matches(source: string, text: string): boolean {
    let pattern = this.#patterns.get(source);
    if (pattern === undefined) {
      const parsed = parsedPattern(source);
      if (typeof parsed === "string") throw new TypeError(`The pattern ${parsed}.`);
      pattern = parsed;
      this.#work.spend(pattern.program.length);
      this.#patterns.set(source, pattern);
    }
    return matches(pattern, text, this.#work);
  }

  #partsFault(schema: JsonSchema, value: unknown, path: Path): Fault {
    if (Array.isArray(value)) return this.#itemsFault(schema, value, path);
    return isFields(value) ? this.#fieldsFault(schema, value, path) : undefined;
  }

  #itemsFault(schema: JsonSchema, value: readonly unknown[], path: Path): Fault {
    const { items, prefixItems, additionalItems, contains, uniqueItems } = schema;
    const size = sizeFault(value.length, schema["minItems"], schema["maxItems"], "items");
    if (size !== undefined) return broken(path, size);
    if (uniqueItems === true && this.#hasTwins(value))
      return broken(path, "must not contain the same item twice");
    // Draft-07 writes a list into `items`, and the rest into `additionalItems`.
    const isDraft7 = Array.isArray(items);
    const first = ((isDraft7 ? items : prefixItems) ?? []) as readonly Subschema[];
    const rest = (isDraft7 ? additionalItems : items) as Subschema | undefined;
    for (const [index, item] of value.entries()) {
      const held = first[index] ?? rest;
      const fault = held === undefined ? undefined : this.fault(held, item, [...path, index]);
      if (fault !== undefined) return fault;
    }
    if (contains === undefined) return undefined;
    const count = value.filter((item) => this.#fits(contains as Subschema, item)).length;
    const fault = sizeFault(
      count,
      schema["minContains"] ?? 1,
      schema["maxContains"],
      "items that fit contains",
    );
    return fault === undefined ? undefined : broken(path, fault);
  }

  #fieldsFault(schema: JsonSchema, value: Fields, path: Path): Fault {
    // JSON has no undefined: such a field counts as missing.
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    const has = (name: string): boolean => Object.hasOwn(value, name) && value[name] !== undefined;
    const { required = [], dependentRequired = {}, propertyNames } = schema;
    const needed = [
      ...(required as readonly string[]),
      ...Object.entries(dependentRequired as Readonly<Record<string, readonly string[]>>).flatMap(
        ([name, others]) => (has(name) ? others : []),
      ),
    ];
    const missing = needed.find((name) => !has(name));
    if (missing !== undefined) return broken([...path, missing], "is required");
    const size = sizeFault(
      fields.length,
      schema["minProperties"],
      schema["maxProperties"],
      "properties",
    );
    if (size !== undefined) return broken(path, size);
    for (const [name, field] of fields) {
      const at = [...path, name];
      if (propertyNames !== undefined && !this.#fits(propertyNames as Subschema, name))
        return broken(at, "has a name that is not allowed");
      for (const held of this.#schemasOf(schema, name)) {
        const fault = this.fault(held, field, at);
        if (fault !== undefined) return fault;
      }
    }
    return undefined;
  }

  /** The schemas of one property: its own, those whose pattern fits its name, or that of the rest. */
  #schemasOf(schema: JsonSchema, name: string): readonly Subschema[] {
    const {
      properties = {},
      patternProperties = {},
      additionalProperties,
    } = schema as Readonly<Record<string, Readonly<Record<string, Subschema>>>>;
    const found: Subschema[] = [];
    if (Object.hasOwn(properties, name)) found.push(properties[name] as Subschema);
    for (const [pattern, held] of Object.entries(patternProperties))
      if (this.#matches(pattern, name)) found.push(held);
    if (found.length > 0 || additionalProperties === undefined) return found;
    return [additionalProperties];
  }

  #choiceFault(schema: JsonSchema, value: unknown, path: Path): Fault {
    const { $ref: reference, not } = schema;
    if (typeof reference === "string") {
      const fault = this.fault(referred(this.#root, reference) ?? false, value, path);
      if (fault !== undefined) return fault;
    }
    for (const one of (schema["allOf"] ?? []) as readonly Subschema[]) {
      const fault = this.fault(one, value, path);
      if (fault !== undefined) return fault;
    }
    const anyOf = schema["anyOf"] as readonly Subschema[] | undefined;
    if (anyOf !== undefined && !anyOf.some((one) => this.#fits(one, value)))
      return broken(path, "fits none of the alternatives");
    const oneOf = schema["oneOf"] as readonly Subschema[] | undefined;
    const fitting = oneOf?.filter((one) => this.#fits(one, value)).length ?? 1;
    if (fitting !== 1)
      return broken(path, `fits ${fitting === 0 ? "none" : "more than one"} of the alternatives`);
    if (not !== undefined && this.#fits(not as Subschema, value))
      return broken(path, "fits a schema that it must not fit");
    return this.#conditionFault(schema, value, path);
  }

  #conditionFault(schema: JsonSchema, value: unknown, path: Path): Fault {
    if (schema["if"] === undefined) return undefined;
    const next = this.#fits(schema["if"] as Subschema, value) ? schema["then"] : schema["else"];
    return next === undefined ? undefined : this.fault(next as Subschema, value, path);
  }

  #fits(schema: Subschema, value: unknown): boolean {
    return this.fault(schema, value, []) === undefined;
  }

  #isSame(a: unknown, b: unknown): boolean {
    this.#work.spend(1);
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
    const [left, right] = [this.#textOf(a), this.#textOf(b)];
    return left !== undefined && left === right;
  }

  #hasTwins(items: readonly unknown[]): boolean {
    const texts = items.flatMap((item) => this.#textOf(item) ?? []);
    return new Set(texts).size < texts.length;
  }

  /** The same text for equal values of JSON; undefined for a value that cannot be written. */
  #textOf(value: unknown): string | undefined {
    const text = safely(() => canonicalText(value), undefined);
    this.#work.spend(text?.length ?? 1);
    return text;
  }
}

function broken(path: Path, message: string): SchemaFault {
  return { path: pathText(path), message };
}

function isOfType(type: string, value: unknown): boolean {
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

function sizeFault(size: number, min: unknown, max: unknown, what: string): string | undefined {
  if (typeof min === "number" && size < min) return `must have at least ${min} ${what}`;
  return typeof max === "number" && size > max ? `must have at most ${max} ${what}` : undefined;
}

function numberFault(schema: JsonSchema, value: number, path: Path): Fault {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema as Readonly<
    Record<string, number | undefined>
  >;
  if (minimum !== undefined && !(value >= minimum))
    return broken(path, `must be at least ${minimum}`);
  if (maximum !== undefined && !(value <= maximum))
    return broken(path, `must be at most ${maximum}`);
  if (exclusiveMinimum !== undefined && !(value > exclusiveMinimum))
    return broken(path, `must be above ${exclusiveMinimum}`);
  if (exclusiveMaximum !== undefined && !(value < exclusiveMaximum))
    return broken(path, `must be below ${exclusiveMaximum}`);
  if (multipleOf !== undefined && !isMultiple(value, multipleOf))
    return broken(path, `must be a multiple of ${multipleOf}`);
  return undefined;
}

/** Compares decimals as they are written: 0.3 is a multiple of 0.1, which division denies. */
function isMultiple(value: number, of: number): boolean {
  if (!Number.isFinite(value)) return false;
  const [a, b] = [decimalOf(value), decimalOf(of)];
  const exponent = Math.min(a.exponent, b.exponent);
  const scaled = ({ digits, exponent: own }: Decimal): bigint =>
    digits * 10n ** BigInt(own - exponent);
  return scaled(a) % scaled(b) === 0n;
}

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function decimalOf(value: number): Decimal {
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return { digits: BigInt(whole + fraction), exponent: Number(power) - fraction.length };
}
