import type { Isolation } from "../../sql/isolation.ts";
import type { Settings } from "./options.ts";
import { identityColumns } from "./silence/backend-states.ts";

/** The texts sent to a session, composed once from checked settings. */
export interface SessionTexts {
  /** True when the first text configures the session, false when each transaction does. */
  readonly configuresSession: boolean;
  /** Sent once, when the connection is made. */
  readonly hello: string;
  /** Sent next; a server may refuse it. */
  readonly wish: string | undefined;
  readonly begin: {
    readonly read: string;
    readonly write: string;
    readonly set: string;
  };
  /** The text that begins a user's transaction, by the number of its reruns because of locks. */
  readonly beginForUser: Readonly<Record<Isolation, readonly string[]>>;
}

/**
 * The longest wait of a statement for a lock before its connection is given to another call. The
 * call itself is retried until its budget is spent. Longer than the second after which Postgres
 * looks for deadlocks.
 */
export const lockMsMax = 2_000;

/**
 * The lock timeouts of users' transactions, by rerun. Their bodies lock in any order, so two may
 * wait for each other. The server would check for that only after a second, with one row locked all
 * the time. So they wait briefly at first, release everything, and rerun with twice the timeout. A
 * constant short timeout would starve calls that wait for a longer transaction.
 */
const userLockMs = [40, 80, 160, 320, 640, 1_280, lockMsMax] as const;

/** A set holds up all its calls, so it gives up early and its calls continue one by one. */
const setLockMsMax = 250;

/**
 * The longest idle time in a transaction. A stopped process, or a host that lost power, would
 * otherwise hold its row locks until the server's TCP gives up: two hours by default. Bodies cannot
 * await, so a healthy transaction is never idle for long.
 */
const idleMsMax = 60_000;

/**
 * Ends the session of a silent client within a minute, so that such sessions do not pile up. While
 * the server runs a statement, it does not check its client: a killed process would keep its locks
 * until the statement ends. Postgres 14 and later can check every second, except on Windows, which
 * refuses the second of these statements and keeps the first.
 */
const wish =
  "BEGIN; SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false), set_config('tcp_keepalives_count', '3', false); END; " +
  "SELECT set_config('client_connection_check_interval', '1000', false)";

export function sessionTexts(
  settings: Pick<Settings, "schema" | "durability"> & { readonly prepare: boolean },
): SessionTexts {
  const write = "BEGIN ISOLATION LEVEL READ COMMITTED";
  const read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  const serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
  const set = lockTimeout(setLockMsMax);
  // A pooler gives every transaction another session, so there the settings come with each
  // transaction. Elsewhere that would cost a sixth of the throughput.
  const perSession = settings.prepare ? configuration(settings, false) : "";
  const perTransaction = settings.prepare ? "" : `; SELECT ${configuration(settings, true)}`;
  return {
    configuresSession: settings.prepare,
    hello: `SELECT ${identityColumns}${perSession === "" ? "" : `, ${perSession}`}`,
    wish: settings.prepare ? wish : undefined,
    begin: {
      read: read + perTransaction,
      write: write + perTransaction,
      set: write + perTransaction + set,
    },
    beginForUser: {
      serializable: userLockMs.map((ms) => `${serializable}${perTransaction}${lockTimeout(ms)}`),
      readCommitted: userLockMs.map((ms) => `${write}${perTransaction}${lockTimeout(ms)}`),
    },
  };
}

function lockTimeout(ms: number): string {
  return `; SET LOCAL lock_timeout = ${ms}`;
}

function configuration(
  { schema, durability }: Pick<Settings, "schema" | "durability">,
  local: boolean,
): string {
  const wanted = {
    // The app's search path without "$user". By default it begins with a schema named like the
    // user: if that is ours, the app's tables would go there.
    search_path: `CASE current_user WHEN '${schema}' THEN replace(current_setting('search_path'), '"$user", ', '') ELSE current_setting('search_path') END`,
    lock_timeout: `'${lockMsMax}'`,
    idle_in_transaction_session_timeout: `'${idleMsMax}'`,
    bytea_output: "'hex'",
    // Transactions name theirs. A lone statement has the session's, which the app may have changed.
    default_transaction_isolation: "'read committed'",
    // `full` keeps the server's setting, unless that waits for nothing.
    synchronous_commit:
      durability === "normal"
        ? "'off'"
        : "COALESCE(NULLIF(current_setting('synchronous_commit'), 'off'), 'on')",
  };
  const calls = Object.entries(wanted).map(
    ([name, value]) => `set_config('${name}', ${value}, ${local})`,
  );
  return calls.join(", ");
}
