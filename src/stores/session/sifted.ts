import { isHoldfastError } from "../../model/errors.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { sift } from "../damage.ts";
import type { Sifted } from "../damage.ts";

/** Decodes a row's value. @throws HoldfastError `CORRUPT_ROW` for a value that makes no sense */
export function readValue<T>(
  table: string,
  key: string | number,
  decode: () => T,
): T {
  try {
    return decode();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "VALUE_MALFORMED")
      throw error;
    throw corruptRow(table, key, "holds a value that cannot be read");
  }
}

/**
 * Decodes what can be decoded and names the rest. What a payload codec refuses
 * counts as damaged too: of a list, one such row must not hide the others.
 */
export function siftValues<R extends { readonly id: string }, T>(
  table: string,
  found: readonly R[],
  decode: (row: R) => T,
): Sifted<T> {
  return sift(
    table,
    found,
    ({ id }) => id,
    (row) => {
      try {
        return readValue(table, row.id, () => decode(row));
      } catch (error) {
        if (!isHoldfastError(error) || error.code !== "PAYLOAD_CODEC_FAILED")
          throw error;
        throw corruptRow(table, row.id, "holds what the codec refuses");
      }
    },
  );
}
