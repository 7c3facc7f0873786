import { monotonicMs } from "../../../host/timers.ts";

/** Our own reads end within a second. A longer block is worth reporting. */
const reportAfterMs = 1_000;

/** The obstacles reported by a checkpoint that could not restart the log. */
export interface InTheWay {
  /** The processes that were reading the log, as far as the system reports them. */
  readonly readers?: readonly string[] | undefined;
  readonly error?: string | undefined;
}

/** Tracks since when the log could not be restarted, and which processes prevented it. */
export class HeldBack {
  #sinceMs: number | undefined;
  /** The readers seen every time. Short readers come and go. */
  #readers: readonly string[] = [];
  #error: string | undefined;

  note({ readers, error }: InTheWay): void {
    this.#error = error;
    this.#sinceMs ??= monotonicMs();
    if (readers === undefined) return;
    const still = this.#readers.filter((reader) => readers.includes(reader));
    this.#readers = still.length > 0 ? still : readers;
  }

  clear(): void {
    this.#sinceMs = undefined;
    this.#readers = [];
  }

  /** The text for `stats()`; undefined while the obstacle may be momentary. */
  report(walBytes: number): string | undefined {
    const lastsLong = this.#sinceMs !== undefined && monotonicMs() - this.#sinceMs >= reportAfterMs;
    return lastsLong ? this.text(walBytes) : undefined;
  }

  text(walBytes: number): string {
    const seconds = Math.round((monotonicMs() - (this.#sinceMs ?? monotonicMs())) / 1_000);
    const state = `The write-ahead log has grown to ${mebibytes(walBytes)} MiB and could not be restarted for ${seconds} s, because`;
    if (this.#error !== undefined)
      return `${state} a checkpoint failed (${this.#error}). Look at the disk's free space and health.`;
    const reader =
      this.#readers.length === 0
        ? "a reader in some process keeps an old snapshot"
        : `a reader keeps an old snapshot: process ${this.#readers.join(", process ")}`;
    return `${state} ${reader}. Look for a read transaction that never ends: a database shell left open, an iteration that was not finished, or a long backup.`;
  }
}

function mebibytes(bytes: number): string {
  return (bytes / 1_048_576).toFixed(bytes < 10 * 1_048_576 ? 1 : 0);
}
