import { HoldfastError } from "../../model/errors.ts";
import {
  holderOf,
  isLive,
  isUnrecordedEnd,
  type HeldLease,
  type LeaseHolder,
  type LeaseState,
} from "../../model/lease.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { row, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { OwnedRows } from "../removal.ts";
import type { SessionRoot } from "../session-row.ts";

/**
 * The row of a lease. A free lease keeps its row for the fence. `renewed_at` is the latest instant
 * at which the holder renewed, or at which the lease was found expired. Earlier readings of a clock
 * that was set back are not believed. `given_back` has a bit for each of the last 31 leases that is
 * set when it was released. A late keeper can therefore tell a release from a loss.
 */

/** The columns of a lease of either kind. */
export interface LeaseRow {
  readonly fence: number;
  readonly given_back: number;
  readonly owner: string | null;
  readonly incarnation: string | null;
  readonly process: OwnerId | null;
  readonly token: string | null;
  readonly claimed_at: number | null;
  readonly renewed_at: number | null;
  readonly expires_at: number | null;
}

/** Decodes a lease row; undefined when it has a token but lacks other parts. */
export function leaseStateOf(found: LeaseRow): LeaseState | undefined {
  const { fence, given_back: givenBack, token } = found;
  if (token === null) return { kind: "free", fence, givenBack };
  const { owner, incarnation, process } = found;
  const { claimed_at: claimedAt, renewed_at: renewedAt, expires_at: expiresAt } = found;
  if (
    owner === null ||
    incarnation === null ||
    claimedAt === null ||
    renewedAt === null ||
    expiresAt === null
  )
    return undefined;
  return {
    kind: "held",
    lease: {
      fence,
      givenBack,
      token,
      owner,
      incarnation,
      process,
      claimedAt,
      renewedAt,
      expiresAt,
    },
  };
}

/** Decodes a lease row, and refuses an inconsistent one. @throws HoldfastError `CORRUPT_ROW` */
export function soundLeaseState(table: string, key: string, found: LeaseRow): LeaseState {
  const state = leaseStateOf(found);
  if (state !== undefined) return state;
  throw new HoldfastError(
    "CORRUPT_ROW",
    `A row of ${table} (${key}) has a token but lacks other parts, which no operation of Holdfast writes. ` +
      "Look at the row with a database shell; setting its token to NULL frees the lease.",
    { table, key },
  );
}

/** The reading of a lease. */
export interface LeaseReading {
  readonly holder: LeaseHolder | undefined;
  /** True when the lease has expired and no row records it yet. */
  readonly isUnrecordedEnd: boolean;
}

/** Reads a stored lease as of an instant. */
export function readingOf(state: LeaseState, now: number): LeaseReading {
  if (state.kind === "free") return { holder: undefined, isUnrecordedEnd: false };
  const { lease } = state;
  return {
    holder: isLive(lease, now) ? holderOf(lease) : undefined,
    isUnrecordedEnd: isUnrecordedEnd(lease, now),
  };
}

/** The lease state of a session. A call that changes it has locked the session before. */
export function* leaseState(session: SessionRoot): Tx<LeaseState> {
  const found = yield* row<LeaseRow>(sql`
    SELECT fence, given_back, owner, incarnation, process, token, claimed_at, renewed_at, expires_at
    FROM holdfast_session_lease WHERE session = ${session.key}`);
  return found === undefined
    ? {
        kind: "free",
        fence: yield* fenceOfEarlierGenerations(session),
        givenBack: 0,
      }
    : soundLeaseState("holdfast_session_lease", String(session.key), found);
}

/** The last fence of earlier generations. A session that is created again continues from it. */
function* fenceOfEarlierGenerations({ id }: SessionRoot): Tx<number> {
  const found = yield* row<{ readonly fence: number | null }>(sql`
    SELECT max(l.fence) AS fence FROM holdfast_session s JOIN holdfast_session_lease l ON l.session = s.key
    WHERE s.id = ${id}`);
  return found?.fence ?? 0;
}

export function* writeLease(session: SessionRoot, lease: HeldLease): Tx<void> {
  const { fence, givenBack, owner, incarnation, process, token } = lease;
  const { claimedAt, renewedAt, expiresAt } = lease;
  yield* run(sql`
    INSERT INTO holdfast_session_lease
      (session, fence, given_back, owner, incarnation, process, token, claimed_at, renewed_at, expires_at)
    VALUES (${session.key}, ${fence}, ${givenBack}, ${owner}, ${incarnation}, ${process}, ${token},
      ${claimedAt}, ${renewedAt}, ${expiresAt})
    ON CONFLICT (session) DO UPDATE SET
      fence = excluded.fence, given_back = excluded.given_back, owner = excluded.owner, incarnation = excluded.incarnation,
      process = excluded.process, token = excluded.token, claimed_at = excluded.claimed_at,
      renewed_at = excluded.renewed_at, expires_at = excluded.expires_at`);
}

/** Stores the fence of a lease that was held in another database. */
export function* beginFenceAfter(sessionKey: number, fence: number): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_session_lease (session, fence, given_back) VALUES (${sessionKey}, ${fence}, 0)`);
}

/** Clears everything of a lease except its fence and the ends of earlier leases. */
export function* clearLease(sessionKey: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_session_lease SET owner = NULL, incarnation = NULL, process = NULL, token = NULL,
      claimed_at = NULL, renewed_at = NULL, expires_at = NULL
    WHERE session = ${sessionKey} AND token IS NOT NULL`);
}

/**
 * Records the instant at which a lease was found expired. From then on it has ended, even for a
 * clock that is set back.
 */
export function* expireLease(sessionKey: number, at: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_session_lease SET renewed_at = ${at}
    WHERE session = ${sessionKey} AND token IS NOT NULL AND renewed_at < ${at} AND expires_at <= ${at}`);
}

/** The lease row of a removed session. The fence stays, so no fence is ever issued twice. */
export const leaseOwned: readonly OwnedRows[] = [
  { table: "holdfast_session_lease", remove: (session) => clearLease(session) },
];
