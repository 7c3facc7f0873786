import type { Clock } from "../../model/time/clock.ts";
import type { Database } from "../../sql/database.ts";
import type { ExecutionContext } from "../../stores/execution/context.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import { readParked, type ParkedBelow } from "../../stores/execution/read/parked.ts";
import type { Notice } from "../runtime-event.ts";

/** The wait for a result before the first check for parked runs. */
const patienceMs = 2_000;
/** The pause between two checks: the run may be parked in another process. */
const againMs = 30_000;
/** The most runs in one check. */
const idsMax = 1_000;

interface WaitParts {
  readonly database: Database;
  readonly store: ExecutionContext;
  readonly executions: Executions;
  readonly clock: Clock;
  readonly tell: (notice: Notice) => void;
}

/**
 * Warns when a caller waits for the result of a parked run, or of a run that waits for a parked
 * child. No result arrives before a user unparks that run, and nothing else would report this.
 * One check serves all callers. Each run is reported once.
 */
export class ParkedWaits {
  readonly #parts: WaitParts;
  readonly #awaited = new Map<string, number>();
  readonly #told = new Set<string>();
  #cancel: (() => void) | undefined;

  constructor(parts: WaitParts) {
    this.#parts = parts;
  }

  /** Counts a caller as waiting for a result until the promise settles. */
  async during<T>(id: string, waiting: Promise<T>): Promise<T> {
    this.#awaited.set(id, (this.#awaited.get(id) ?? 0) + 1);
    if (this.#cancel === undefined) this.#lookIn(patienceMs);
    try {
      return await waiting;
    } finally {
      const others = (this.#awaited.get(id) ?? 1) - 1;
      if (others > 0) this.#awaited.set(id, others);
      else this.#awaited.delete(id);
      if (this.#awaited.size === 0) this.close();
    }
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #lookIn(ms: number): void {
    const { clock } = this.#parts;
    this.#cancel = clock.wakeAt(clock.now() + ms, () => {
      this.#cancel = undefined;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    const { database, store } = this.#parts;
    const ids = [...this.#awaited.keys()];
    try {
      for (let from = 0; from < ids.length; from += idsMax) {
        const some = ids.slice(from, from + idsMax);
        const found = await database.read(readParked(store), some);
        const parked = new Set(found.map(({ id }) => id));
        // A run that resumes may be parked again.
        for (const id of some) if (!parked.has(id)) this.#told.delete(id);
        for (const one of found) if (!this.#told.has(one.id)) await this.#tell(one);
      }
    } catch {
      // The wait itself reports the database's error to its caller.
    }
    if (this.#awaited.size > 0 && this.#cancel === undefined) this.#lookIn(againMs);
  }

  async #tell({ id, parked }: ParkedBelow): Promise<void> {
    const { executions, tell } = this.#parts;
    const { interruption } = await executions.get(parked);
    if (interruption?.kind !== "parked") return;
    const standing = parked === id ? "is parked" : `waits for ${parked}, which is parked`;
    if (this.#told.size >= idsMax) this.#told.clear();
    this.#told.add(id);
    tell({
      level: "warn",
      message: `Run ${id} ${standing}. Its result comes only after that run is unparked (run.unpark(), or npx holdfast unpark ${parked}). It was parked for this reason: ${interruption.reason}`,
      details: { id, parked, code: interruption.code },
    });
  }
}
