import { checkedCount } from "../../../model/shape.ts";

/**
 * The largest page. So many rows with all their columns take 10 ms at best
 * (SQLite, 5 thousand or 100 thousand executions alike; 20 to 30 ms in the
 * median on a machine busy with other work), so surfaces ask for fewer.
 */
const pageItemsMax = 1_000;

/**
 * Rows looked at for one page when a filter passes over most of them: 1.1 ms
 * at best, measured as above, up to 6 ms in the median on the busy machine.
 * Beyond that the page ends early and says where to go on.
 */
export const scanRowsMax = 2_000;

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedLimit(limit: number): number {
  return checkedCount("limit", limit, { min: 1, max: pageItemsMax });
}
