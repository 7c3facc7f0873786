import { randomInt } from "node:crypto";
import { row } from "../../src/sql/operation.ts";
import type { Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
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
    // Else the wait would be given up, and the transaction run again.
    yield* row(sql`SELECT set_config('lock_timeout', '0', true)`);
    yield* row(sql`SELECT pg_advisory_xact_lock_shared(${this.#number}::int8)`);
  }

  /** Resolves when so many transactions wait. */
  stopped(count: number): Promise<void> {
    return until(async () => {
      const shell = this.#shell;
      const waiting = await shell`
        SELECT 1 FROM pg_locks
        WHERE locktype = 'advisory' AND objid = ${this.#number}::int8::oid AND NOT granted`;
      return waiting.length >= count;
    });
  }

  async lift(): Promise<void> {
    const shell = this.#shell;
    await shell`SELECT pg_advisory_unlock(${this.#number}::int8)`;
  }
}
