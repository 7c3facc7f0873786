import type { HeavyCall } from "./heavy-call.ts";
import type { HeavyRequests } from "./heavy-requests.ts";

export interface StoredSize {
  readonly name: string;
  readonly kind: "table" | "index";
  /** The table itself, or the table of the index. */
  readonly table: string;
  /** Whole pages, including their unused space. */
  readonly bytes: number;
  /** The number of rows of a table. */
  readonly rows?: number;
  /** Set where SQLite was built without `dbstat`: then the size is estimated from a few rows. */
  readonly estimated?: true;
}

/** Measures each table and index in its own snapshot, so sums may disagree under load. */
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
    // Undefined when it was dropped in between.
    if (size !== undefined) sizes.push(size);
  }
  onProgress({ done: total, total });
  return sizes;
}
