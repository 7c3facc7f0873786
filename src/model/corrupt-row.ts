import { HoldfastError } from "./errors.ts";

/** The error for an inconsistent row. `why` names the fault: `has an unknown state`. */
export function corruptRow(
  table: string,
  key: string | number,
  why: string,
  options?: { readonly cause?: unknown },
): HoldfastError {
  return new HoldfastError(
    "CORRUPT_ROW",
    `A row of ${table} (${key}) ${why}, which no operation of Holdfast writes. ` +
      "Look at the row with a database shell; restore it from a backup or delete it.",
    { table, key },
    options,
  );
}
