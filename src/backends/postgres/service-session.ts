import type { Connection, ConnectionEvents } from "./connection.ts";

/**
 * The connection beside the pool: it carries notifications in both
 * directions, the poll and the server's time, so that none of them waits
 * behind calls. Opened when first needed, and again after a loss.
 */
export class ServiceSession {
  readonly #open: (events: ConnectionEvents) => Promise<Connection>;
  readonly #events: ConnectionEvents;
  #connection: Connection | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #closed = false;

  constructor(
    open: (events: ConnectionEvents) => Promise<Connection>,
    events: ConnectionEvents,
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

  async close(): Promise<void> {
    this.#closed = true;
    await this.#tail;
    await this.#connection?.end();
  }

  async #ready(): Promise<Connection> {
    if (this.#closed) throw new Error("The session is closed.");
    if (this.#connection === undefined || this.#connection.isLost)
      this.#connection = await this.#open(this.#events);
    return this.#connection;
  }
}
