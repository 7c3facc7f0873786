import { isHoldfastError } from "../model/errors.ts";

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
  for (const row of found) {
    const decoded = undamaged(() => ({ item: decode(row) }));
    if (decoded === undefined) damaged.push({ table, key: keyOf(row) });
    else items.push(decoded.item);
  }
  return { items, damaged };
}

/** A page whose rows were sifted, with their values read: those that cannot be read join the damaged. */
export function withValues<R, T, P>(
  table: string,
  page: Sifted<R> & P,
  keyOf: (item: R) => string,
  read: (item: R) => T,
): Omit<P, keyof Sifted<R>> & Sifted<T> {
  const { items, damaged } = sift(table, page.items, keyOf, read);
  return { ...page, items, damaged: [...page.damaged, ...damaged] };
}
