import type { Parameter, SqlValue } from "../../sql/statement.ts";
import { corruptNumber } from "../../sql/parameters.ts";

/** Object identifiers of the types that need care, from pg_type.dat. */
const oid = {
  boolean: 16,
  bytea: 17,
  int8: 20,
  json: 114,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  numeric: 1700,
  jsonb: 3802,
  xid8: 5069,
} as const;

/** A type as the driver takes it: its identifiers and both directions. */
interface DriverType {
  readonly to: number;
  readonly from: readonly number[];
  readonly serialize: (value: unknown) => string;
  readonly parse: (text: string) => string | number | bigint | Uint8Array;
}

const unchanged = (value: unknown): string => String(value);

/**
 * The conversion of values on the wire, which replaces the driver's. The driver would send 1 as
 * false, encode JSON text a second time, and read dates in the local time zone. A value comes back
 * as text, a number, bytes or null, as it does from SQLite.
 */
export const driverTypes: Readonly<Record<string, DriverType>> = {
  boolean: {
    to: oid.boolean,
    from: [oid.boolean],
    serialize: unchanged,
    parse: (text) => (text === "t" ? 1 : 0),
  },
  bytes: {
    to: oid.bytea,
    from: [oid.bytea],
    serialize: (bytes) => hexOf(bytes as Uint8Array),
    parse: (text) => new Uint8Array(Buffer.from(text.slice(2), "hex")),
  },
  integer: {
    to: oid.int8,
    from: [oid.int8, oid.xid8],
    serialize: unchanged,
    parse: integerOf,
  },
  numeric: {
    to: oid.numeric,
    from: [oid.numeric],
    serialize: unchanged,
    // count() and sum() return integers; a column with decimals stays exact text.
    parse: (text) => (/^-?\d+$/.test(text) ? integerOf(text) : text),
  },
  json: {
    to: oid.json,
    from: [oid.json, oid.jsonb],
    serialize: unchanged,
    parse: unchanged,
  },
  time: {
    to: oid.timestamptz,
    from: [oid.date, oid.timestamp, oid.timestamptz],
    serialize: unchanged,
    parse: unchanged,
  },
};

/**
 * An integer. A parser does not know its column, so a value too large for a number stays a bigint
 * until `checkRows`.
 */
function integerOf(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** A checked parameter in a form the driver binds without guessing its type. */
export function bound(parameter: Parameter): string | number | Uint8Array | null {
  if (typeof parameter === "bigint") return Number(parameter);
  return isList(parameter) ? arrayLiteral(parameter) : parameter;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(parameter: Parameter): parameter is readonly SqlValue[] {
  return Array.isArray(parameter);
}

/**
 * An array in Postgres' text form. The server knows the element type from the statement's cast. The
 * driver would take it from the first element and send an array of bytes as bytes.
 */
function arrayLiteral(items: readonly SqlValue[]): string {
  return `{${items.map(arrayItem).join(",")}}`;
}

function arrayItem(item: SqlValue): string {
  if (item === null) return "NULL";
  if (typeof item === "string") return `"${item.replace(/["\\]/g, "\\$&")}"`;
  return item instanceof Uint8Array ? `"\\${hexOf(item)}"` : String(item);
}

function hexOf(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes;
  return `\\x${Buffer.from(buffer, byteOffset, byteLength).toString("hex")}`;
}

interface Column {
  readonly name: string;
  readonly type: number;
}

/**
 * Checks the integers of rows.
 * @throws HoldfastError `CORRUPT_ROW` for an integer that no number can hold.
 */
export function checkRows(rows: readonly object[], columns: readonly Column[] | undefined): void {
  for (const { name, type } of columns ?? []) {
    if (type !== oid.int8 && type !== oid.numeric && type !== oid.xid8) continue;
    for (const row of rows)
      if (typeof (row as Record<string, unknown>)[name] === "bigint") throw corruptNumber(name);
  }
}
