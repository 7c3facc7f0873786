import { sha256Hex } from "../../host/hash.ts";
import type { SqlValue } from "../../sql/statement.ts";

const bits = 256n;

/**
 * A checksum of a table's rows that does not depend on their order: the sum of the hashes of their
 * canonical texts. So neither database has to sort a large table by a key that is not its physical
 * order. Rows have keys, so no two rows of a table are equal and none can cancel another.
 */
export class RowSum {
  readonly #columns: readonly string[];
  #sum = 0n;
  rows = 0;
  bytes = 0;
  /** The longest row so far, in approximate bytes. */
  rowBytesMax = 0;

  constructor(columns: readonly string[]) {
    this.#columns = columns;
  }

  add(row: Readonly<Record<string, unknown>>): void {
    let bytes = 0;
    const values = this.#columns.map((column) => {
      const value = row[column] as SqlValue;
      bytes += sizeOf(value);
      return canonical(value);
    });
    const hash = sha256Hex(JSON.stringify(values));
    this.#sum = BigInt.asUintN(Number(bits), this.#sum + BigInt(`0x${hash}`));
    this.rows += 1;
    this.bytes += bytes;
    this.rowBytesMax = Math.max(this.rowBytesMax, bytes);
  }

  get hex(): string {
    return this.#sum.toString(16).padStart(64, "0");
  }
}

/** Text stays text and numbers stay numbers. The list distinguishes bytes from both. */
function canonical(value: SqlValue): unknown {
  if (value instanceof Uint8Array) return [sha256Hex(value)];
  return typeof value === "bigint" ? [String(value), "bigint"] : value;
}

function sizeOf(value: SqlValue): number {
  if (value instanceof Uint8Array) return value.byteLength;
  return typeof value === "string" ? value.length : 8;
}
