import { checkedCount } from "../model/shape.ts";
import type { WaitOptions } from "../sql/database.ts";
import type { Sifted } from "./damage.ts";
import { waitNames } from "./given.ts";

/** Which page of a list. */
export interface PageOptions extends WaitOptions {
  /** `next` of the page before. */
  readonly after?: string;
  /** 1 to 1,000; 100 unless told. */
  readonly limit?: number;
}

/** What every list may be told. */
export const pageNames: readonly (keyof PageOptions)[] = [
  ...waitNames,
  "after",
  "limit",
];

/** A page of a list. */
export interface Page<T> extends Sifted<T> {
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
}

/** @throws HoldfastError `OPTION_INVALID` */
export function checkedLimit(limit: number = 100): number {
  return checkedCount("limit", limit, { min: 1, max: 1_000 });
}
