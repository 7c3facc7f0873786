/**
 * What belongs to calls of a run, in the order of their numbers. Most runs
 * have one at a time: a Map that is emptied and filled again makes its table
 * anew each time, which took a microsecond of each step.
 */
export class ByCall<T extends { readonly call: number }> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** In place of what the call had before. */
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

  /** What the call had; it has nothing any more. */
  take(call: number): T | undefined {
    const items = this.#items;
    if (items.at(-1)?.call === call) return items.pop();
    const place = this.#placeOf(call);
    return items[place]?.call === call ? items.splice(place, 1)[0] : undefined;
  }

  clear(): void {
    this.#items.length = 0;
  }

  /** As they are now: what is put and taken meanwhile changes nothing about it. */
  all(): readonly T[] {
    return [...this.#items];
  }

  /** Of the first whose number is not less. */
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
