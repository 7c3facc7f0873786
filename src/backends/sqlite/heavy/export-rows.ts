import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/values/excerpt.ts";
import type { SqlValue } from "../../../sql/statement.ts";
import { optionInvalid } from "../../option-checks.ts";
import type { HeavyRequests } from "./heavy-requests.ts";

/** The position of a row: only its rowid, or the columns of its primary key. */
export type RowKey = readonly SqlValue[];

export interface RowPage {
  readonly rows: readonly Readonly<Record<string, SqlValue>>[];
  /** Rows with an integer beyond ±(2^53 − 1), which could not be read exactly. */
  readonly damaged: readonly { readonly table: string; readonly key: RowKey }[];
  /** The last row read. Pass it as `after` to continue from here. */
  readonly last: RowKey;
}

export interface PageBounds {
  readonly after: RowKey | undefined;
  readonly rowsMax: number;
  readonly bytesMax: number;
  readonly msMax: number;
}

type Reply =
  | {
      readonly kind: "page";
      readonly rows: RowPage["rows"];
      readonly damaged: readonly { readonly key: RowKey }[];
      readonly last: RowKey | undefined;
      readonly isLast: boolean;
    }
  | { readonly kind: "unknown"; readonly tables: readonly string[] }
  | { readonly kind: "mismatch"; readonly keys: readonly string[] };

/** Checks the name of a table. Any other value could not even be sent to the reading thread. */
export function checkTable(table: unknown): asserts table is string {
  if (typeof table === "string") return;
  throw optionInvalid("table", table, 'the name of a table, such as "account"');
}

/** Checks the row to start after. */
export function checkKey(after: unknown): void {
  if (after === undefined) return;
  if (Array.isArray(after) && after.every(isSqlValue)) return;
  throw optionInvalid("after", after, "an array of values, as `last` of a page has it");
}

function isSqlValue(value: unknown): boolean {
  return (
    value === null ||
    value instanceof Uint8Array ||
    ["string", "number", "bigint"].includes(typeof value)
  );
}

/** Reads one page; `isLast` is true when no row follows it. */
export async function readRows(
  requests: HeavyRequests,
  table: string,
  bounds: PageBounds,
  signal: AbortSignal,
): Promise<{ readonly page: RowPage; readonly isLast: boolean }> {
  const reply = await requests.ask<Reply>("page", { table, ...bounds }, signal);
  switch (reply.kind) {
    case "unknown":
      throw tableUnknown(table, reply.tables);
    case "mismatch":
      throw optionInvalid(
        "after",
        `a key of ${bounds.after?.length ?? 0} values`,
        `the values of ${reply.keys.join(", ")}, as \`last\` of a page has them`,
      );
    case "page": {
      const { rows, isLast } = reply;
      const damaged = reply.damaged.map(({ key }) => ({ table, key }));
      const page = { rows, damaged, last: reply.last ?? [] };
      return { page, isLast };
    }
  }
}

function tableUnknown(table: string, tables: readonly string[]): HoldfastError {
  const own = tables.filter((name) => !name.startsWith("sqlite_"));
  const shown = own.slice(0, 50).join(", ") || "none";
  return new HoldfastError(
    "TABLE_UNKNOWN",
    `Unknown table ${excerpt(table)}. Tables of this file: ${shown}${own.length > 50 ? ", …" : ""}.`,
    { table, tables: own },
  );
}
