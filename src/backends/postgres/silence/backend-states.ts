/** A session as the server identifies it: process ids are reused, with another start time. */
export interface Backend {
  readonly pid: number;
  /** Its start time, in the server's spelling. */
  readonly since: string;
}

export type BackendState =
  | { readonly kind: "working"; readonly waitsFor: string }
  /** It waits for its client: nothing arrives there, or nothing leaves. */
  | { readonly kind: "quiet" }
  | { readonly kind: "gone" }
  /** The server does not track the activity of sessions, or does not show it. */
  | { readonly kind: "hidden" };

const since = "COALESCE(extract(epoch FROM backend_start)::text, '')";

/** The columns by which a new session learns its identity on the server. */
export const identityColumns: string = `pg_backend_pid() AS pid,
  (SELECT ${since} FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS since`;

/**
 * The state of a backend. A statement that is sent in several messages counts as active from the
 * first on, and a session whose answers are not read stays active. Both wait for their client.
 */
const kind = `CASE
  WHEN state LIKE 'idle%' OR wait_event IN ('ClientRead', 'ClientWrite') THEN 'quiet'
  WHEN state IN ('active', 'fastpath function call') THEN 'working'
  ELSE 'hidden' END`;

export function statesText(backends: readonly Backend[]): string {
  return `SELECT pid, ${since} AS since, ${kind} AS kind,
    concat_ws(': ', wait_event_type, wait_event) AS "waitsFor"
    FROM pg_stat_activity WHERE ${areAmong(backends)}`;
}

/**
 * Ends backends that wait for their client. A working backend is not ended: if it were ended while
 * it waits for a standby, its transaction would be visible without one.
 */
export function terminateText(backends: readonly Backend[]): string {
  return `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE (${areAmong(backends)}) AND ${kind} = 'quiet'`;
}

function areAmong(backends: readonly Backend[]): string {
  return backends
    .map((each) => `(pid = ${each.pid} AND ${since} = '${each.since.replaceAll("'", "")}')`)
    .join(" OR ");
}
