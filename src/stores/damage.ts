import { corruptRow } from "../model/corrupt-row.ts";
import { isHoldfastError, type HoldfastError } from "../model/errors.ts";
import type { CheckedText } from "../model/values/encoded.ts";
import { isUnchanged, type StoreContext } from "./context.ts";

/**
 * Damaged rows. An unreadable row is never treated as missing. A single read throws. A list or a
 * sweep names the row as `{ table, key }` in `damaged` and continues. The codes in this file decide
 * which errors blame the row. Any other error fails the call.
 */

/** A row that no operation of Holdfast can have written, or whose value its codec cannot read. */
export interface Damaged {
  readonly table: string;
  readonly key: string;
}

/** The codes of errors that blame the row and not the call. */
const damageCodes: ReadonlySet<string> = new Set([
  "CORRUPT_ROW",
  "VALUE_MALFORMED",
  "PAYLOAD_CODEC_FAILED",
  "ID_MALFORMED",
  "NAME_INVALID",
]);

/** True for an error that makes a list or a sweep name the row and skip it. */
export function isDamage(error: unknown): boolean {
  return isHoldfastError(error) && damageCodes.has(error.code);
}

/** The result of `read`, or undefined when the row is inconsistent. */
export function undamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}

/**
 * Decodes a row's value.
 * @throws HoldfastError `CORRUPT_ROW` for an invalid value
 */
export function readValue<T>(table: string, key: string | number, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_MALFORMED") throw error;
    throw corruptRow(table, key, "has an unreadable value");
  }
}

/**
 * Decodes a row's value that has a checksum.
 * @throws HoldfastError `CORRUPT_ROW` also for a changed value
 */
export function readChecked(
  { database, decode }: Pick<StoreContext, "database" | "decode">,
  table: string,
  key: string | number,
  stored: CheckedText,
): unknown {
  if (!isUnchanged(database, stored)) throw changedRow(table, key);
  return readValue(table, key, () => decode(stored.text));
}

/** The error for a value that differs from the stored one. */
export function changedRow(table: string, key: string | number): HoldfastError {
  return corruptRow(table, key, "has a value that does not match its hash");
}

export interface Sifted<T> {
  readonly items: readonly T[];
  readonly damaged: readonly Damaged[];
}

/** Decodes the readable rows and names the others, which a list skips. */
export function sift<R, T>(
  table: string,
  found: readonly R[],
  keyOf: (row: R) => string,
  decode: (row: R) => T,
): Sifted<T> {
  const items: T[] = [];
  const damaged: Damaged[] = [];
  for (const row of found)
    try {
      items.push(decode(row));
    } catch (error) {
      if (!isDamage(error)) throw error;
      damaged.push({ table, key: keyOf(row) });
    }
  return { items, damaged };
}

/** The result of a read, or the reason why the database cannot read it. */
export async function unlessUnreadable<T>(reading: Promise<T>): Promise<T | Error> {
  try {
    return await reading;
  } catch (error) {
    if (isHoldfastError(error) && unreadableCodes.has(error.code)) return error;
    throw error;
  }
}

/** The codes of reads that fail because of the stored bytes or a missing table. */
const unreadableCodes: ReadonlySet<string> = new Set([
  "CORRUPT_ROW",
  "DATABASE_DAMAGED",
  "STATEMENT_FAILED",
]);
