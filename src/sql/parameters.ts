import { HoldfastError } from "../model/errors.ts";
import { listItemsMax } from "../model/shape.ts";
import type { Parameter, SqlValue, Statement } from "./statement.ts";

/**
 * Checks a value once, before any driver sees it. Drivers disagree about almost every odd value: a
 * NaN becomes NULL in one and an error in another, and a NUL character ends a Postgres statement
 * but not a SQLite one.
 */
export function checkValue(value: SqlValue, position: number): void {
  switch (typeof value) {
    case "string":
      if (value.includes("\0"))
        throw invalid(
          position,
          "text with U+0000",
          "Postgres cannot store it; remove it, or bind bytes",
        );
      if (!value.isWellFormed())
        throw invalid(
          position,
          "text with a lone surrogate",
          "it has no UTF-8 form; fix it with toWellFormed(), or bind bytes",
        );
      return;
    case "number":
      if (!Number.isFinite(value))
        throw invalid(
          position,
          String(value),
          "only finite numbers can be stored; bind null for none",
        );
      if (Number.isInteger(value) && !Number.isSafeInteger(value))
        throw invalid(
          position,
          "an integer beyond 2^53 − 1",
          "it cannot be read back exactly; store it as text",
        );
      return;
    case "bigint":
      if (value > MAX_SAFE || value < -MAX_SAFE)
        throw invalid(
          position,
          "a bigint beyond 2^53 − 1",
          "it cannot be read back exactly; store it as text",
        );
      return;
    default:
      if (value === null || value instanceof Uint8Array) return;
      throw invalid(position, ...describe(value));
  }
}

/**
 * Checks all parameters of a statement for Postgres, where a parameter may be a list if the text
 * declares its type.
 */
export function checkParameters({ template, parameters }: Statement): void {
  for (let index = 0; index < parameters.length; index += 1) {
    const value = parameters[index] as Parameter;
    if (Array.isArray(value) && template.bindsList(index))
      checkItems(value as readonly SqlValue[], index + 1);
    else checkValue(value as SqlValue, index + 1);
  }
}

/** Measures a list before it is walked, since a proxy may report any length. */
function checkItems(items: readonly SqlValue[], position: number): void {
  if (items.length > listItemsMax)
    throw invalid(
      position,
      "a long list",
      `it has ${items.length} items, and a statement takes up to ${listItemsMax}; split it`,
    );
  for (const item of items) checkValue(item, position);
}

/** Estimates the size that a parameter adds to a transaction, for slicing batches. */
export function parameterBytes(value: Parameter): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  return 8;
}

/**
 * Checks a number that was read. Beyond 2^53 a driver may already have rounded it, so it is
 * refused.
 */
export function checkedNumber(value: number, column: string): number {
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw corruptNumber(column);
  return value;
}

export function corruptNumber(column: string): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `Column "${column}" holds an integer beyond ±(2^53 − 1), which no operation of Holdfast writes. ` +
      "Look at the row with a database shell; restore it from a backup or delete it.",
    { column },
  );
}

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function invalid(position: number, found: string, why: string): HoldfastError {
  return new HoldfastError(
    "PARAMETER_INVALID",
    `Parameter ${position} of the statement is ${found}: ${why}.`,
    { position, found },
  );
}

/** Returns a description of the value and the remedy. */
function describe(value: unknown): [found: string, remedy: string] {
  if (value === undefined) return ["undefined", "bind null for an absent value"];
  if (typeof value === "boolean") return ["a boolean", "bind 1 or 0"];
  if (typeof value !== "object" || value === null)
    return [`a ${typeof value}`, "bind text, a number, bytes or null"];
  if (value instanceof Date) return ["a Date", "bind its milliseconds, date.getTime()"];
  if (Array.isArray(value))
    return [
      "an array",
      "write IN ${integersOf(items)} or IN ${textsOf(items)}, which both databases take; a list followed by its type, ${items}::text[], is for Postgres only",
    ];
  if ("next" in value) return ["a generator", "write `yield*` before the call that made it"];
  return ["an object", "bind its JSON text, or one parameter for each part"];
}
