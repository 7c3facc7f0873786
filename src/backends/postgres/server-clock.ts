import { systemClock } from "../../host/clock.ts";
import { later, monotonicMs } from "../../host/timers.ts";
import type { Clock } from "../../model/time/clock.ts";
import { sql } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import type { Warning } from "../../sql/database.ts";

const samplesMax = 5;
const measureEveryMs = 60_000;
/** Beyond it leases of processes that use their own clock would be cut or stretched. */
const skewMsMax = 1_000;

/**
 * The server's time: the local clock plus an offset that is measured now and
 * then. All processes of one database so agree on what is due and what has
 * expired. It never goes back; when the offset shrinks it stands still.
 */
export class ServerClock implements Clock {
  readonly #local: Clock;
  readonly #warn: (warning: Warning) => void;
  #latest = 0;
  #hasWarned = false;
  #cancelMeasuring: (() => void) | undefined;
  offsetMs = 0;

  constructor(warn: (warning: Warning) => void, local: Clock = systemClock) {
    this.#warn = warn;
    this.#local = local;
  }

  now(): number {
    this.#latest = Math.max(this.#latest, this.#local.now() + this.offsetMs);
    return this.#latest;
  }

  wakeAt(instant: number, run: () => void): () => void {
    let cancel = (): void => undefined;
    const sleep = (): void => {
      const localNow = this.#local.now();
      const wakeAt =
        this.now() >= instant
          ? localNow
          : // A new measurement may bring the instant nearer.
            Math.min(instant - this.offsetMs, localNow + measureEveryMs);
      cancel = this.#local.wakeAt(wakeAt, () =>
        this.now() < instant ? sleep() : run(),
      );
    };
    sleep();
    return () => cancel();
  }

  /** Takes the sample with the shortest round trip: it can be wrong by half of that at most. */
  async measure(
    connection: Connection,
    samples: number = samplesMax,
  ): Promise<void> {
    let shortestMs = Number.POSITIVE_INFINITY;
    for (let sample = 0; sample < samples; sample += 1) {
      const sentAt = this.#local.now();
      const sentMs = monotonicMs();
      const serverAt = await serverTime(connection);
      const tripMs = monotonicMs() - sentMs;
      if (tripMs >= shortestMs) continue;
      shortestMs = tripMs;
      this.offsetMs = Math.round(serverAt - (sentAt + tripMs / 2));
    }
    this.#warnOnce();
  }

  /** Measures again regularly; a failed measurement keeps the last offset. */
  keepMeasuring(measure: () => Promise<void>): void {
    this.#cancelMeasuring = later(measureEveryMs, () => {
      measure()
        .catch(() => undefined)
        .finally(() => {
          if (this.#cancelMeasuring !== undefined) this.keepMeasuring(measure);
        });
    });
  }

  stopMeasuring(): void {
    this.#cancelMeasuring?.();
    this.#cancelMeasuring = undefined;
  }

  #warnOnce(): void {
    if (this.#hasWarned || Math.abs(this.offsetMs) <= skewMsMax) return;
    this.#hasWarned = true;
    this.#warn({
      code: "CLOCK_SKEW",
      message:
        `The clocks of this machine and of the Postgres server differ by ${this.offsetMs} ms. ` +
        "Holdfast uses the server's; check the time service of both machines.",
    });
  }
}

async function serverTime(connection: Connection): Promise<number> {
  const { rows } = await connection.query(
    sql`SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at`,
  );
  const [found] = rows as readonly { readonly at: number }[];
  return found?.at ?? Number.NaN;
}
