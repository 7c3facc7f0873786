import { doze, keepAlive } from "../../host/timers.ts";
import type { Change } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isLoss } from "./failures.ts";
import { payloadsOf } from "./payloads.ts";
import type { Told } from "./payloads.ts";
import type { ServiceSession } from "./service-session.ts";
import type { BeforeCommit } from "./transaction.ts";

/** The limit of unannounced commits. Above it, the older half is left to the others' poll. */
const pendingMax = 10_000;
const retryMsMin = 250;
/**
 * An unreachable server comes back soon; a server that refuses NOTIFY rarely starts to accept it.
 */
const retryMsMax = { away: 2_000, refused: 60_000 };
/** Commits whose announcement failed this often are left to the others' poll. */
const attemptsMax = 8;

/**
 * Announces our commits to other processes right after them. Commits made while one notification is
 * in progress go into the next. A NOTIFY inside the transaction would hold a server-wide lock
 * across its flush, so that commits go one by one. With flushes of 2 ms that gave 418 instead of
 * 2,617 commits a second from 200 callers, and more connections did not help.
 *
 * If the process dies in between, the others' poll (listener.ts) finds its last changes. A process
 * that ends by itself announces them first, if the server is reachable.
 */
export class Announcer {
  readonly #session: ServiceSession;
  readonly #channel: string;
  readonly #instance: string;
  /** Receives the id of the transaction that carried notifications, which is a transaction too. */
  readonly #onAnnounced: (tx: number) => void;
  #pending: Told[] = [];
  /** Failed attempts since the last success. */
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

  /** Announces the remaining commits, unless the server is away. */
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
        const why = isLoss(error) ? "away" : "refused";
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

/** The alternative: notifies as part of the transaction, if it wrote anything. */
export function notifyInside(channel: string, instance: string): BeforeCommit {
  return async (connection, changes) => {
    await connection.query(sql`
      SELECT pg_notify(${channel}, '{"by":' || pg_current_xact_id_if_assigned()::text || payload)
      FROM unnest(${payloadsOf(instance, [{ tx: 0, changes }])}::text[]) AS given(payload)
      WHERE pg_current_xact_id_if_assigned() IS NOT NULL`);
  };
}
