import { instantOf } from "../../model/time/clock.ts";
import {
  decideLease,
  expiryAt,
  extended,
  givenBackBefore,
  reentered,
  type HeldLease,
  type LeaseDecision,
  type LeaseState,
} from "../../model/lease.ts";
import { announce, storeOperation, type StoreOperation } from "../../sql/operation.ts";
import type {
  AcquireLease,
  LeaseContext,
  LeaseOutcome,
  LeaseRequest,
  RenewLease,
} from "./context.ts";
import { assertHeld, type JudgedKind } from "./ends.ts";
import type { LeasedRoot, LeaseKind } from "./parts.ts";

/**
 * Acquires a lease that is free or whose holder the caller has seen dead. Of several callers that
 * saw the same death, one wins.
 */
export function acquireOf<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): StoreOperation<LeaseContext, AcquireLease<Ref>, LeaseOutcome<L>> {
  return storeOperation(`acquire${kind.noun}`, {
    key: (input: AcquireLease<Ref>) => kind.idOf(input.of),
    *one({ clock }: LeaseContext, input) {
      const root = yield* kind.lock(input.of);
      if (kind.assertLeasable !== undefined) yield* kind.assertLeasable(root);
      const state = yield* kind.rows.read(root);
      const now = instantOf(() => clock.now());
      const decision = decideLease(state, input.owner, now, input.death);
      if (decision.kind === "busy") return decision;
      const lease = leaseAfter(kind, decision, state, input, now);
      yield* kind.rows.write(root, lease);
      // Claims under the old fence are void now, and others may wait for that.
      if (kind.announcesHolders || decision.kind === "reclaim")
        yield* announce(kind.topic, root.id);
      return { kind: "acquired", lease: kind.leaseOf(root, lease) };
    },
  });
}

function leaseAfter(
  { isShared }: { readonly isShared: boolean },
  decision: Exclude<LeaseDecision, { readonly kind: "busy" }>,
  before: LeaseState,
  { owner, token, leaseMs }: LeaseRequest,
  now: number,
): HeldLease {
  if (decision.kind === "reenter" && isShared)
    return reentered(decision.lease, owner, now, leaseMs);
  return {
    ...owner,
    fence: decision.kind === "reenter" ? decision.lease.fence + 1 : decision.fence,
    givenBack: givenBackBefore(before),
    token,
    claimedAt: now,
    renewedAt: now,
    expiresAt: expiryAt(now, leaseMs),
  };
}

/**
 * Extends a lease, and keeps its token and fence. An expired lease has ended for good: its holder
 * was notified. A clock that is set back must not keep others away on its behalf.
 */
export function renewOf<Ref, Root extends LeasedRoot, L>(
  leases: JudgedKind<Ref, Root, L>,
): StoreOperation<LeaseContext, RenewLease<Ref>, L> {
  const { kind } = leases;
  return storeOperation(`renew${kind.noun}`, {
    key: (input: RenewLease<Ref>) => kind.idOf(input.of),
    *one(context: LeaseContext, { of, fence, leaseMs }) {
      const root = yield* kind.lock(of);
      const { lease, at } = yield* assertHeld(leases, context, root, fence);
      const renewed = extended(lease, at, leaseMs);
      yield* kind.rows.write(root, renewed);
      return kind.leaseOf(root, renewed);
    },
  });
}
