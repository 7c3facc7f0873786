import { isLive, isSameLease, leaseLost, lossOf } from "../../model/lease.ts";
import type { LeaseFence } from "../../model/lease.ts";
import { announce } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { SessionRoot } from "../session/session-row.ts";
import { clearLease, leaseState } from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";

/**
 * Lets only the holder of a session's lease pass. The session is locked, so
 * that the answer holds until the transaction ends.
 *
 * @throws HoldfastError `LEASE_LOST`; `details.reason` says how.
 */
export function* assertFence(
  session: SessionRoot,
  fence: LeaseFence | undefined,
  now: number,
): Tx<void> {
  const loss = lossOf(yield* leaseState(session), fence, now);
  if (loss !== undefined) throw leaseLost(session.id, loss);
}

/**
 * Gives a lease back. Silent when somebody else has it by now, or nobody; an
 * own one that has run out is given back too.
 */
export function* releaseLease(
  session: SessionRoot,
  fence: LeaseFence,
): Tx<boolean> {
  const state = yield* leaseState(session);
  if (state.kind === "free" || !isSameLease(state.lease, fence)) return false;
  yield* clearLease(session.key);
  yield* announce(leaseChanged, session.id);
  return true;
}

/** The fence of a session's lease while somebody holds it; 0, which no lease has, while nobody does. */
export function* liveFence(session: SessionRoot, now: number): Tx<number> {
  const state = yield* leaseState(session);
  return state.kind === "held" && isLive(state.lease, now)
    ? state.lease.fence
    : 0;
}
