import { RowSum } from "../../backends/move/row-sum.ts";
import type { MoveSource } from "../../backends/move/source.ts";
import type { MovedTable } from "../../backends/move/tables.ts";
import type { MoveTarget } from "../../backends/move/target.ts";
import { moveMismatch, refuseAborted } from "./refusals.ts";

/** Progress of a move, reported after every slice, and once when the target has everything. */
export type MoveProgress = TableProgress | { readonly phase: "arrived" };

interface TableProgress {
  readonly phase: "copying" | "verifying";
  readonly table: string;
  /** Counts from 1 to `tables`. */
  readonly number: number;
  readonly tables: number;
  /** Rows of this table. */
  readonly rows: number;
  /** Approximate bytes of content in all tables so far. */
  readonly bytes: number;
}

/** A copied table, with the checksum that both databases agree on. */
export interface CopiedTable {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sum: string;
}

export interface CopyOptions {
  readonly signal: AbortSignal | undefined;
  readonly onProgress: (progress: MoveProgress) => void;
}

/**
 * Copies every table in slices, then reads each back from the target and compares. A target is
 * complete and verified before any process can see it.
 * @throws HoldfastError `MOVE_MISMATCH`, `ABORTED`
 */
export async function copyTables(
  source: MoveSource,
  target: MoveTarget,
  tables: readonly MovedTable[],
  options: CopyOptions,
): Promise<readonly CopiedTable[]> {
  const sums = new Map<MovedTable, RowSum>();
  let bytes = 0;
  for (const [index, table] of tables.entries()) {
    const sum = await copyTable(source, target, table, options.signal, (part) =>
      options.onProgress({
        phase: "copying",
        table: table.name,
        number: index + 1,
        tables: tables.length,
        rows: part.rows,
        bytes: bytes + part.bytes,
      }),
    );
    bytes += sum.bytes;
    sums.set(table, sum);
  }
  await verify(target, sums, options);
  return tables.map((table) => copied(table, sums.get(table)));
}

async function copyTable(
  source: MoveSource,
  target: MoveTarget,
  table: MovedTable,
  signal: AbortSignal | undefined,
  onSlice: (sum: RowSum) => void,
): Promise<RowSum> {
  const sum = new RowSum(table.columns);
  onSlice(sum);
  for await (const rows of source.rows(table.name)) {
    refuseAborted(signal, true);
    await target.insert(table, rows);
    for (const row of rows) sum.add(row);
    onSlice(sum);
  }
  return sum;
}

async function verify(
  target: MoveTarget,
  sums: ReadonlyMap<MovedTable, RowSum>,
  { signal, onProgress }: CopyOptions,
): Promise<void> {
  let bytes = 0;
  let number = 0;
  for (const [table, sum] of sums) {
    number += 1;
    const tell = (rows: number): void => {
      refuseAborted(signal, true);
      const tables = sums.size;
      onProgress({
        phase: "verifying",
        table: table.name,
        number,
        tables,
        rows,
        bytes,
      });
    };
    tell(0);
    const found = await target.sum(table, sum.rowBytesMax, tell);
    if (found.rows !== sum.rows || found.hex !== sum.hex)
      throw moveMismatch(
        table.name,
        { rows: found.rows, sum: found.hex },
        { rows: sum.rows, sum: sum.hex },
      );
    bytes += sum.bytes;
  }
}

function copied({ name }: MovedTable, sum: RowSum | undefined): CopiedTable {
  return {
    name,
    rows: sum?.rows ?? 0,
    bytes: sum?.bytes ?? 0,
    sum: sum?.hex ?? "",
  };
}
