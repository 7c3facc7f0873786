import type { Clock } from "../../model/time/clock.ts";
import type { Database } from "../../sql/database.ts";
import type { ExecutionContext } from "../../stores/execution/context.ts";
import type { Executions } from "../../stores/execution/executions.ts";
import { readParked } from "../../stores/execution/read/parked.ts";
import type { Notice } from "../runtime-event.ts";

/** So long a result is waited for before one asks whether its run is parked. */
const patienceMs = 2_000;
/** How often that is asked again: it may be parked in another process. */
const againMs = 30_000;
/** How many are looked at together. */
const idsMax = 1_000;

interface WaitParts {
  readonly database: Database;
  readonly store: ExecutionContext;
  readonly executions: Executions;
  readonly clock: Clock;
  readonly tell: (notice: Notice) => void;
}

/**
 * Says when somebody waits for the result of a run that is parked: it does not
 * come before somebody unparks the run, and nobody else would say so. One look
 * serves all who wait; each run is told of once.
 */
export class ParkedWaits {
  readonly #parts: WaitParts;
  readonly #awaited = new Map<string, number>();
  readonly #told = new Set<string>();
  #cancel: (() => void) | undefined;

  constructor(parts: WaitParts) {
    this.#parts = parts;
  }

  /** Somebody waits for a result as long as this takes. */
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
        // One that goes on may be parked again.
        for (const id of some) if (!parked.has(id)) this.#told.delete(id);
        for (const id of parked) if (!this.#told.has(id)) await this.#tell(id);
      }
    } catch {
      // Who waits is told by the wait itself what is wrong with the database.
    }
    if (this.#awaited.size > 0 && this.#cancel === undefined) this.#lookIn(againMs);
  }

  async #tell(id: string): Promise<void> {
    const { executions, tell } = this.#parts;
    const { interruption } = await executions.get(id);
    if (interruption?.kind !== "parked") return;
    if (this.#told.size >= idsMax) this.#told.clear();
    this.#told.add(id);
    tell({
      level: "warn",
      message: `Run ${id} is parked, and its result comes only when somebody unparks it (run.unpark(), or holdfast unpark ${id}). Why it is: ${interruption.reason}`,
      details: { id, code: interruption.code },
    });
  }
}
