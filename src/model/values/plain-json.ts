import { safely } from "../safely.ts";
import { depthMax } from "./value-limits.ts";
import { marker } from "./value-tags.ts";

const notPlain = -1;

/**
 * True when JSON.stringify writes the value faithfully, as it does most values. Any doubt gives
 * false; the slower writer then names the fault and its place. Measured on an order of 780
 * characters: this check 1.7 µs, JSON.stringify 3.7 µs, the writer 17 µs.
 *
 * Getters are read as data, as JSON.stringify does, because finding them would cost a property
 * descriptor per property. A getter that throws is not plain.
 */
export function isPlainJson(value: unknown, charactersMax: number): boolean {
  return safely(() => charactersLeft(value, 0, charactersMax) >= 0, false);
}

/**
 * Returns the part of `left` that remains after the value's text, by a lower bound of its length,
 * or a negative number. The count ends the walk through a value with shared parts: 50 nested pairs
 * of the same object have 2^50 paths.
 */
function charactersLeft(value: unknown, depth: number, left: number): number {
  switch (typeof value) {
    case "string":
      return left - value.length - 2;
    case "number":
      return Number.isFinite(value) ? left - 1 : notPlain;
    case "boolean":
      return left - 4;
    case "object":
      if (value === null) return left - 4;
      if (depth >= depthMax) return notPlain;
      return Array.isArray(value)
        ? charactersLeftAfterItems(value, depth, left)
        : charactersLeftAfterFields(value, depth, left);
    default:
      return notPlain;
  }
}

function charactersLeftAfterItems(items: readonly unknown[], depth: number, left: number): number {
  // JSON.stringify would call toJSON. Holes read as undefined, which is not plain.
  if ("toJSON" in items) return notPlain;
  // Each item takes a character and a comma. A list may report any length without having items.
  const { length } = items;
  if (2 * length > left) return notPlain;
  let rest = left - 1;
  for (let at = 0; at < length && rest >= 0; at += 1) {
    rest = charactersLeft(items[at], depth + 1, rest - 1);
  }
  return rest;
}

function charactersLeftAfterFields(fields: object, depth: number, left: number): number {
  const prototype: unknown = Object.getPrototypeOf(fields);
  if (prototype !== Object.prototype && prototype !== null) return notPlain;
  if (Object.getOwnPropertySymbols(fields).length > 0) return notPlain;
  let rest = left - 1;
  for (const key of Object.keys(fields)) {
    if (key === marker) return notPlain;
    const field = (fields as Readonly<Record<string, unknown>>)[key];
    rest = charactersLeft(field, depth + 1, rest - key.length - 4);
    if (rest < 0) break;
  }
  return rest;
}
