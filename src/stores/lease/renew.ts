import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { isHoldfastError } from "../../model/errors.ts";
import {
  extended,
  holderOf,
  isLive,
  isUnrecordedEnd,
  lossOf,
} from "../../model/lease.ts";
import type {
  LeaseFence,
  LeaseHolder,
  LeaseLoss,
  LeaseState,
} from "../../model/lease.ts";
import { announce, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { livingSession, lockedSession } from "../session/session-row.ts";
import type { SessionRef, SessionRoot } from "../session/session-row.ts";
import { leaseOf } from "./acquire.ts";
import type { Lease } from "./acquire.ts";
import { endLease } from "./parts.ts";
import { expireLease, leaseState, writeLease } from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";

export interface RenewLease {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
  readonly now: Now;
  readonly ttlMs: number;
}

export type Renewal =
  | { readonly kind: "renewed"; readonly lease: Lease }
  | { readonly kind: "lost"; readonly reason: LeaseLoss };

/**
 * Extends a lease, and keeps its token and fence. One that is found to have
 * run out is ended for good: its holder was told so, and a clock that is set
 * back must not keep others away in its name.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const renewLease: Operation<RenewLease, Renewal> = plainOperation(
  "renewLease",
  {
    key: (input: RenewLease) => input.session.id,
    *one({ session: ref, fence, now: tell, ttlMs }) {
      const session = yield* lockedSession(ref);
      const state = yield* leaseState(session);
      const now = instantOf(tell);
      const reason = lossOf(state, fence, now);
      if (reason === "expired") {
        yield* expireLease(session.key, now);
        yield* announce(leaseChanged, session.id);
      }
      if (reason !== undefined) return { kind: "lost", reason };
      if (state.kind === "free") return { kind: "lost", reason: "released" };
      const lease = extended(state.lease, now, ttlMs);
      yield* writeLease(session, lease);
      return { kind: "renewed", lease: leaseOf(session, lease) };
    },
  },
);

export interface ReleaseHeld {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
}

/** Gives a lease back; false, and no error, when it was no longer held or its session is gone. */
export const releaseHeldLease: Operation<ReleaseHeld, boolean> = plainOperation(
  "releaseHeldLease",
  {
    key: (input: ReleaseHeld) => input.session.id,
    *one({ session: ref, fence }) {
      const session = yield* sessionUnlessGone(ref);
      return session === undefined ? false : yield* endLease(session, fence);
    },
  },
);

function* sessionUnlessGone(ref: SessionRef): Tx<SessionRoot | undefined> {
  try {
    return yield* lockedSession(ref);
  } catch (error) {
    if (
      isHoldfastError(error) &&
      (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED")
    )
      return undefined;
    throw error;
  }
}

export interface ReadLease {
  readonly session: SessionRef;
  readonly now: number;
}

/** What a read makes of a lease. */
export interface LeaseReading {
  readonly holder: LeaseHolder | undefined;
  /** True when the lease has run out and nothing stored says so yet. */
  readonly isUnrecordedEnd: boolean;
}

/**
 * Who holds the lease of a session, and whether its end is still to be recorded.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const judgeLease: Operation<ReadLease, LeaseReading> = plainOperation(
  "judgeLease",
  {
    key: (input: ReadLease) => input.session.id,
    *one({ session, now }) {
      return readingOf(yield* leaseState(yield* livingSession(session)), now);
    },
  },
);

/** What a stored lease means at an instant. */
export function readingOf(state: LeaseState, now: number): LeaseReading {
  if (state.kind === "free")
    return { holder: undefined, isUnrecordedEnd: false };
  const { lease } = state;
  return {
    holder: isLive(lease, now) ? holderOf(lease) : undefined,
    isUnrecordedEnd: isUnrecordedEnd(lease, now),
  };
}

/**
 * Who holds the lease of a session; undefined when nobody does.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const readLease: Operation<ReadLease, LeaseHolder | undefined> =
  plainOperation("readLease", {
    key: (input: ReadLease) => input.session.id,
    *one(input) {
      return (yield* judgeLease(input)).holder;
    },
  });
