import { watch } from "node:fs";
import type { FSWatcher } from "node:fs";
import { basename, dirname } from "node:path";
import { later, monotonicMs } from "../../../host/timers.ts";
import type { Meters } from "../../meters.ts";

export interface ForeignEvents {
  /** A number that moves with every commit except our own writer's; undefined when busy. */
  readonly version: () => unknown;
  /** Called when a foreign commit was not announced by its process. */
  readonly onUntold: () => void;
  /** Called now and then, to notice other events that no process announces. */
  readonly onTick: () => void;
}

/** Watches a folder for changes. Tests replace it by one that fails. */
export type FolderWatch = (folder: string) => FSWatcher;

const watchFolder: FolderWatch = (folder) => watch(folder, { persistent: false });

/**
 * The watch fires when the log's bytes change. The commit shows a moment later, without an event.
 */
const recheckMs: readonly number[] = [1, 5, 20];
/** The longest wait for a ring, which follows its commit's flush. */
const ringGraceMs = 30;
const sweepMs = 1_000;
const pollFirstMs = 50;
const pollLongestMs = 1_000;

/**
 * Notices commits of processes that do not ring: a database shell, or a peer that died between its
 * flush and its ring. It works only while there are subscribers, and costs nothing without them.
 */
export class ForeignCommits {
  readonly #path: string;
  readonly #events: ForeignEvents;
  readonly #meters: Meters;
  readonly #watch: FolderWatch;
  #seen: unknown;
  #rangMs = Number.NEGATIVE_INFINITY;
  #watcher: FSWatcher | undefined;
  #pollMs = pollFirstMs;
  #isActive = false;
  #timers = new Set<() => void>();
  #rechecking = false;
  #judging = false;
  #sweeping = false;
  /** The reason why there is no watch, for `stats()`. */
  unwatched: string | undefined;

  constructor(
    path: string,
    events: ForeignEvents,
    meters: Meters,
    watchWith: FolderWatch = watchFolder,
  ) {
    this.#watch = watchWith;
    this.#path = path;
    this.#events = events;
    this.#meters = meters;
  }

  start(): void {
    if (this.#isActive) return;
    this.#isActive = true;
    this.#seen = this.#events.version();
    this.#pollMs = pollFirstMs;
    this.#startWatch();
    this.#poll();
  }

  stop(): void {
    this.#isActive = false;
    this.#watcher?.close();
    this.#watcher = undefined;
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
    this.#rechecking = false;
    this.#judging = false;
    this.#sweeping = false;
  }

  /**
   * Records that a commit is explained: a peer announced it, or we made it on another connection.
   */
  explained(): void {
    this.#rangMs = monotonicMs();
  }

  /** Watches the folder instead of the file, because the log may be recreated. */
  #startWatch(): void {
    const log = `${basename(this.#path)}-wal`;
    try {
      this.#watcher = this.#watch(dirname(this.#path));
      this.#watcher.on("change", (_, name) => {
        if (name === log) this.#look(recheckMs);
      });
      this.#watcher.on("error", (error) => (this.unwatched = error.message));
    } catch (error) {
      this.unwatched = (error as Error).message;
    }
  }

  /** Checks now, and a few more times if there is nothing to see yet. */
  #look(again: readonly number[]): void {
    if (!this.#isActive || (this.#rechecking && again === recheckMs)) return;
    this.#rechecking = false;
    if (this.#moved()) return this.#judge(false);
    const [waitMs, ...rest] = again;
    if (waitMs === undefined) return;
    this.#rechecking = true;
    this.#after(waitMs, () => this.#look(rest));
  }

  #moved(): boolean {
    const version = this.#events.version();
    if (version === undefined || version === this.#seen) return false;
    this.#seen = version;
    this.#pollMs = pollFirstMs;
    return true;
  }

  /** Waits for the committing process to ring before all subscribers get an unnamed hint. */
  #judge(foundByPoll: boolean): void {
    if (this.#judging) return;
    this.#judging = true;
    const noticedMs = monotonicMs();
    this.#after(ringGraceMs, () => {
      this.#judging = false;
      if (this.#rangMs >= noticedMs - ringGraceMs) return this.#sweepLater();
      if (foundByPoll) this.#meters.polls += 1;
      this.#events.onUntold();
    });
  }

  /**
   * Checks again later, since a ring may have explained this commit or only another one. While
   * rings arrive, commits of a silent process are noticed within a second.
   */
  #sweepLater(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#after(sweepMs, () => {
      this.#sweeping = false;
      this.#events.onUntold();
    });
  }

  /** Polls as a last resort, in case the watch saw nothing. */
  #poll(): void {
    this.#after(this.#pollMs, () => {
      this.#pollMs = Math.min(pollLongestMs, this.#pollMs * 2);
      if (!this.#judging && !this.#rechecking && this.#moved()) this.#judge(true);
      this.#events.onTick();
      this.#poll();
    });
  }

  #after(ms: number, run: () => void): void {
    const cancel = later(ms, () => {
      this.#timers.delete(cancel);
      if (this.#isActive) run();
    });
    this.#timers.add(cancel);
  }
}
