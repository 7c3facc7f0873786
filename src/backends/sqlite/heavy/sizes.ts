import type { HeavyCall } from "./heavy-call.ts";
import type { HeavyRequests } from "./heavy-requests.ts";

export interface StoredSize {
  readonly name: string;
  readonly kind: "table" | "index";
  /** The table itself, or the one that the index is of. */
  readonly table: string;
  /** Whole pages, so their unused space too. */
  readonly bytes: number;
  /** Of tables. */
  readonly rows?: number;
  /** Set where SQLite was built without `dbstat`: then a few rows stand for all. */
  readonly estimated?: true;
}

/** Measures each table and index in a snapshot of its own: sums may disagree under load. */
export async function measureSizes(
  requests: HeavyRequests,
  { signal, onProgress }: HeavyCall,
  dbstat: boolean,
): Promise<readonly StoredSize[]> {
  const objects = await requests.ask<readonly object[]>("objects", {}, signal);
  const sizes: StoredSize[] = [];
  const total = objects.length;
  for (const [done, object] of objects.entries()) {
    onProgress({ done, total });
    const size = await requests.ask<StoredSize | undefined>("size", { object, dbstat }, signal);
    // Dropped meanwhile.
    if (size !== undefined) sizes.push(size);
  }
  onProgress({ done: total, total });
  return sizes;
}
