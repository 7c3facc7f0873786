import { decodeBase64 } from "./base64.ts";
import { HoldfastError } from "../errors.ts";
import { isStoredError, restoredError } from "./restored-error.ts";
import { depthMax } from "./value-limits.ts";
import { marker, type Tag } from "./value-tags.ts";

type Fields = Record<string, unknown>;

/**
 * Replaces the tags in freshly parsed JSON by the values they represent. It works in place:
 * assigning to an existing property never runs a setter, so an own `__proto__` stays data.
 */
export function restoreTags(value: unknown, depth: number = 0): unknown {
  if (typeof value !== "object" || value === null) return value;
  // One level more than the writer's containers, for a tag in the deepest one.
  if (depth > depthMax) throw malformed("it nests too deeply");
  if (Array.isArray(value)) return restoreItems(value, depth);
  if (Object.hasOwn(value, marker)) return restoreTag(value as Fields, depth);
  return restoreFields(value as Fields, depth);
}

/** The error for an unreadable value. It does not quote the text, which is the user's data. */
export function malformed(why: string): HoldfastError {
  return new HoldfastError(
    "VALUE_MALFORMED",
    `A stored value cannot be read: ${why}. It was changed outside Holdfast, or written by a newer ` +
      `version or through another payload codec.`,
    { why },
  );
}

function restoreItems(items: unknown[], depth: number): unknown[] {
  for (let at = 0; at < items.length; at += 1) {
    items[at] = restoreTags(items[at], depth + 1);
  }
  return items;
}

function restoreFields(fields: Fields, depth: number): Fields {
  for (const key of Object.keys(fields)) {
    fields[key] = restoreTags(fields[key], depth + 1);
  }
  return fields;
}

function restoreTag(tagged: Fields, depth: number): unknown {
  const { [marker]: tag, value } = tagged;
  const restored =
    typeof tag === "string" && Object.hasOwn(restorers, tag)
      ? restorers[tag as Tag](value, depth)
      : undefined;
  // Accepts only the writer's form: nothing beside marker and value.
  const keyCount = tag === "undefined" ? 1 : 2;
  if (restored === undefined || Object.keys(tagged).length !== keyCount) {
    throw malformed("a tag is unknown or incomplete");
  }
  return restored.value;
}

interface Restored {
  readonly value: unknown;
}

const integer = /^(?:0|-?[1-9][0-9]*)$/;

/** The reader of each tag. It returns undefined for a value that the writer never writes. */
const restorers: Readonly<Record<Tag, (value: unknown, depth: number) => Restored | undefined>> = {
  undefined: () => ({ value: undefined }),
  date: (text) => {
    if (typeof text !== "string") return undefined;
    const date = new Date(text);
    if (Number.isNaN(date.getTime())) return undefined;
    return date.toISOString() === text ? { value: date } : undefined;
  },
  bigint: (text) =>
    typeof text === "string" && integer.test(text) ? { value: BigInt(text) } : undefined,
  bytes: (text) => {
    const bytes = typeof text === "string" ? decodeBase64(text) : undefined;
    return bytes && { value: bytes };
  },
  map: (entries, depth) => {
    if (!Array.isArray(entries) || !entries.every(isPair)) return undefined;
    for (const entry of entries) restoreItems(entry, depth);
    const map = new Map(entries);
    return map.size === entries.length ? { value: map } : undefined;
  },
  set: (items, depth) => {
    if (!Array.isArray(items)) return undefined;
    const set = new Set(restoreItems(items, depth));
    return set.size === items.length ? { value: set } : undefined;
  },
  error: (stored) => (isStoredError(stored) ? { value: restoredError(stored) } : undefined),
  object: (fields, depth) =>
    isEscaped(fields) ? { value: restoreFields(fields, depth) } : undefined,
};

function isPair(entry: unknown): entry is [unknown, unknown] {
  return Array.isArray(entry) && entry.length === 2;
}

function isEscaped(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && Object.hasOwn(value, marker);
}
