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

/** Takes a lease that was seen with a holder: at once if that has provably died. */
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

/** Takes a lease that nobody holds, or whose holder has died. */
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
 * Takes a lease as soon as it is free: released, run out, or left by a process
 * that has died.
 *
 * @throws HoldfastError what the kind says for a root that is not there, and those of `waitUntil`.
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
        // One that the same incarnation held before is still worked under.
        if (lease.token !== token) return { isThere: false };
        // Nobody waits for it any more: it would keep others away until it runs out.
        await database.write(release(context), { of, fence: lease });
        return { isThere: false };
      },
    },
    wait,
  );
}
