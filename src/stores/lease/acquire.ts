import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { unreachable } from "../../model/errors.ts";
import {
  decideLease,
  expiryAt,
  givenBackBefore,
  reentered,
} from "../../model/lease.ts";
import type {
  HeldLease,
  LeaseDecision,
  LeaseFence,
  LeaseHolder,
  LeaseOwner,
  LeaseState,
  ProvenDeath,
} from "../../model/lease.ts";
import type { SessionId } from "../../model/session-id.ts";
import { announce, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef, SessionRoot } from "../session/session-row.ts";
import { leaseState, writeLease } from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";

/** A lease in the hands of its holder. */
export interface Lease extends LeaseFence {
  readonly session: { readonly id: SessionId; readonly generation: number };
  readonly claimedAt: number;
  readonly expiresAt: number;
}

export type LeaseOutcome =
  | { readonly kind: "acquired"; readonly lease: Lease }
  | { readonly kind: "busy"; readonly holder: LeaseHolder };

export interface AcquireLease {
  readonly session: SessionRef;
  readonly owner: LeaseOwner;
  /** For a new lease; who has one already keeps its own. */
  readonly token: string;
  readonly now: Now;
  readonly ttlMs: number;
}

/**
 * Takes the lease of a session when nobody holds it. The same incarnation gets
 * its own again, and no earlier expiry.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const acquireLease: Operation<AcquireLease, LeaseOutcome> =
  plainOperation("acquireLease", {
    key: (input: AcquireLease) => input.session.id,
    *one(input) {
      return yield* takeLease(input, undefined);
    },
  });

export interface ReclaimLease extends AcquireLease {
  /** The holder that was seen, and whose process has provably died since. */
  readonly death: ProvenDeath;
}

/**
 * The same, and also takes the lease from a dead holder before it runs out. Of
 * several who saw the same holder die, one wins.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const reclaimLease: Operation<ReclaimLease, LeaseOutcome> =
  plainOperation("reclaimLease", {
    key: (input: ReclaimLease) => input.session.id,
    *one(input) {
      return yield* takeLease(input, input.death);
    },
  });

function* takeLease(
  input: AcquireLease,
  death: ProvenDeath | undefined,
): Tx<LeaseOutcome> {
  const session = yield* lockedSession(input.session);
  const state = yield* leaseState(session);
  const now = instantOf(input.now);
  const decision = decideLease(state, input.owner, now, death);
  if (decision.kind === "busy") return decision;
  const lease = leaseAfter(decision, state, input, now);
  yield* writeLease(session, lease);
  // Claims under the old fence are over, and somebody may wait for that.
  if (decision.kind === "reclaim") yield* announce(leaseChanged, session.id);
  return { kind: "acquired", lease: leaseOf(session, lease) };
}

function leaseAfter(
  decision: Exclude<LeaseDecision, { readonly kind: "busy" }>,
  before: LeaseState,
  { owner, token, ttlMs }: AcquireLease,
  now: number,
): HeldLease {
  switch (decision.kind) {
    case "reenter":
      return reentered(decision.lease, owner, now, ttlMs);
    case "acquire":
    case "reclaim":
      return {
        owner: owner.owner,
        incarnation: owner.incarnation,
        process: owner.process,
        fence: decision.fence,
        givenBack: givenBackBefore(before),
        token,
        claimedAt: now,
        renewedAt: now,
        expiresAt: expiryAt(now, ttlMs),
      };
    default:
      return unreachable(decision);
  }
}

export function leaseOf(
  { id, generation }: SessionRoot,
  { owner, incarnation, token, fence, claimedAt, expiresAt }: HeldLease,
): Lease {
  return {
    session: { id, generation },
    owner,
    incarnation,
    token,
    fence,
    claimedAt,
    expiresAt,
  };
}
