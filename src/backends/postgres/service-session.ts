import type { Connection, ConnectionEvents } from "./connection.ts";

export interface ServiceSessionEvents extends ConnectionEvents {
  /** Runs first on every new connection. A server may refuse it. */
  readonly onOpened?: (connection: Connection) => Promise<void>;
}

/**
 * The connection beside the pool. It carries notifications in both directions, the poll and the
 * server's time, so that none of them waits behind calls. It is opened when first needed, and again
 * after a loss.
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

  /** Runs `work` once the connection exists and earlier work is done. */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const result = this.#tail.then(async () => work(await this.#ready()));
    this.#tail = result.catch(() => undefined);
    return result;
  }

  /** Says goodbye once earlier work is done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#tail;
    await this.#connection?.end();
  }

  /** Closes at once, because on a silent network earlier work never finishes. */
  discard(): void {
    this.#closed = true;
    this.#discarded.abort();
    this.#connection?.discard();
  }

  async #ready(): Promise<Connection> {
    if (this.#closed) throw new Error("The session is closed.");
    if (this.#connection?.isLost === false) return this.#connection;
    const { signal } = this.#discarded;
    await orAborted(this.#connection?.departure, signal);
    const connection = await this.#open(this.#events, signal);
    this.#connection = connection;
    if (signal.aborted) connection.discard();
    await this.#events.onOpened?.(connection).catch(() => undefined);
    return connection;
  }
}

async function orAborted(departure: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (departure === undefined || signal.aborted) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
    void departure.then(resolve);
  });
}
