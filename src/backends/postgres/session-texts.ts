import type { Isolation } from "../../sql/isolation.ts";
import type { Settings } from "./options.ts";

/** What a session is told, composed once from checked settings. */
export interface SessionTexts {
  /** Said once, when the connection is made. */
  readonly hello: string;
  /** Said next; a server that does not understand it is fine too. */
  readonly wish: string | undefined;
  readonly begin: {
    readonly read: string;
    readonly write: string;
    readonly set: string;
  };
  /** How a transaction of a user begins, by how often a lock has made it run again. */
  readonly beginForUser: Readonly<Record<Isolation, readonly string[]>>;
}

/**
 * How long a statement waits for a lock before its connection is given to
 * somebody else; the call itself is tried again until its budget is spent.
 * More than the second after which Postgres looks for deadlocks.
 */
export const lockMsMax = 2_000;

/**
 * Bodies of users take their locks in any order, so two may wait for each
 * other. The server would look for that only after a second, with one row
 * locked all the while; so they wait a little at first, let everything go, and
 * are run again with twice the patience. A constant short wait would starve
 * those who stand behind a longer transaction.
 */
const userLockMs = [40, 80, 160, 320, 640, 1_280, lockMsMax] as const;

/** A set holds up all its calls, so it gives up early and they go on alone. */
const setLockMsMax = 250;

/**
 * A process that was stopped, or a host that lost power, would otherwise hold
 * its row locks until the server's TCP gives up: two hours by default. Bodies
 * cannot await, so a healthy transaction is never idle for long.
 */
const idleMsMax = 60_000;

/**
 * While it runs a statement a server does not look whether its client is
 * still there: a killed process would keep its locks until the statement
 * ends. Postgres 14 and up can look every second, except on Windows.
 */
const wish = "SELECT set_config('client_connection_check_interval', '1000', false)";

export function sessionTexts(
  settings: Pick<Settings, "schema" | "durability" | "prepare">,
): SessionTexts {
  const write = "BEGIN ISOLATION LEVEL READ COMMITTED";
  const read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
  const serializable = "BEGIN ISOLATION LEVEL SERIALIZABLE";
  const set = lockTimeout(setLockMsMax);
  // A pooler gives every transaction another session, so there the settings
  // come with each; elsewhere that costs a sixth of the throughput.
  const perSession = settings.prepare ? configuration(settings, false) : "";
  const perTransaction = settings.prepare ? "" : `; ${configuration(settings, true)}`;
  return {
    hello: perSession === "" ? "SELECT 1" : perSession,
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
    // The app's, except that by default it begins with a schema that is called
    // like the user: if that is ours, the app's tables would go there.
    search_path: `CASE current_user WHEN '${schema}' THEN replace(current_setting('search_path'), '"$user", ', '') ELSE current_setting('search_path') END`,
    lock_timeout: `'${lockMsMax}'`,
    idle_in_transaction_session_timeout: `'${idleMsMax}'`,
    bytea_output: "'hex'",
    // `full` keeps whatever the server waits for, unless that is nothing.
    synchronous_commit:
      durability === "normal"
        ? "'off'"
        : "COALESCE(NULLIF(current_setting('synchronous_commit'), 'off'), 'on')",
  };
  const calls = Object.entries(wanted).map(
    ([name, value]) => `set_config('${name}', ${value}, ${local})`,
  );
  return `SELECT ${calls.join(", ")}`;
}
