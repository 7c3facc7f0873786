import { instantOf } from "../../model/clock.ts";
import {
  isLive,
  isSameLease,
  leaseLost,
  lossOf,
  type LeaseFence,
} from "../../model/lease.ts";
import {
  afterwards,
  announce,
  plainOperation,
  type Operation,
  type Tx,
} from "../../sql/operation.ts";
import type { StoreContext } from "../context.ts";
import {
  lockedSession,
  type SessionRef,
  type SessionRoot,
} from "../session/session-row.ts";
import { tellGivenBack } from "./given-back.ts";
import { clearLease, expireLease, leaseState } from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";

/** What operations on leases need besides their input. */
export type LeaseContext = Pick<StoreContext, "database" | "clock">;

/**
 * Lets only the holder of a session's lease pass, and answers the instant by
 * which it was judged. The session is locked, so that the answer holds until
 * the transaction ends.
 *
 * A lease that has run out is recorded as over once the call has rolled back,
 * and before its caller learns of it: without a record a clock that is set
 * back would let the same lease pass later.
 *
 * @throws HoldfastError `LEASE_LOST`; `details.reason` says how.
 */
export function* assertFence(
  { database, clock }: LeaseContext,
  session: SessionRoot,
  fence: LeaseFence | undefined,
): Tx<number> {
  const state = yield* leaseState(session);
  const at = instantOf(() => clock.now());
  const loss = lossOf(state, fence, at);
  if (loss === undefined) return at;
  const { id, generation } = session;
  if (loss === "expired") {
    const judged = { session: { id, generation }, fence, at };
    yield* afterwards({
      refused: () => database.write(endExpiredLease, judged),
    });
  }
  throw leaseLost(id, loss);
}

/** The same at an instant that is known, for a caller that records the end itself: see `endingExpired`. */
export function* assertFenceAt(
  session: SessionRoot,
  fence: LeaseFence | undefined,
  now: number,
): Tx<void> {
  const loss = lossOf(yield* leaseState(session), fence, now);
  if (loss !== undefined) throw leaseLost(session.id, loss);
}

/** A lease as it was judged. */
export interface JudgedLease {
  readonly session: SessionRef;
  readonly fence: LeaseFence | undefined;
  /** When it was found to have run out. */
  readonly at: number;
}

/** Records that a lease had run out at an instant; false when it had not, or another holder has it. */
export const endExpiredLease: Operation<JudgedLease, boolean> = plainOperation(
  "endExpiredLease",
  {
    key: (input: JudgedLease) => input.session.id,
    *one({ session: ref, fence, at }) {
      const session = yield* lockedSession(ref);
      const state = yield* leaseState(session);
      if (state.kind === "free" || lossOf(state, fence, at) !== "expired")
        return false;
      yield* expireLease(session.key, at);
      yield* announce(leaseChanged, session.id);
      return true;
    },
  },
);

/**
 * Releases a lease, and tells its keepers once that is durable. Silent when
 * another holder has it by now, or none; an own one that has run out is
 * released too.
 */
export function* releaseLease(
  { database }: Pick<LeaseContext, "database">,
  session: SessionRoot,
  fence: LeaseFence,
): Tx<boolean> {
  const isReleased = yield* endLease(session, fence);
  if (isReleased)
    yield* afterwards({ durable: () => tellGivenBack(database, fence) });
  return isReleased;
}

/** The same for a caller that tells the keepers itself. */
export function* endLease(
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
