import { randomInt } from "node:crypto";
import { row, type Tx, sql } from "../../src/kernel.ts";
import { until } from "./place.ts";
import type { Place, Shell } from "./place.ts";

/**
 * Holds transactions where a test wants them, however slow the machine is: a
 * lock in the server that a shell has and bodies wait for.
 */
export class Barrier {
  readonly #shell: Shell;
  readonly #number: number;

  static async raise(place: Place): Promise<Barrier> {
    const shell = place.shell();
    const number = randomInt(2 ** 31);
    await shell`SELECT pg_advisory_lock(${number}::int8)`;
    return new Barrier(shell, number);
  }

  private constructor(shell: Shell, number: number) {
    this.#shell = shell;
    this.#number = number;
  }

  /** Waits inside a transaction until the barrier is lifted. */
  *stop(): Tx<void> {
    yield* patience();
    yield* row(sql`SELECT pg_advisory_xact_lock_shared(${this.#number}::int8)`);
  }

  /** Resolves when so many transactions wait. */
  stopped(count: number): Promise<void> {
    return until(async () => (await this.#waiting()) >= count);
  }

  /** Resolves when so many transactions wait, for the barrier or for a row of another. */
  settled(count: number, place: Place): Promise<void> {
    return until(
      async () => (await this.#waiting()) + (await blockedIn(this.#shell, place)) >= count,
    );
  }

  /** How many transactions wait for the barrier now. */
  async #waiting(): Promise<number> {
    const shell = this.#shell;
    const waiting = await shell`
      SELECT 1 FROM pg_locks
      WHERE locktype = 'advisory' AND objid = ${this.#number}::int8::oid AND NOT granted`;
    return waiting.length;
  }

  async lift(): Promise<void> {
    const shell = this.#shell;
    await shell`SELECT pg_advisory_unlock(${this.#number}::int8)`;
  }
}

/** All the time in the world to wait for others: else a transaction gives up, and is run again. */
export function* patience(): Tx<void> {
  yield* row(sql`SELECT set_config('lock_timeout', '0', true)`);
}

/** Resolves when a transaction of ours waits for a row of another one. */
export async function blocked({ place }: { readonly place: Place }): Promise<void> {
  const shell = place.shell();
  await until(async () => (await blockedIn(shell, place)) > 0);
}

async function blockedIn(shell: Shell, place: Place): Promise<number> {
  const waiting = await shell`
    SELECT 1 FROM pg_stat_activity
    WHERE application_name = ${place.app} AND wait_event IN ('transactionid', 'tuple')`;
  return waiting.length;
}

/** Runs a transaction, and stops it at a barrier before the first statement with these words. */
export function* driveUntil<T>(barrier: Barrier, words: string, tx: Tx<T>): Tx<T> {
  let isPast = false;
  let step = tx.next();
  while (step.done !== true) {
    const text = step.value.statement?.template.postgres ?? "";
    if (!isPast && text.includes(words)) {
      isPast = true;
      yield* barrier.stop();
    }
    step = tx.next(yield step.value);
  }
  return step.value;
}
