import type { OperationTime } from "../sql/database.ts";
import type { Callable } from "./callable.ts";

/** The shared entry for calls whose names exceed the limit. */
const otherNames = "(others)";

/** Names of users' bodies may be created at run time. Names of operations are in the code. */
const userNamesMax = 200;
const nameCharactersMax = 128;

/** Eight buckets for each doubling of a microsecond, so a percentile is at most an eighth too high. */
const bucketBits = 3;
const bucketsPerOctave = 1 << bucketBits;
const microsMax = 2 ** 31 - 1;
const buckets = (31 - bucketBits + 1) * bucketsPerOctave;

/**
 * The durations of each operation's calls: waiting for a transaction, and running in it. A call
 * costs one map lookup and two counters; a name costs 2 KB.
 */
export class OperationTimes {
  readonly #names = new Map<string, Times>();
  #userNames = 0;

  ran({ name, isOurs }: Pick<Callable, "name" | "isOurs">, waitedMs: number, ranMs: number): void {
    const times = this.#names.get(name) ?? this.#added(name, isOurs);
    times.waited.record(waitedMs);
    times.ran.record(ranMs);
  }

  #added(name: string, isOurs: boolean): Times {
    if (!isOurs) {
      if (this.#userNames >= userNamesMax || name.length > nameCharactersMax)
        return this.#names.get(otherNames) ?? this.#add(otherNames);
      this.#userNames += 1;
    }
    return this.#add(name);
  }

  #add(name: string): Times {
    const times = { waited: new Histogram(), ran: new Histogram() };
    this.#names.set(name, times);
    return times;
  }

  /** Returns the times, sorted by name. */
  snapshot(): Readonly<Record<string, OperationTime>> {
    const names = [...this.#names].toSorted(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(
      names.map(([name, { waited, ran }]) => [
        name,
        { count: ran.count, waitingMs: waited.percentiles(), runningMs: ran.percentiles() },
      ]),
    );
  }
}

interface Times {
  readonly waited: Histogram;
  readonly ran: Histogram;
}

/** A histogram of durations by magnitude, in constant memory. */
class Histogram {
  readonly #counts = new Uint32Array(buckets);
  count = 0;

  record(ms: number): void {
    const micros = Math.min(microsMax, Math.max(0, Math.round(ms * 1_000)));
    const index = bucketOf(micros);
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.count += 1;
  }

  percentiles(): { readonly p50: number; readonly p99: number } {
    return { p50: this.#percentile(0.5), p99: this.#percentile(0.99) };
  }

  #percentile(part: number): number {
    let left = Math.ceil(this.count * part);
    for (let index = 0; index < buckets; index += 1) {
      left -= this.#counts[index] ?? 0;
      if (left <= 0) return this.count === 0 ? 0 : lastOf(index) / 1_000;
    }
    return microsMax / 1_000;
  }
}

/** Exact below 8 microseconds; above, the leading bit and the next three. */
function bucketOf(micros: number): number {
  if (micros < bucketsPerOctave) return micros;
  const shift = 31 - Math.clz32(micros) - bucketBits;
  return shift * bucketsPerOctave + (micros >>> shift);
}

/** The longest duration of a bucket, in microseconds. */
function lastOf(index: number): number {
  if (index < bucketsPerOctave) return index;
  const shift = (index >>> bucketBits) - 1;
  const leading = (index & (bucketsPerOctave - 1)) + bucketsPerOctave;
  return (leading + 1) * 2 ** shift - 1;
}
