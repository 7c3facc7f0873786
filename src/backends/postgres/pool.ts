import { monotonicMs, sleep } from "../../host/timers.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { Connection } from "./connection.ts";

/** How long an unreachable server is waited for before callers are told. */
const downMsMax = 15_000;
const retryMsMin = 50;
const retryMsMax = 1_000;
/** Who waits has another connection tried this soon after a failure; else nobody waits. */
const forgetMs = 2 * retryMsMax;

export interface PoolEvents {
  /** A connection can be taken. */
  readonly onRoom: () => void;
  /** None is to be had, and waiting longer is pointless. */
  readonly onDown: (error: HoldfastError) => void;
}

/**
 * The connections for calls: opened when there is work, kept while they live.
 * While the server cannot be reached calls simply wait, for a restart takes
 * seconds; after a while they are told.
 */
export class Pool {
  readonly #open: (signal: AbortSignal) => Promise<Connection>;
  readonly #size: number;
  readonly #events: PoolEvents;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  readonly #closing = new AbortController();
  #opening = 0;
  #downSinceMs: number | undefined;
  #lastFailureMs = Number.NEGATIVE_INFINITY;
  #failures = 0;
  #pausing = false;
  #onQuiet: (() => void) | undefined;

  constructor(
    open: (signal: AbortSignal) => Promise<Connection>,
    size: number,
    events: PoolEvents,
  ) {
    this.#open = open;
    this.#size = size;
    this.#events = events;
  }

  get hasIdle(): boolean {
    for (let last = this.#idle.at(-1); last?.isLost; last = this.#idle.at(-1)) this.#idle.pop();
    return this.#idle.length > 0;
  }

  /** Lends the connection used last, whose caches are warm. */
  take(): Connection {
    const connection = this.hasIdle ? this.#idle.pop() : undefined;
    if (connection === undefined) throw new Error("No connection is idle.");
    this.#busy.add(connection);
    return connection;
  }

  give(connection: Connection): void {
    this.#busy.delete(connection);
    if (!connection.isLost) this.#idle.push(connection);
    this.#notice();
  }

  /** Opens more connections, up to `wanted` at a time and the pool's size. */
  grow(wanted: number): void {
    if (this.#pausing || this.#isClosed) return;
    const idle = this.#idle.filter((connection) => !connection.isLost);
    const living = idle.length + this.#busy.size;
    const room = this.#size - living - this.#opening;
    const missing = Math.min(wanted - this.#opening, room);
    for (let opened = 0; opened < missing; opened += 1) void this.#add();
  }

  /** Takes in a connection opened elsewhere. */
  adopt(connection: Connection): void {
    this.#idle.push(connection);
  }

  /** Calls off connections on their way, waits for those that are lent, and says goodbye to all. */
  async close(): Promise<void> {
    this.#closing.abort();
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve;
      this.#notice();
    });
    await Promise.all(this.#idle.splice(0).map((each) => each.end()));
  }

  /** Cuts the connections that are lent. */
  cut(): void {
    for (const connection of this.#busy) connection.discard();
  }

  get #isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  #notice(): void {
    if (this.#busy.size === 0 && this.#opening === 0) this.#onQuiet?.();
  }

  async #add(): Promise<void> {
    this.#forgetOldFailures();
    this.#opening += 1;
    try {
      const connection = await this.#open(this.#closing.signal);
      this.#downSinceMs = undefined;
      this.#failures = 0;
      if (this.#isClosed) return await connection.end();
      this.#idle.push(connection);
    } catch (error) {
      if (this.#isClosed) return;
      this.#lastFailureMs = monotonicMs();
      // With others at work it is the server's limit, not the server.
      if (this.#busy.size === 0 && !this.hasIdle) this.#down(error as HoldfastError);
      return this.#retryLater();
    } finally {
      this.#opening -= 1;
      this.#notice();
    }
    this.#events.onRoom();
  }

  /** An outage whose callers gave up says nothing about the next one. */
  #forgetOldFailures(): void {
    if (monotonicMs() - this.#lastFailureMs <= forgetMs) return;
    this.#downSinceMs = undefined;
    this.#failures = 0;
  }

  #down(error: HoldfastError): void {
    this.#downSinceMs ??= monotonicMs();
    if (!error.retryable || monotonicMs() - this.#downSinceMs >= downMsMax)
      this.#events.onDown(error);
  }

  #retryLater(): void {
    if (this.#pausing) return;
    this.#pausing = true;
    const pauseMs = Math.min(retryMsMin * 2 ** this.#failures, retryMsMax);
    this.#failures += 1;
    void sleep(pauseMs, this.#closing.signal).then(
      () => {
        this.#pausing = false;
        this.#events.onRoom();
      },
      () => undefined,
    );
  }
}
