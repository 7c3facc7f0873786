import { doze, keepAlive } from "../../host/timers.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { Change } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { payloadsOf } from "./payloads.ts";
import type { Told } from "./payloads.ts";
import type { ServiceSession } from "./service-session.ts";
import type { BeforeCommit } from "./transaction.ts";

/** When this many commits wait to be told, the older half is left to the others' poll. */
const pendingMax = 10_000;
const retryMsMin = 250;
/** A server that is away comes back; one that refuses to notify hardly changes its mind. */
const retryMsMax = { away: 2_000, refused: 60_000 };
/** What could not be told as often as this is left to the others' poll. */
const attemptsMax = 8;

/**
 * Tells other processes of our commits, right after them: what is committed
 * while one notification is on its way goes into the next. A NOTIFY inside
 * the transaction would hold a lock of the whole server across its flush, so
 * that commits go one by one: with flushes of 2 ms 418 instead of 2,617
 * commits a second from 200 callers, and no more with more connections.
 *
 * If the process dies in between, its last changes are found by the others'
 * poll (listener.ts). One that ends by itself tells them first, if the server
 * can be told.
 */
export class Announcer {
  readonly #session: ServiceSession;
  readonly #channel: string;
  readonly #instance: string;
  /** Told the transaction that carried notifications: it is one too. */
  readonly #onAnnounced: (tx: number) => void;
  #pending: Told[] = [];
  /** Failed attempts since the last that succeeded. */
  #failures = 0;
  #working: Promise<void> | undefined;
  readonly #closing = new AbortController();

  constructor(
    session: ServiceSession,
    channel: string,
    instance: string,
    onAnnounced: (tx: number) => void,
  ) {
    this.#session = session;
    this.#channel = channel;
    this.#instance = instance;
    this.#onAnnounced = onAnnounced;
  }

  tell(tx: number, changes: readonly Change[]): void {
    this.#pending.push({ tx, changes });
    if (this.#pending.length > pendingMax) this.#pending = this.#pending.slice(pendingMax / 2);
    this.#working ??= this.#work();
  }

  /** Tells what is left, unless the server is away. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { signal } = this.#closing;
    while (this.#pending.length > 0) {
      const told = this.#pending;
      this.#pending = [];
      try {
        await this.#announce(payloadsOf(this.#instance, told));
        this.#failures = 0;
      } catch (error) {
        this.#failures += 1;
        if (signal.aborted) break;
        const why = isAway(error) ? "away" : "refused";
        if (why === "away" && this.#failures < attemptsMax)
          this.#pending = [...told, ...this.#pending];
        const pauseMs = retryMsMin * 2 ** this.#failures;
        const longestMs = retryMsMax[why];
        await doze(Math.min(pauseMs, longestMs), signal);
        if (signal.aborted) break;
      }
    }
    this.#working = undefined;
  }

  async #announce(payloads: readonly string[]): Promise<void> {
    const release = keepAlive();
    const announced = this.#session.use((connection) =>
      connection.query(sql`
        SELECT pg_current_xact_id() AS by,
          pg_notify(${this.#channel}, '{"by":' || pg_current_xact_id()::text || payload)
        FROM unnest(${payloads}::text[]) AS given(payload)`),
    );
    const { rows } = await announced.finally(release);
    const [sent] = rows as readonly { readonly by: number }[];
    if (sent !== undefined) this.#onAnnounced(sent.by);
  }
}

function isAway(error: unknown): boolean {
  return (
    isHoldfastError(error) &&
    (error.code === "CONNECTION_LOST" || error.code === "DATABASE_UNREACHABLE")
  );
}

/** The other way: notifies as part of the transaction, if that wrote anything. */
export function notifyInside(channel: string, instance: string): BeforeCommit {
  return async (connection, changes) => {
    await connection.query(sql`
      SELECT pg_notify(${channel}, '{"by":' || pg_current_xact_id_if_assigned()::text || payload)
      FROM unnest(${payloadsOf(instance, [{ tx: 0, changes }])}::text[]) AS given(payload)
      WHERE pg_current_xact_id_if_assigned() IS NOT NULL`);
  };
}
