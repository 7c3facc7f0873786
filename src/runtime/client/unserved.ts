import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { Clock } from "../../model/time/clock.ts";
import type { Database } from "../../sql/database.ts";
import type { ExecutionContext } from "../../stores/execution/context.ts";
import { findUnserved } from "../../stores/execution/read/unserved.ts";
import type { Notice } from "../runtime-event.ts";

/** The time for which work may be due before the process checks that a worker serves it. */
const patienceMs = 2_000;
/** The pause between two checks of work that other processes may have left. */
const againMs = 60_000;

interface UnservedParts {
  readonly database: Database;
  readonly store: ExecutionContext;
  readonly clock: Clock;
  readonly tell: (notice: Notice) => void;
}

/**
 * Finds functions whose runs no worker takes: they were not given to `work`, or have another
 * name. No list of served functions exists. A function is unserved when the database shows work
 * that has been due for two seconds, and no run of the function is executing anywhere. Each
 * function is reported once.
 */
export class UnservedFunctions {
  readonly #parts: UnservedParts;
  readonly #servedHere = new Set<string>();
  readonly #told = new Set<string>();
  /** Functions started here, with the time of the first start: checked once that is long enough ago. */
  readonly #asked = new Map<string, number>();
  #asksAll = false;
  #lookAt: number | undefined;
  #cancel: () => void = () => undefined;
  #isClosed = false;

  constructor(parts: UnservedParts) {
    this.#parts = parts;
  }

  /** A worker of this process serves these functions, and checks all others now and then. */
  serve(functions: Iterable<string>): void {
    for (const name of functions) this.#servedHere.add(name);
    this.#asksAll = true;
    this.#lookIn(patienceMs);
  }

  /** A run of this function was started here. */
  started(name: string): void {
    if (this.#servedHere.has(name) || this.#told.has(name)) return;
    if (!this.#asked.has(name)) this.#asked.set(name, this.#parts.clock.now());
    this.#lookIn(patienceMs);
  }

  /** True if no worker seems to serve the function of a run that has been due since an instant. */
  async isUnserved(name: string, dueAt: number): Promise<boolean> {
    const dueBy = this.#parts.clock.now() - patienceMs;
    if (dueAt > dueBy || this.#servedHere.has(name)) return false;
    const { database, store } = this.#parts;
    const input = { only: name, dueBy };
    return (await database.read(findUnserved(store), input)).length > 0;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #lookIn(ms: number): void {
    const { clock } = this.#parts;
    const at = clock.now() + ms;
    if (this.#isClosed || (this.#lookAt !== undefined && this.#lookAt <= at)) return;
    this.#cancel();
    this.#lookAt = at;
    this.#cancel = clock.wakeAt(at, () => {
      this.#lookAt = undefined;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    const { database, store, clock } = this.#parts;
    const dueBy = clock.now() - patienceMs;
    const find = findUnserved(store);
    const names = [...this.#asked]
      .filter(([, startedAt]) => startedAt <= dueBy)
      .map(([name]) => name);
    for (const name of names) this.#asked.delete(name);
    try {
      const found = this.#asksAll
        ? await database.read(find, { dueBy })
        : (await Promise.all(names.map((only) => database.read(find, { only, dueBy })))).flat();
      for (const each of found) this.#warn(each.function, each.id);
    } catch {
      // Other calls report an unreadable database.
    }
    if (this.#asked.size > 0) this.#lookIn(patienceMs);
    if (this.#asksAll) this.#lookIn(againMs);
  }

  #warn(name: string, id: ExecutionId): void {
    if (this.#servedHere.has(name) || this.#told.has(name)) return;
    this.#told.add(name);
    this.#parts.tell({
      level: "warn",
      message:
        `No worker has taken run ${id} of "${name}" for ${patienceMs / 1_000} s, and no worker runs another run of it. ` +
        `Pass this function to holdfast.work([…]) under this name in some process; its runs wait until then.`,
      details: { id, function: name },
    });
  }
}
