import type { Change } from "../../sql/operation.ts";

/** The changes of one transaction; empty when they cannot be named. */
export interface Told {
  readonly tx: number;
  readonly changes: readonly Change[];
}

/** The content of a notification; without `changes` when they cannot be named. */
export interface Heard {
  readonly from: string;
  readonly transactions: readonly number[];
  readonly changes: readonly Change[] | undefined;
}

/** Below the limit of Postgres, 8,000 bytes per notification. */
const payloadBytesMax = 7_900;

/**
 * The payloads that announce changes, in as few notifications as fit. Every notification names the
 * transactions it announces, and the one that carried it, so that a listener can tell announced
 * transactions from missed ones. Only the server knows the carrying one, so the server writes the
 * beginning: `{"by":123`.
 */
export function payloadsOf(from: string, told: readonly Told[]): string[] {
  const payloads: string[] = [];
  let page = new Page(from);
  const add = (tx: number, change: string | undefined): void => {
    if (!page.fits(tx, change)) {
      if (!page.isEmpty) payloads.push(page.text());
      page = new Page(from);
    }
    page.add(tx, change);
  };
  for (const { tx, changes } of told) {
    if (changes.length === 0) add(tx, undefined);
    for (const { operation, key } of changes) add(tx, JSON.stringify([operation, key]));
  }
  if (!page.isEmpty) payloads.push(page.text());
  return payloads;
}

/** Parses a payload. @returns undefined for a text that is not one of ours. */
export function heardIn(payload: string): Heard | undefined {
  try {
    const { by, from, tx, changes } = JSON.parse(payload) as {
      readonly by: number;
      readonly from: string;
      readonly tx: readonly number[];
      readonly changes?: readonly (readonly [string, string])[];
    };
    const transactions = [by, ...tx];
    if (typeof from !== "string" || !transactions.every(Number.isSafeInteger)) return undefined;
    return {
      from,
      transactions,
      changes: changes?.map(([operation, key]) => ({ operation, key })),
    };
  } catch {
    return undefined;
  }
}

class Page {
  readonly #from: string;
  readonly #tx: number[] = [];
  #changes: string[] | undefined = [];
  #bytes: number;

  constructor(from: string) {
    this.#from = from;
    this.#bytes = `{"by":,"from":"${from}","tx":[],"changes":[]}`.length + 20;
  }

  get isEmpty(): boolean {
    return this.#tx.length === 0;
  }

  fits(tx: number, change: string | undefined): boolean {
    return (
      change !== undefined &&
      this.#changes !== undefined &&
      this.#bytes + this.#size(tx, change) <= payloadBytesMax
    );
  }

  /**
   * Adds the change. A change without a name, or too large for a page, makes the page say
   * "something".
   */
  add(tx: number, change: string | undefined): void {
    if (this.fits(tx, change)) this.#changes?.push(change ?? "");
    else this.#changes = undefined;
    this.#bytes += this.#size(tx, change ?? "");
    if (this.#tx.at(-1) !== tx) this.#tx.push(tx);
  }

  text(): string {
    const changes = this.#changes === undefined ? "" : `,"changes":[${this.#changes.join(",")}]`;
    return `,"from":"${this.#from}","tx":[${this.#tx.join(",")}]${changes}}`;
  }

  #size(tx: number, change: string): number {
    const id = this.#tx.at(-1) === tx ? 0 : String(tx).length + 1;
    return id + Buffer.byteLength(change) + 1;
  }
}
