import { watch } from "node:fs";
import type { FSWatcher } from "node:fs";
import { basename, dirname } from "node:path";
import { later, monotonicMs } from "../../../host/timers.ts";
import type { Meters } from "../../meters.ts";

export interface ForeignEvents {
  /** Moves with every commit but those of our own writer; undefined when busy. */
  readonly version: () => unknown;
  /** Somebody committed and nobody told us what. */
  readonly onUntold: () => void;
  /** Now and then, for whatever else nobody might have told. */
  readonly onTick: () => void;
}

/** Tells of changes in a folder; tests put one in its place that cannot. */
export type FolderWatch = (folder: string) => FSWatcher;

const watchFolder: FolderWatch = (folder) => watch(folder, { persistent: false });

/** The watch fires on the log's bytes; the commit shows a moment later, without an event. */
const recheckMs: readonly number[] = [1, 5, 20];
/** A ring follows its commit's flush; one that takes longer than this is not coming. */
const ringGraceMs = 30;
const sweepMs = 1_000;
const pollFirstMs = 50;
const pollLongestMs = 1_000;

/**
 * Notices commits of processes that do not ring: a database shell, or a peer
 * that died between its flush and its ring. Works only while somebody
 * subscribes; without, it costs nothing.
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
  /** Why there is no watch, for `stats()`. */
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

  /** A peer told of its commit, or we made one on another connection. */
  explained(): void {
    this.#rangMs = monotonicMs();
  }

  /** The folder is watched, not the file: the log may be made anew. */
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

  /** Looks now, and a few times more if there is nothing to see yet. */
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

  /** Gives the process that committed the time to ring before everybody is told "something". */
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
   * A ring may have explained this commit or only one beside it. While rings
   * come, a process that does not ring is heard of within a second.
   */
  #sweepLater(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    this.#after(sweepMs, () => {
      this.#sweeping = false;
      this.#events.onUntold();
    });
  }

  /** The last safety net, for when the watch saw nothing. */
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
