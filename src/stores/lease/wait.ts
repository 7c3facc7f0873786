import type { Clock } from "../../model/clock.ts";
import type { LeaseHolder, ProvenDeath } from "../../model/lease.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { waitUntil } from "../wait.ts";
import { acquireLease, reclaimLease } from "./acquire.ts";
import type { AcquireLease, Lease, LeaseOutcome } from "./acquire.ts";
import { releaseHeldLease } from "./renew.ts";
import { leaseChanged } from "./topics.ts";

/** A request for a lease without its time, which each try takes anew. */
export type LeaseRequest = Omit<AcquireLease, "now">;

interface Around {
  readonly database: Database;
  readonly clock: Clock;
}

/** Takes a lease that was seen in the hands of a holder: at once if that has provably died. */
export async function takeFrom(
  around: Around,
  request: LeaseRequest,
  observed: SeenHolder,
  options?: WaitOptions,
): Promise<LeaseOutcome> {
  const death = await provenDeath(around.database, observed);
  return death === undefined
    ? acquire(around, request, options)
    : reclaim(around, request, death, options);
}

export type SeenHolder = Pick<LeaseHolder, "process" | "fence">;

/** Whether a holder that was seen has died since, and what proves it to whoever decides. */
export async function provenDeath(
  database: Database,
  { process, fence }: SeenHolder,
): Promise<ProvenDeath | undefined> {
  if (process === null) return undefined;
  const isDead = (await database.liveness(process)) === "dead";
  return isDead ? { process, fence } : undefined;
}

function acquire(
  { database, clock }: Around,
  request: LeaseRequest,
  options?: WaitOptions,
): Promise<LeaseOutcome> {
  const input = { ...request, now: () => clock.now() };
  return database.write(acquireLease, input, options);
}

function reclaim(
  { database, clock }: Around,
  request: LeaseRequest,
  death: ProvenDeath,
  options?: WaitOptions,
): Promise<LeaseOutcome> {
  const input = { ...request, now: () => clock.now(), death };
  return database.write(reclaimLease, input, options);
}

/**
 * Takes a lease as soon as it is free: given back, run out, or left by a
 * process that has died.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, and those of
 *   `waitUntil`.
 */
export function waitForLease(
  around: Around,
  request: LeaseRequest,
  options: WaitOptions = {},
): Promise<Lease> {
  const { database, clock } = around;
  const { id } = request.session;
  const { signal } = options;
  return waitUntil(
    database,
    {
      what: `the lease of session "${id}"`,
      clock,
      isRelevant: ({ operation, key }) =>
        operation === leaseChanged && key === id,
      async look() {
        const outcome = await tryToTake(around, request, signal);
        if (outcome.kind === "busy")
          return { isThere: false, again: outcome.holder.expiresAt };
        const { lease } = outcome;
        if (signal?.aborted !== true) return { isThere: true, value: lease };
        // One that was held before by the same incarnation is somebody's who still works.
        if (lease.token !== request.token) return { isThere: false };
        // Nobody waits for it any more: it would keep others away until it runs out.
        await database.write(releaseHeldLease, {
          session: lease.session,
          fence: lease,
        });
        return { isThere: false };
      },
    },
    options,
  );
}

async function tryToTake(
  around: Around,
  request: LeaseRequest,
  signal: AbortSignal | undefined,
): Promise<LeaseOutcome> {
  const outcome = await acquire(around, request, { signal });
  if (outcome.kind === "acquired") return outcome;
  const death = await provenDeath(around.database, outcome.holder);
  return death === undefined
    ? outcome
    : reclaim(around, request, death, { signal });
}
