import { checkedInstant } from "../../model/shape.ts";
import { isHoldfastError, type HoldfastError } from "../../model/errors.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { Database } from "../../sql/database.ts";
import { BackgroundRenewal } from "../renewing.ts";
import type { HolderLease, LeaseContext, LeaseKeeper, LeaseRhythm } from "./context.ts";
import type { LeasedRoot, LeaseTransactions } from "./parts.ts";

/** Renews a lease until it is stopped, lost or released. */
export function keepLease<Ref, Root extends LeasedRoot, L extends HolderLease>(
  { kind, renew }: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  { lease, of }: { readonly lease: L; readonly of: Ref },
  { leaseMs, everyMs }: LeaseRhythm,
): LeaseKeeper<L> {
  const { database, clock } = context;
  checkedInstant("The end of the lease", lease.expiresAt);
  let forget = (): void => undefined;
  const renewal = new BackgroundRenewal<L>(lease, {
    clock,
    everyMs,
    onEnd: () => forget(),
    expired: (_, cause) => kind.lost(kind.idOf(of), "expired", { cause }),
    async renew(fence, signal) {
      const input = { of, fence, leaseMs };
      try {
        const held = await database.write(renew(context), input, { signal });
        return { kind: "renewed", held };
      } catch (error) {
        if (!isLoss(error)) throw error;
        return error.details["reason"] === "released" ? { kind: "over" } : { kind: "lost", error };
      }
    },
  });
  forget = whenReleased(database, lease, () => renewal.stop());
  return {
    get lease() {
      return renewal.held;
    },
    get signal() {
      return renewal.signal;
    },
    stop: () => renewal.stop(),
  };
}

function isLoss(error: unknown): error is HoldfastError {
  return (
    isHoldfastError(error) && (error.code === "LEASE_LOST" || error.code === "PROCESS_LEASE_LOST")
  );
}

/**
 * The keepers of leases, by database and by token of the lease. A keeper also notices a release
 * itself, but only at its next renewal. By then the session may be deleted or the database closed,
 * and that would look like a loss.
 */
const keepers = new WeakMap<Database, Map<string, Set<() => void>>>();

/**
 * Calls `end` once the lease is released through this database. The returned function cancels that.
 */
function whenReleased(database: Database, { token }: LeaseFence, end: () => void): () => void {
  const byToken = keepers.get(database) ?? new Map<string, Set<() => void>>();
  keepers.set(database, byToken);
  const ends = byToken.get(token) ?? new Set();
  byToken.set(token, ends);
  ends.add(end);
  return () => {
    ends.delete(end);
    if (ends.size === 0 && byToken.get(token) === ends) byToken.delete(token);
  };
}

/** Notifies the keepers of a lease that its holder released it. */
export function tellReleased(database: Database, { token }: LeaseFence): void {
  for (const end of keepers.get(database)?.get(token) ?? []) end();
}
