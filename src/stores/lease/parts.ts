import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import {
  isFence,
  isLive,
  leaseLost,
  type LeaseFence,
  type LeaseHolder,
  type ProvenDeath,
} from "../../model/lease.ts";
import type { SessionId } from "../../model/session-id.ts";
import { isRecord } from "../../model/spoken-kind.ts";
import type { Database } from "../../sql/database.ts";
import type { Tx } from "../../sql/operation.ts";
import { sessionNamed } from "../session/session-name.ts";
import {
  livingSession,
  lockedSession,
  type SessionRef,
  type SessionRoot,
} from "../session/session-row.ts";
import { assertHeld, releaseHeld } from "./ends.ts";
import {
  leaseOperations,
  type LeaseContext,
  type LeaseOperations,
} from "./kind.ts";
import {
  clearLease,
  expireLease,
  leaseState,
  writeLease,
} from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";

/** The lease of a session. */
export interface Lease extends LeaseFence {
  readonly session: { readonly id: SessionId; readonly generation: number };
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** The leases of sessions. */
export const sessionLeases: LeaseOperations<SessionRef, SessionRoot, Lease> =
  leaseOperations({
    noun: "Lease",
    topic: leaseChanged,
    named: (id) => `session "${id}"`,
    idOf: ({ id }) => id,
    refOf: ({ id, generation }) => ({ id, generation }),
    lock: lockedSession,
    find: livingSession,
    isGone: (error) =>
      isHoldfastError(error) &&
      (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED"),
    assertLeasable: () => undefined,
    isShared: true,
    announcesHolders: false,
    rows: {
      read: leaseState,
      write: writeLease,
      clear: clearLease,
      expire: expireLease,
    },
    leaseOf: (
      { id, generation },
      { owner, incarnation, token, fence, claimedAt, expiresAt },
    ) => ({
      session: { id, generation },
      owner,
      incarnation,
      token,
      fence,
      claimedAt,
      expiresAt,
    }),
    lost: (id, reason, options) => leaseLost(id as SessionId, reason, options),
  });

/**
 * Lets only the holder of a session's lease pass, and answers the instant by
 * which it was judged. The session is locked, so that the answer holds until
 * the transaction ends. A lease that has run out is recorded as over once the
 * call has rolled back, and before its caller learns of it.
 *
 * @throws HoldfastError `LEASE_LOST`; `details.reason` says how.
 */
export function* assertFence(
  context: LeaseContext,
  session: SessionRoot,
  fence: LeaseFence | undefined,
): Tx<number> {
  return (yield* assertHeld(sessionLeases, context, session, fence)).at;
}

/**
 * Releases the lease of a locked session, and tells its keepers once that is
 * durable. Silent when another holder has it by now, or none; an own one that
 * has run out is released too.
 */
export function releaseLease(
  context: Pick<LeaseContext, "database">,
  session: SessionRoot,
  fence: LeaseFence,
): Tx<boolean> {
  return releaseHeld(sessionLeases.kind, context, session, fence);
}

/** The fence of a session's lease while it is held; 0, which no lease has, while it is not. */
export function* liveFence(session: SessionRoot, now: number): Tx<number> {
  const state = yield* leaseState(session);
  return state.kind === "held" && isLive(state.lease, now)
    ? state.lease.fence
    : 0;
}

export type SeenHolder = Pick<LeaseHolder, "process" | "fence">;

/** Whether a holder that was seen has died since, and what proves it to the operation that decides. */
export async function provenDeath(
  database: Database,
  { process, fence }: SeenHolder,
): Promise<ProvenDeath | undefined> {
  if (process === null) return undefined;
  const isDead = (await database.liveness(process)) === "dead";
  return isDead ? { process, fence } : undefined;
}

/**
 * A lease as a caller shows it: all its parts are there. Whether it counts is
 * for the database to say. Nothing of it is repeated in the error.
 *
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function givenLease(given: Lease): {
  readonly of: SessionRef;
  readonly fence: LeaseFence;
} {
  if (isFence(given) && isRecord((given as Partial<Lease>).session)) {
    const { owner, incarnation, token, fence, session } = given;
    const shown = { owner, incarnation, token, fence };
    return { of: sessionNamed(session), fence: shown };
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a lease as acquire, waitForLease and renew return it, with its session, owner, incarnation, token and fence. Pass that object as it is.",
    { option: "lease" },
  );
}
