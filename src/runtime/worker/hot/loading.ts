import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HeldLock } from "../renewals.ts";

/** A lock whose run is being read. */
export interface Load {
  readonly id: ExecutionId;
  readonly key: number;
  leaseUntil: number;
}

/** Locked runs that are being read: their locks are renewed like those of running runs. */
export class Loading {
  readonly #loads = new Set<Load>();

  has(id: ExecutionId): boolean {
    return this.ids().includes(id);
  }

  ids(): readonly ExecutionId[] {
    return Array.from(this.#loads, ({ id }) => id);
  }

  /** Renews a lock until the load settles. */
  async during(
    lock: { readonly id: ExecutionId; readonly key: number },
    leaseUntil: number,
    act: (load: Load) => Promise<void>,
  ): Promise<void> {
    const load: Load = { id: lock.id, key: lock.key, leaseUntil };
    this.#loads.add(load);
    try {
      await act(load);
    } finally {
      this.#loads.delete(load);
    }
  }

  held(): readonly HeldLock[] {
    return Array.from(this.#loads, (load) => ({
      id: load.id,
      key: load.key,
      renewed(until) {
        load.leaseUntil = Math.max(load.leaseUntil, until);
      },
      lost() {
        load.leaseUntil = 0;
      },
    }));
  }
}
