import { checkedCount } from "../model/shape.ts";
import { waitNames } from "./given.ts";
import type { PageOptions } from "./list.ts";

/** What every list may be told. */
export const pageNames: readonly (keyof PageOptions)[] = [
  ...waitNames,
  "after",
  "limit",
];

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedLimit(limit: number = 50): number {
  return checkedCount("limit", limit, { min: 1, max: 1_000 });
}
