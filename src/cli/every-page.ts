import type { Damaged } from "../stores/damage.ts";
import type { Page } from "../stores/list.ts";

/** The largest page that lists have. */
const pageLimit = 1_000;

/** All pages of a list, one after the other; it may be left at any time. */
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

/** What was read of a list. */
interface Items<T> {
  readonly items: readonly T[];
  /** Rows that cannot be read, among those that were looked at. */
  readonly damaged: readonly Damaged[];
  /** Whether there are more items than were asked for. */
  readonly isCut: boolean;
}

/** All items of a list that is known to be short, or the first so many of it. */
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
