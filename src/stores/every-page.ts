import type { Damaged } from "./damage.ts";
import type { Page } from "./list.ts";

/** The largest page that lists have. */
const pageLimit = 1_000;

/** Reads all pages of a list in sequence; the caller may stop at any time. */
export async function* everyPage<T>(
  read: (page: { limit: number; after?: string }) => Promise<Page<T>>,
): AsyncGenerator<Page<T>, void> {
  let after: string | undefined;
  do {
    const page = await read({
      limit: pageLimit,
      ...(after !== undefined && { after }),
    });
    yield page;
    after = page.next;
  } while (after !== undefined);
}

/** The items that were read of a list. */
interface Items<T> {
  readonly items: readonly T[];
  /** Unreadable rows that were met. */
  readonly damaged: readonly Damaged[];
  /** True if the list has more items than requested. */
  readonly isCut: boolean;
}

/** Reads all items of a short list, or at most `itemsMax`. */
export async function everyItem<T>(
  read: (page: { limit: number; after?: string }) => Promise<Page<T>>,
  itemsMax: number = Number.POSITIVE_INFINITY,
): Promise<Items<T>> {
  const items: T[] = [];
  const damaged: Damaged[] = [];
  for await (const page of everyPage(read)) {
    items.push(...page.items);
    damaged.push(...page.damaged);
    if (items.length > itemsMax) return { items: items.slice(0, itemsMax), damaged, isCut: true };
  }
  return { items, damaged, isCut: false };
}
