import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { HeldLock } from "../renewals.ts";

/** A lock whose run is being read. */
export interface Load {
  readonly id: ExecutionId;
  readonly key: number;
  leaseUntil: number;
}

/** Runs that are locked and being read: their locks are kept as those of what runs. */
export class Loading {
  readonly #loads = new Set<Load>();

  has(id: ExecutionId): boolean {
    return this.ids().includes(id);
  }

  ids(): readonly ExecutionId[] {
    return Array.from(this.#loads, ({ id }) => id);
  }

  /** Keeps a lock for as long as something takes. */
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
