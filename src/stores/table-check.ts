import type { ByteTools } from "../model/values/byte-tools.ts";
import type { Encoded } from "../model/values/encoded.ts";
import { isHoldfastError } from "../model/errors.ts";
import { rows } from "../sql/operation.ts";
import type { Tx } from "../sql/operation.ts";
import { sql } from "../sql/statement.ts";
import type { Statement } from "../sql/statement.ts";
import type { Damaged } from "./damage.ts";

/**
 * How `maintenance.check()` looks at a table. Each folder describes those it
 * writes, beside their decoders; the loop over them is in maintenance/check.ts.
 *
 * Rows are judged by what one snapshot holds, so that changes between two
 * slices are no damage. What may rightly be missing (pruned, removed, deleted)
 * is for the description to know.
 */

/** What a check reads values with: the codec of the stores, without limits. */
export interface CheckTools {
  readonly decode: (stored: Encoded) => unknown;
  /** The same hashes as the stores compute. */
  readonly hash: (domain: string, version: number, value: unknown) => string;
  readonly sha256Hex: (text: string) => string;
  readonly bytes: ByteTools;
}

/** A damaged row, named as lists name it, and what is wrong with it. */
export interface DamagedRow extends Damaged {
  /** A sentence without values. */
  readonly reason: string;
}

/** What is wrong with a row; undefined when nothing is. May also throw what its decoder throws. */
export type JudgeRow<R> = (row: R, tools: CheckTools) => string | undefined;

export interface TableDescription<R extends object> {
  readonly table: string;
  /** `SELECT …` without its FROM. */
  readonly select: Statement;
  /** `FROM …`, with what is joined to name or judge a row. */
  readonly from: Statement;
  /** The columns of a unique key. */
  readonly order: Statement;
  /** True of rows after this one in that order. */
  readonly behind: (last: R) => Statement;
  /** What a row weighs, in about bytes, where it may be much. */
  readonly weight?: Statement;
  readonly keyOf: (row: R) => string;
  readonly judge?: JudgeRow<R>;
  /** Looks up what rows refer to, in the snapshot in which they were read. */
  readonly partners?: (found: readonly R[]) => Tx<JudgeRow<R>>;
}

export interface SliceLimits {
  readonly rowsMax: number;
  readonly bytesMax: number;
}

export interface CheckedSlice {
  readonly rows: number;
  /** The last row; undefined when there are none after it. */
  readonly last: object | undefined;
  /** Called outside of the transaction: codecs may be slow. */
  readonly damaged: (tools: CheckTools) => readonly DamagedRow[];
}

/** A row of which nothing but its key can be read. */
export interface SkippedRow {
  readonly row: object;
  readonly key: string;
}

/** A described table, whatever its rows are. */
export interface TableCheck {
  readonly table: string;
  /** The next row by its key alone, for who cannot read it; undefined when there is none. */
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

/** As many rows as fit, but one at least if there is one. */
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
  try {
    for (const judge of judges) {
      const reason = judge?.(row, tools);
      if (reason !== undefined) return reason;
    }
    return undefined;
  } catch (error) {
    // What is ours says what is wrong; anything else stumbled over a shape that nobody writes.
    return isHoldfastError(error) ? error.message : "It makes no sense.";
  }
}

/** The values of a column, each once. */
export function distinct<R, V extends string | number>(
  found: readonly R[],
  valueOf: (row: R) => V | null | undefined,
): readonly V[] {
  return [...new Set(found.flatMap((row) => valueOf(row) ?? []))];
}

/** Rows by the number of what they belong to, in their order. */
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

/** For tables whose rows have a number of their own. */
export const byKey: {
  readonly order: Statement;
  readonly behind: (last: { readonly key: number }) => Statement;
} = {
  order: sql`t.key`,
  behind: ({ key }) => sql`t.key > ${key}`,
};
