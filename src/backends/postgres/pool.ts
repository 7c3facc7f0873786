import { monotonicMs, sleep } from "../../host/timers.ts";
import { HoldfastError } from "../../model/errors.ts";
import type { Connection } from "./connection.ts";

/** The longest wait for an unreachable server before callers get an error. */
const downMsMax = 15_000;
const retryMsMin = 50;
const retryMsMax = 1_000;
/**
 * After this time without a failed attempt no call was waiting, since waiting calls retry sooner.
 */
const forgetMs = 2 * retryMsMax;

export interface PoolEvents {
  /** Called when a connection can be taken. */
  readonly onRoom: () => void;
  /** Called when no connection is available and waiting longer is pointless. */
  readonly onDown: (error: HoldfastError) => void;
}

/**
 * The connections for calls: opened when there is work, kept while they live. While the server is
 * unreachable, calls simply wait, because a restart takes seconds. After a while they fail.
 */
export class Pool {
  readonly #open: (signal: AbortSignal) => Promise<Connection>;
  readonly #size: number;
  readonly #events: PoolEvents;
  readonly #idle: Connection[] = [];
  readonly #busy = new Set<Connection>();
  /**
   * Connections ended for their silence. They keep their places until the server drops them, so
   * that repeats do not fill the server.
   */
  readonly #leaving = new Set<Connection>();
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

  /** Lends the most recently used connection, whose caches are warm. */
  take(): Connection {
    const connection = this.hasIdle ? this.#idle.pop() : undefined;
    if (connection === undefined) throw new Error("No connection is idle.");
    this.#busy.add(connection);
    return connection;
  }

  give(connection: Connection): void {
    this.#busy.delete(connection);
    if (!connection.isLost) this.#idle.push(connection);
    else if (connection.departure !== undefined) this.#endSilent(connection);
    this.#notice();
  }

  /** Opens more connections, up to `wanted` at a time and the pool's size. */
  grow(wanted: number): void {
    if (this.#pausing || this.#isClosed) return;
    const idle = this.#idle.filter((connection) => !connection.isLost);
    const taken = idle.length + this.#busy.size + this.#leaving.size + this.#opening;
    const room = this.#size - taken;
    if (room <= 0 && this.#leaving.size > 0 && idle.length + this.#busy.size === 0)
      return this.#waitForPlace();
    // While the server is unreachable only one attempt is made: each attempt that logs in and hears
    // nothing more leaves a session there.
    const missing = Math.min(wanted - this.#opening, this.#failures > 0 ? 1 - this.#opening : room);
    for (let opened = 0; opened < missing; opened += 1) void this.#add();
  }

  /** Adds a connection opened elsewhere. */
  adopt(connection: Connection): void {
    this.#idle.push(connection);
  }

  /** Cancels connections being opened, waits for lent ones, and says goodbye to all. */
  async close(): Promise<void> {
    this.#closing.abort();
    await new Promise<void>((resolve) => {
      this.#onQuiet = resolve;
      this.#notice();
    });
    await Promise.all(this.#idle.splice(0).map((each) => each.end()));
  }

  /** Cuts the lent connections. */
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
      // While other connections work, the limit is the server's, and the server is up.
      if (this.#busy.size === 0 && !this.hasIdle) this.#down(error as HoldfastError);
      return this.#retryLater();
    } finally {
      this.#opening -= 1;
      this.#notice();
    }
    this.#events.onRoom();
  }

  /**
   * Ends silent idle connections. The cause that silences one mostly silences those beside it, and
   * each would cost a call the time limit.
   */
  #endSilent(silent: Connection): void {
    const suspects = this.#idle.filter((each) => !each.isLost && !each.hasAnsweredSince(silent));
    for (const suspect of suspects) suspect.abandon();
    for (const each of [silent, ...suspects]) this.#keepPlace(each);
  }

  #keepPlace(connection: Connection): void {
    this.#leaving.add(connection);
    void connection.departure?.then(() => {
      this.#leaving.delete(connection);
      this.#events.onRoom();
    });
  }

  #waitForPlace(): void {
    this.#forgetOldFailures();
    this.#lastFailureMs = monotonicMs();
    this.#down(allSilent());
    this.#retryLater();
  }

  /** Resets old failures. An outage whose callers gave up says nothing about the next one. */
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

function allSilent(): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    "All connections to the server have fallen silent, and it may still hold their sessions. Retry later.",
    { reason: "no answer" },
  );
}
