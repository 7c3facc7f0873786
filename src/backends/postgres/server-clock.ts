import { machineTime } from "../../host/clock.ts";
import { later, monotonicMs } from "../../host/timers.ts";
import type { Clock } from "../../model/time/clock.ts";
import { sql } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import type { Warning } from "../../sql/database.ts";

const samplesMax = 5;
const measureEveryMs = 60_000;
/** After a jump the offset may be wrong, so a failed measurement is repeated soon. */
const measureAgainMs = 1_000;
/** Beyond this, leases of processes that use their own clock would be cut or stretched. */
const skewMsMax = 1_000;

/**
 * The server's time: the machine's monotonic time plus an offset that is measured now and then. So
 * all processes of one database agree on due and expired times. It never goes back; when the offset
 * shrinks, it stands still.
 *
 * The machine's wall clock is not used, since it may be set back or forward at any time. A worker
 * would then stop renewing its leases, or consider other leases expired. The wall clock only shows
 * that something is wrong. A suspended machine has not counted time, but its wall clock has moved
 * on. So when the two diverge, the server is asked at once.
 */
export class ServerClock implements Clock {
  readonly #warn: (warning: Warning) => void;
  readonly #wallMs: () => number;
  #latest = 0;
  /** The last monotonic reading, and the time lost when the count was restarted. */
  #countedMs = 0;
  #lostMs = 0;
  /** The server's time, and the wall clock's, minus the machine's monotonic time. */
  #serverAheadMs: number;
  #wallAheadMs: number;
  #hasJumped = false;
  #hasWarned = false;
  #measure: (() => Promise<void>) | undefined;
  #cancelMeasuring: () => void = () => undefined;

  constructor(warn: (warning: Warning) => void, wallMs: () => number = machineTime) {
    this.#warn = warn;
    this.#wallMs = wallMs;
    this.#wallAheadMs = wallMs() - this.#elapsedMs();
    this.#serverAheadMs = this.#wallAheadMs;
  }

  now(): number {
    const serverMs = this.#serverMs();
    this.#watchForJumps();
    this.#latest = Math.max(this.#latest, Math.floor(serverMs));
    return this.#latest;
  }

  /** The server's time minus that of the machine's wall clock. */
  get offsetMs(): number {
    return Math.round(this.#serverMs() - this.#wallMs());
  }

  wakeAt(instant: number, run: () => void): () => void {
    let cancel = (): void => undefined;
    const sleep = (): void => {
      const leftMs = this.now() >= instant ? 0 : instant - this.#serverMs();
      // A new measurement may bring the instant nearer.
      cancel = later(Math.min(leftMs, measureEveryMs), () =>
        // A timer may also fire a moment early.
        this.now() < instant ? sleep() : run(),
      );
    };
    sleep();
    return () => cancel();
  }

  /** Takes the sample with the shortest round trip: its error is at most half of that. */
  async measure(
    connection: Pick<Connection, "query">,
    samples: number = samplesMax,
  ): Promise<void> {
    let shortestMs = Number.POSITIVE_INFINITY;
    for (let sample = 0; sample < samples; sample += 1) {
      const sentMs = this.#elapsedMs();
      // Read before the answer, so that a suspension in between is noticed afterwards.
      const wallAheadMs = this.#wallMs() - sentMs;
      const serverAt = await serverTime(connection);
      const tripMs = this.#elapsedMs() - sentMs;
      if (tripMs >= shortestMs) continue;
      shortestMs = tripMs;
      this.#serverAheadMs = serverAt - (sentMs + tripMs / 2);
      this.#wallAheadMs = wallAheadMs;
    }
    this.#hasJumped = false;
    this.#warnOnce();
  }

  /** Measures again regularly; a failed measurement keeps the last offset. */
  keepMeasuring(measure: () => Promise<void>): void {
    this.#measure = measure;
    this.#measureIn(measureEveryMs);
  }

  stopMeasuring(): void {
    this.#measure = undefined;
    this.#cancelMeasuring();
  }

  #measureIn(ms: number): void {
    this.#cancelMeasuring();
    this.#cancelMeasuring = later(ms, () => {
      void this.#measure?.()
        .catch(() => undefined)
        .finally(() => {
          if (this.#measure === undefined) return;
          this.#measureIn(this.#hasJumped ? measureAgainMs : measureEveryMs);
        });
    });
  }

  #serverMs(): number {
    return this.#elapsedMs() + this.#serverAheadMs;
  }

  /**
   * The elapsed time, which continues when the monotonic count restarts, as it does when a test
   * replaces the timers.
   */
  #elapsedMs(): number {
    const countedMs = monotonicMs();
    this.#lostMs += Math.max(0, this.#countedMs - countedMs);
    this.#countedMs = countedMs;
    return this.#lostMs + countedMs;
  }

  #watchForJumps(): void {
    if (this.#hasJumped || this.#measure === undefined) return;
    const wallAheadMs = this.#wallMs() - this.#elapsedMs();
    if (Math.abs(wallAheadMs - this.#wallAheadMs) <= skewMsMax) return;
    this.#hasJumped = true;
    this.#measureIn(0);
  }

  #warnOnce(): void {
    const { offsetMs } = this;
    if (this.#hasWarned || Math.abs(offsetMs) <= skewMsMax) return;
    this.#hasWarned = true;
    this.#warn({
      code: "CLOCK_SKEW",
      message:
        `The clocks of this machine and of the Postgres server differ by ${offsetMs} ms. ` +
        "Holdfast uses the server's; check the time service of both machines.",
    });
  }
}

async function serverTime(connection: Pick<Connection, "query">): Promise<number> {
  const { rows } = await connection.query(
    sql`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at`,
  );
  const [found] = rows as readonly { readonly at: number }[];
  return found?.at ?? Number.NaN;
}
