import type { ByteTools } from "../model/values/byte-tools.ts";
import type { Encoded } from "../model/values/encoded.ts";
import type { ValueCodec } from "../model/values/value-codec.ts";
import { isHoldfastError } from "../model/errors.ts";
import { isSealed } from "../model/values/payload-mark.ts";
import { rows } from "../sql/operation.ts";
import type { Tx } from "../sql/operation.ts";
import { sql } from "../sql/statement.ts";
import type { Statement } from "../sql/statement.ts";
import type { Damaged } from "./damage.ts";

/**
 * Descriptions of tables for `maintenance.check()`. Each folder describes the tables that it
 * writes, beside their decoders. The loop over them is in maintenance/check.ts.
 *
 * Rows are judged by one snapshot, so changes between two slices are not damage. The description
 * knows which rows may rightly be missing (pruned, removed, deleted).
 */

/** The tools by which a check reads values: the codec of the stores, without limits. */
export interface CheckTools {
  readonly decode: (stored: Encoded) => unknown;
  /** True if a hash is of a value that has been read, as where values are delivered. */
  readonly agrees: ValueCodec["agrees"];
  readonly sha256Hex: (text: string) => string;
  readonly bytes: ByteTools;
}

/** A damaged row, named as lists name it, and its fault. */
export interface DamagedRow extends Damaged {
  /** A sentence without values. */
  readonly reason: string;
}

/**
 * Returns the fault of a row; undefined when it is sound. May also throw the errors of its decoder.
 */
export type JudgeRow<R> = (row: R, tools: CheckTools) => string | undefined;

export interface TableDescription<R extends object> {
  readonly table: string;
  /** `SELECT …` without its FROM. */
  readonly select: Statement;
  /** `FROM …`, with the joins that name or judge a row. */
  readonly from: Statement;
  /** The columns of a unique key. */
  readonly order: Statement;
  /** A condition that holds for rows after this one in that order. */
  readonly behind: (last: R) => Statement;
  /** The approximate size of a row in bytes, where it may be large. */
  readonly weight?: Statement;
  readonly keyOf: (row: R) => string;
  readonly judge?: JudgeRow<R>;
  /** Looks up the rows that these rows refer to, in the same snapshot. */
  readonly partners?: (found: readonly R[]) => Tx<JudgeRow<R>>;
}

export interface SliceLimits {
  readonly rowsMax: number;
  readonly bytesMax: number;
}

export interface CheckedSlice {
  readonly rows: number;
  /** The last row; undefined when no rows follow. */
  readonly last: object | undefined;
  /** Called outside the transaction, since codecs may be slow. */
  readonly damaged: (tools: CheckTools) => readonly DamagedRow[];
}

/** A row of which only the key is readable. */
export interface SkippedRow {
  readonly row: object;
  readonly key: string;
}

/** A described table, for rows of any type. */
export interface TableCheck {
  readonly table: string;
  /** The next row by its key only, for a caller that cannot read it; undefined at the end. */
  readonly skipped: (after: object | undefined) => Tx<SkippedRow | undefined>;
  readonly slice: (after: object | undefined, limits: SliceLimits) => Tx<CheckedSlice>;
}

export function tableCheck<R extends object>(description: TableDescription<R>): TableCheck {
  const { table, partners, behind, order, select, from } = description;
  const whereAfter = (after: object | undefined): Statement =>
    after === undefined ? sql`` : sql`WHERE ${behind(after as R)}`;
  return {
    table,
    *skipped(after) {
      const found = yield* rows<R>(sql`
        SELECT ${order} ${from} ${whereAfter(after)} ORDER BY ${order} LIMIT 1`);
      return found[0] && { row: found[0], key: Object.values(found[0]).join("/") };
    },
    *slice(after, limits) {
      const where = whereAfter(after);
      const limit = yield* rowsWithin(description, where, limits);
      if (limit === 0) return { rows: 0, last: undefined, damaged: () => [] };
      const found = yield* rows<R>(sql`
        ${select} ${from} ${where} ORDER BY ${order} LIMIT ${limit}`);
      const judges = [description.judge];
      if (partners !== undefined && found.length > 0) judges.push(yield* partners(found));
      return {
        rows: found.length,
        last: found.length < limit ? undefined : found.at(-1),
        damaged: (tools) =>
          found.flatMap((row) => {
            const reason = reasonOf(judges, row, tools);
            if (reason === undefined) return [];
            return { table, key: description.keyOf(row), reason };
          }),
      };
    },
  };
}

/** Reads as many rows as fit, at least one if any exist. */
function* rowsWithin<R extends object>(
  { weight, from, order }: TableDescription<R>,
  where: Statement,
  { rowsMax, bytesMax }: SliceLimits,
): Tx<number> {
  if (weight === undefined) return rowsMax;
  const weights = yield* rows<{ readonly weight: number }>(sql`
    SELECT ${weight} AS weight ${from} ${where} ORDER BY ${order} LIMIT ${rowsMax}`);
  if (weights.length === 0) return 0;
  let bytes = 0;
  for (const [index, { weight: own }] of weights.entries()) {
    bytes += own;
    if (bytes > bytesMax) return Math.max(1, index);
  }
  return rowsMax;
}

function reasonOf<R>(
  judges: readonly (JudgeRow<R> | undefined)[],
  row: R,
  tools: CheckTools,
): string | undefined {
  for (const judge of judges)
    try {
      const reason = judge?.(row, tools);
      if (reason !== undefined) return reason;
    } catch (error) {
      // A value whose codec is missing is neither sound nor damaged.
      if (isSealed(error)) continue;
      // An error of Holdfast names the fault. Any other error comes from a shape that no code
      // writes.
      return isHoldfastError(error) ? error.message : "The row is inconsistent.";
    }
  return undefined;
}

/** The distinct values of a column. */
export function distinct<R, V extends string | number>(
  found: readonly R[],
  valueOf: (row: R) => V | null | undefined,
): readonly V[] {
  return [...new Set(found.flatMap((row) => valueOf(row) ?? []))];
}

/** Groups rows by the number of their owner, in their order. */
export function groupedBy<R>(
  found: readonly R[],
  ownerOf: (row: R) => number,
): (owner: number) => readonly R[] {
  const groups = new Map<number, R[]>();
  for (const row of found) {
    const group = groups.get(ownerOf(row));
    if (group === undefined) groups.set(ownerOf(row), [row]);
    else group.push(row);
  }
  return (owner) => groups.get(owner) ?? [];
}

/** For tables whose rows have their own number. */
export const byKey: {
  readonly order: Statement;
  readonly behind: (last: { readonly key: number }) => Statement;
} = {
  order: sql`t.key`,
  behind: ({ key }) => sql`t.key > ${key}`,
};
