import type { Connection, ConnectionEvents } from "./connection.ts";

export interface ServiceSessionEvents extends ConnectionEvents {
  /** What to say first on every new connection; a server that refuses it is fine too. */
  readonly onOpened?: (connection: Connection) => Promise<void>;
}

/**
 * The connection beside the pool: it carries notifications in both
 * directions, the poll and the server's time, so that none of them waits
 * behind calls. Opened when first needed, and again after a loss.
 */
export class ServiceSession {
  readonly #open: (events: ConnectionEvents, signal: AbortSignal) => Promise<Connection>;
  readonly #events: ServiceSessionEvents;
  readonly #discarded = new AbortController();
  #connection: Connection | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    open: (events: ConnectionEvents, signal: AbortSignal) => Promise<Connection>,
    events: ServiceSessionEvents,
  ) {
    this.#open = open;
    this.#events = events;
  }

  /** Runs `work` once the connection is there and what was asked before is done. */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const result = this.#tail.then(async () => work(await this.#ready()));
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Says goodbye once what was asked before is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#tail;
    await this.#connection?.end();
  }

  /** Lets go at once: on a silent network what was asked before is never done. */
  discard(): void {
    this.#closed = true;
    this.#discarded.abort();
    this.#connection?.discard();
  }

  async #ready(): Promise<Connection> {
    if (this.#closed) throw new Error("The session is closed.");
    if (this.#connection?.isLost === false) return this.#connection;
    const { signal } = this.#discarded;
    const connection = await this.#open(this.#events, signal);
    this.#connection = connection;
    if (signal.aborted) connection.discard();
    await this.#events.onOpened?.(connection).catch(() => undefined);
    return connection;
  }
}
