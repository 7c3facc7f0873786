import { corruptRow } from "../model/corrupt-row.ts";
import { isHoldfastError } from "../model/errors.ts";

/**
 * A row that cannot be read is never taken for one that is not there. A single
 * read throws; a list or a sweep names the row as `{ table, key }` in
 * `damaged` and goes on. Which errors mean the row and not the call is the set
 * of codes here: whatever else is thrown fails the call.
 */

/** A row that no operation of ours can have written, or whose value its codec cannot read. */
export interface Damaged {
  readonly table: string;
  readonly key: string;
}

/** What reading a row fails with when the row is to blame. */
const damageCodes: ReadonlySet<string> = new Set([
  "CORRUPT_ROW",
  "VALUE_MALFORMED",
  "PAYLOAD_CODEC_FAILED",
  "ID_MALFORMED",
  "NAME_INVALID",
]);

/** True for what a list or a sweep goes on past, having named the row. */
export function isDamage(error: unknown): boolean {
  return isHoldfastError(error) && damageCodes.has(error.code);
}

/** What `read` gives, or undefined when the row makes no sense. */
export function undamaged<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    return undefined;
  }
}

/** Decodes a row's value. @throws HoldfastError `CORRUPT_ROW` for a value that makes no sense */
export function readValue<T>(table: string, key: string | number, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_MALFORMED") throw error;
    throw corruptRow(table, key, "holds a value that cannot be read");
  }
}

export interface Sifted<T> {
  readonly items: readonly T[];
  readonly damaged: readonly Damaged[];
}

/** Decodes what can be decoded and names the rest: a list goes on past a damaged row. */
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
