/**
 * Items of calls of a run, in the order of the call numbers. Most runs have one item at a time.
 * A Map that is emptied and refilled rebuilds its table each time, which cost a microsecond of
 * each step.
 */
export class ByCall<T extends { readonly call: number }> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Puts an item, in place of the call's earlier item. */
  put(item: T): void {
    const items = this.#items;
    const last = items.at(-1);
    if (last === undefined || last.call < item.call) items.push(item);
    else {
      const place = this.#placeOf(item.call);
      items.splice(place, items[place]?.call === item.call ? 1 : 0, item);
    }
  }

  get(call: number): T | undefined {
    const item = this.#items[this.#placeOf(call)];
    return item?.call === call ? item : undefined;
  }

  /** Takes the call's item, and removes it. */
  take(call: number): T | undefined {
    const items = this.#items;
    if (items.at(-1)?.call === call) return items.pop();
    const place = this.#placeOf(call);
    return items[place]?.call === call ? items.splice(place, 1)[0] : undefined;
  }

  clear(): void {
    this.#items.length = 0;
  }

  /** A copy of the current items, which later changes do not affect. */
  all(): readonly T[] {
    return [...this.#items];
  }

  /** The index of the first item whose call number is not less. */
  #placeOf(call: number): number {
    const items = this.#items;
    let low = 0;
    let high = items.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((items[middle] as T).call < call) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
