import { HoldfastError } from "../errors.ts";
import { readGiven } from "../shape.ts";
import { isPlainJson } from "../values/plain-json.ts";
import { pathText, type PathStep } from "../values/value-path.ts";
import {
  isFields,
  isSubschema,
  kindOfKeyword,
  referred,
  sameValue,
  type JsonSchema,
  type KeywordKind,
  type Subschema,
} from "./json-schema.ts";
import { parsedPattern } from "./pattern.ts";

const types: readonly string[] = [
  "null",
  "boolean",
  "integer",
  "number",
  "string",
  "array",
  "object",
];

const charactersMax = 65_536;
const depthMax = 64;

/**
 * A copy of a JSON Schema, once every keyword of it is known to be checked. A keyword that would be
 * ignored is refused, because an unchecked rule is worse than none.
 * @throws HoldfastError `OPTION_INVALID`
 */
export function checkedJsonSchema(given: unknown): JsonSchema {
  const copy = readGiven("schema", () =>
    isPlainJson(given, charactersMax) ? (JSON.parse(JSON.stringify(given)) as unknown) : undefined,
  );
  if (copy === undefined)
    throw schemaInvalid(
      [],
      `must be plain JSON of at most ${charactersMax} characters, without undefined fields`,
    );
  if (!isFields(copy)) throw schemaInvalid([], "must be an object");
  const walk = new Walk(copy);
  walk.check(copy, []);
  walk.refuseCycles();
  return copy;
}

/** @throws HoldfastError `OPTION_INVALID` for a fault of a schema. */
function schemaInvalid(path: readonly PathStep[], fault: string): HoldfastError {
  const place = pathText(path);
  return new HoldfastError("OPTION_INVALID", `The JSON Schema cannot be used: ${place} ${fault}.`, {
    option: "schema",
    path: place,
  });
}

/** A walk over all schemas of one document. */
class Walk {
  readonly #root: JsonSchema;
  readonly #paths = new Map<JsonSchema, readonly PathStep[]>();

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  check(schema: unknown, path: readonly PathStep[]): void {
    if (typeof schema === "boolean") return;
    if (!isFields(schema)) throw schemaInvalid(path, "is not a schema");
    if (path.length > depthMax) throw schemaInvalid(path, `nests deeper than ${depthMax}`);
    this.#paths.set(schema, path);
    for (const [word, value] of Object.entries(schema)) {
      const kind = kindOfKeyword(word);
      // An id of the whole document is a name; one inside would move the base of references.
      if (kind === undefined && !(word === "$id" && path.length === 0))
        throw schemaInvalid([...path, word], "is a keyword that is not supported");
      if (kind !== undefined && kind !== "note") this.#checkWord(kind, value, [...path, word]);
    }
    if (schema["nullable"] === true && schema["type"] === undefined)
      throw schemaInvalid([...path, "nullable"], "needs a type beside it");
  }

  #checkWord(kind: Exclude<KeywordKind, "note">, value: unknown, path: readonly PathStep[]): void {
    switch (kind) {
      case "schema":
        return this.check(value, path);
      case "items":
        return Array.isArray(value) ? this.#checkAll(value, path) : this.check(value, path);
      case "schemas":
        if (!Array.isArray(value) || value.length === 0)
          throw schemaInvalid(path, "must be a list of one or more schemas");
        return this.#checkAll(value, path);
      case "schemasByName":
        if (!isFields(value)) throw schemaInvalid(path, "must be an object of schemas");
        for (const [name, held] of Object.entries(value)) {
          if (path.at(-1) === "patternProperties") checkPattern(name, [...path, name]);
          this.check(held, [...path, name]);
        }
        return;
      default: {
        const fault = faultOf(kind, value, this.#root);
        if (fault !== undefined) throw schemaInvalid(path, fault);
        return;
      }
    }
  }

  #checkAll(schemas: readonly unknown[], path: readonly PathStep[]): void {
    schemas.forEach((held, index) => this.check(held, [...path, index]));
  }

  /** Refuses schemas that apply themselves to the same value, which would never end. */
  refuseCycles(): void {
    const seen = new Map<JsonSchema, "open" | "ended">();
    const visit = (schema: Subschema): void => {
      if (typeof schema === "boolean" || seen.get(schema) === "ended") return;
      if (seen.get(schema) === "open")
        throw schemaInvalid(this.#paths.get(schema) ?? [], "refers to itself for the same value");
      seen.set(schema, "open");
      for (const next of appliedToSame(this.#root, schema)) visit(next);
      seen.set(schema, "ended");
    };
    for (const schema of this.#paths.keys()) visit(schema);
  }
}

function appliedToSame(root: JsonSchema, schema: JsonSchema): readonly Subschema[] {
  const { $ref: reference } = schema;
  const found = typeof reference === "string" ? referred(root, reference) : undefined;
  const applied = sameValue.flatMap((word) => schema[word] ?? []).filter(isSubschema);
  return found === undefined ? applied : [found, ...applied];
}

function checkPattern(source: string, path: readonly PathStep[]): void {
  const pattern = parsedPattern(source);
  if (typeof pattern === "string") throw schemaInvalid(path, pattern);
}

/** The fault of a keyword's value, as a clause. */
function faultOf(kind: KeywordKind, value: unknown, root: JsonSchema): string | undefined {
  const isNames = (list: unknown): boolean =>
    Array.isArray(list) && list.every((name) => typeof name === "string");
  switch (kind) {
    case "type": {
      const list: readonly unknown[] = Array.isArray(value) ? value : [value];
      const isKnown = list.length > 0 && list.every((one) => types.includes(one as string));
      return isKnown ? undefined : `must be one or more of ${types.join(", ")}`;
    }
    case "values":
      return Array.isArray(value) ? undefined : "must be a list of values";
    case "names":
      return isNames(value) ? undefined : "must be a list of names";
    case "namesByName":
      return isFields(value) && Object.values(value).every(isNames)
        ? undefined
        : "must be an object of lists of names";
    case "number":
      return typeof value === "number" ? undefined : "must be a number";
    case "divisor":
      return typeof value === "number" && value > 0 ? undefined : "must be a number above 0";
    case "size":
      return Number.isSafeInteger(value) && (value as number) >= 0
        ? undefined
        : "must be a whole number from 0";
    case "flag":
      return typeof value === "boolean" ? undefined : "must be true or false";
    case "pattern": {
      if (typeof value !== "string") return "must be a text";
      const pattern = parsedPattern(value);
      return typeof pattern === "string" ? pattern : undefined;
    }
    case "reference":
      if (typeof value !== "string") return "must be a text";
      return referred(root, value) === undefined
        ? "must name a schema of the same document, such as #/$defs/user"
        : undefined;
    default:
      return undefined;
  }
}
