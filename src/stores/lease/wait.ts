import type { WaitOptions } from "../../sql/database.ts";
import { waitUntil } from "../wait.ts";
import {
  provenDeath,
  type AcquireLease,
  type HolderLease,
  type LeaseContext,
  type LeaseOutcome,
  type SeenHolder,
} from "./context.ts";
import type { LeasedRoot, LeaseTransactions } from "./parts.ts";

/** Acquires a lease whose holder the caller has seen: at once if the holder has provably died. */
export async function takeFrom<Ref, Root extends LeasedRoot, L>(
  { acquire }: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  request: AcquireLease<Ref>,
  observed: SeenHolder,
  wait: WaitOptions,
): Promise<LeaseOutcome<L>> {
  const { database } = context;
  const death = await provenDeath(database, observed);
  return database.write(acquire(context), { ...request, death }, wait);
}

/** Acquires a lease that is free or whose holder has died. */
export async function takeLease<Ref, Root extends LeasedRoot, L>(
  { acquire }: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  request: AcquireLease<Ref>,
  wait: WaitOptions,
): Promise<LeaseOutcome<L>> {
  const { database } = context;
  const outcome = await database.write(acquire(context), request, wait);
  if (outcome.kind === "acquired") return outcome;
  const death = await provenDeath(database, outcome.holder);
  if (death === undefined) return outcome;
  return database.write(acquire(context), { ...request, death }, wait);
}

/**
 * Acquires a lease as soon as it is free: released, expired, or left by a process that died.
 *
 * @throws HoldfastError the error of the kind for a missing root, and those of `waitUntil`.
 */
export function waitToTake<Ref, Root extends LeasedRoot, L extends HolderLease>(
  leases: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  request: AcquireLease<Ref>,
  wait: WaitOptions,
): Promise<L> {
  const { kind, release } = leases;
  const { database, clock } = context;
  const { of, token } = request;
  const id = kind.idOf(of);
  const { signal } = wait;
  return waitUntil(
    database,
    {
      what: `the lease of ${kind.named(id)}`,
      clock,
      interests: [{ operation: kind.topic, key: id }],
      writes: true,
      async look() {
        const outcome = await takeLease(leases, context, request, { signal });
        if (outcome.kind === "busy") return { isThere: false, again: outcome.holder.expiresAt };
        const { lease } = outcome;
        if (signal?.aborted !== true) return { isThere: true, value: lease };
        // Work still runs under a lease that the same incarnation held before.
        if (lease.token !== token) return { isThere: false };
        // The wait has ended, and the lease would block others until it expires.
        await database.write(release(context), { of, fence: lease });
        return { isThere: false };
      },
    },
    wait,
  );
}
