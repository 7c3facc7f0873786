import { checkedCount } from "../model/shape.ts";
import type { Database } from "../sql/database.ts";

/** Rows per transaction of long work, as callers say: 500 unless told. @throws HoldfastError `OPTION_INVALID` */
export function checkedRowsPerSlice(rowsPerSlice: number = 500): number {
  return checkedCount("rowsPerSlice", rowsPerSlice, { min: 1, max: 10_000 });
}

/** Forgets slice by slice until one is not full; tells how many rows. */
export async function forgottenInSlices(
  database: Pick<Database, "pause">,
  rowsMax: number,
  forget: () => Promise<number>,
): Promise<number> {
  for (let forgotten = 0; ;) {
    const count = await forget();
    forgotten += count;
    if (count < rowsMax) return forgotten;
    await database.pause();
  }
}
