import { later, monotonicMs } from "../../host/timers.ts";
import { sql } from "../../sql/statement.ts";
import type { Meters } from "../meters.ts";
import type { Subscribers } from "../subscribers.ts";
import type { Connection } from "./connection.ts";
import type { Outages } from "./outages.ts";
import { heardIn } from "./payloads.ts";
import type { ServiceSession } from "./service-session.ts";
import { endedBetween, isOver, snapshotOf } from "./snapshot.ts";
import type { Snapshot } from "./snapshot.ts";

export interface ListenerOptions {
  readonly channel: string;
  readonly instance: string;
  readonly subscribers: Subscribers;
  readonly meters: Meters;
  readonly outages: Outages;
  readonly pollMs: number;
  /** True to LISTEN; otherwise the poll finds everything. */
  readonly listens: boolean;
}

const reconnectMsMax = 1_000;
/** The pause before a server that refused LISTEN is asked again. */
const deafMs = 60_000;
/** The longest delay of a notification before its transaction counts as unannounced. */
const graceMsMin = 100;
const toldMax = 100_000;

/**
 * Receives other processes' changes while there are subscribers. Notifications name them. A poll
 * finds the rest: commits of a database shell, of a process that died between COMMIT and NOTIFY, or
 * on a server without NOTIFY. It asks which transactions have ended since the last poll, and
 * reports unannounced commits as `unknown`. Transactions are counted for the whole server, so a
 * busy neighbour makes the poll cautious, not deaf.
 */
export class Listener {
  readonly #session: ServiceSession;
  readonly #options: ListenerOptions;
  /**
   * The connection that polls, and listens if it can. A new connection would have to LISTEN again.
   */
  #attached: Connection | undefined;
  /** The time to ask for LISTEN again; undefined while it works. */
  #relistenMs: number | undefined;
  #snapshot: Snapshot | undefined;
  /** Announced transactions that no snapshot has shown as ended yet. */
  readonly #told = new Set<number>();
  /**
   * Transactions that ended unannounced. A notification may still be on its way, so the next poll
   * decides.
   */
  #suspects: readonly number[] = [];
  #active = false;
  #ticking = false;
  #cancelTick: (() => void) | undefined;

  constructor(session: ServiceSession, options: ListenerOptions) {
    this.#session = session;
    this.#options = options;
  }

  start(): void {
    if (this.#active) return;
    this.#active = true;
    this.#tickIn(0);
  }

  stop(): void {
    this.#active = false;
    this.#cancelTick?.();
    this.#options.outages.stop();
    this.#told.clear();
    this.#suspects = [];
    const isListening = this.#options.listens && this.#attached && this.#relistenMs === undefined;
    this.#attached = undefined;
    if (isListening !== true) return;
    const silence = `UNLISTEN "${this.#options.channel}"`;
    this.#session.use((connection) => connection.command(silence)).catch(() => undefined);
  }

  /** Records a transaction of our own, which subscribers know. */
  committed(tx: number): void {
    if (this.#active) this.#remember(tx);
  }

  notified(payload: string): void {
    if (!this.#active) return;
    const { subscribers, instance } = this.#options;
    const heard = heardIn(payload);
    if (heard?.from === instance) return;
    for (const tx of heard?.transactions ?? []) this.#remember(tx);
    if (heard?.changes === undefined) subscribers.tellUnknown();
    else subscribers.tell(heard.changes);
  }

  connectionLost(): void {
    this.#attached = undefined;
    if (this.#active) this.#tickIn(0);
  }

  #remember(tx: number): void {
    // Not reached while the poll works, since the poll removes ended transactions.
    if (this.#told.size >= toldMax) this.#told.clear();
    this.#told.add(tx);
  }

  #tickIn(delayMs: number): void {
    this.#cancelTick?.();
    this.#cancelTick = later(delayMs, () => void this.#tick());
  }

  async #tick(): Promise<void> {
    const { pollMs, outages } = this.#options;
    outages.asked();
    if (this.#ticking) return;
    this.#ticking = true;
    await this.#session
      .use((connection) => this.#look(connection))
      .catch((error: unknown) => {
        this.#attached = undefined;
        outages.failed(error);
      });
    this.#ticking = false;
    if (!this.#active) return;
    if (this.#attached !== undefined) outages.answered();
    if (this.#attached === undefined) this.#tickIn(Math.min(pollMs, reconnectMsMax));
    else if (this.#suspects.length === 0) this.#tickIn(pollMs);
    else this.#tickIn(Math.max(pollMs / 4, graceMsMin));
  }

  async #look(connection: Connection): Promise<void> {
    if (!this.#active) return;
    const isNew = connection !== this.#attached;
    if (isNew || monotonicMs() >= (this.#relistenMs ?? Number.POSITIVE_INFINITY))
      await this.#listen(connection);
    if (isNew) {
      this.#advance(await currentSnapshot(connection));
      this.#suspects = [];
      this.#attached = connection;
      // Changes may have been missed while we did not listen.
      this.#options.subscribers.tellUnknown();
    } else if (await this.#missedSomething(connection)) {
      this.#options.meters.polls += 1;
      this.#options.subscribers.tellUnknown();
    }
  }

  /**
   * Listens if possible. Not every server of this protocol has LISTEN; the poll works without it.
   */
  async #listen(connection: Connection): Promise<void> {
    if (!this.#options.listens) return;
    try {
      await connection.command(`LISTEN "${this.#options.channel}"`);
      this.#relistenMs = undefined;
    } catch (error) {
      if (connection.isLost) throw error;
      this.#relistenMs = monotonicMs() + deafMs;
    }
  }

  async #missedSomething(connection: Connection): Promise<boolean> {
    const guilty = this.#suspects.filter((tx) => !this.#told.has(tx));
    const before = this.#snapshot;
    const after = await currentSnapshot(connection);
    const ended = before && endedBetween(before, after);
    this.#suspects = (ended ?? []).filter((tx) => !this.#told.has(tx));
    this.#advance(after);
    if (ended === undefined) return true;
    return guilty.length > 0 && (await anyCommitted(connection, guilty));
  }

  #advance(snapshot: Snapshot): void {
    const suspects = new Set(this.#suspects);
    for (const tx of this.#told)
      if (isOver(tx, snapshot) && !suspects.has(tx)) this.#told.delete(tx);
    this.#snapshot = snapshot;
  }
}

async function currentSnapshot(connection: Connection): Promise<Snapshot> {
  const { rows } = await connection.query(sql`SELECT pg_current_snapshot()::text AS token`);
  const [found] = rows as readonly { readonly token: string }[];
  return snapshotOf(found?.token ?? "");
}

async function anyCommitted(
  connection: Connection,
  transactions: readonly number[],
): Promise<boolean> {
  const { rows } = await connection.query(sql`
    SELECT 1 AS one FROM unnest(${transactions}::xid8[]) AS given(tx)
    WHERE pg_xact_status(tx) = 'committed' LIMIT 1`);
  return rows.length > 0;
}
