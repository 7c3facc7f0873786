import { manualClock } from "../../src/model/time/clock.ts";
import type { ManualClock } from "../../src/model/time/clock.ts";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Tx, Database } from "../../src/kernel.ts";
import { leases, sessions } from "../../src/sessions.ts";
import type { Lease } from "../../src/sessions.ts";
import { Barrier } from "./barrier.ts";
import { withPlace } from "./place.ts";

/**
 * Bodies of the app's own are serializable: they see the database as it was
 * when they began. What they compose of ours must not believe that: either the
 * body is run again, or it gets the answer that a new snapshot would give.
 */

export const again = 2;
export const once = 1;

/** A new session, and the lease of it. */
export async function heldSession(database: Database, id: string): Promise<Lease> {
  await sessions(database).create(id);
  return leaseOf(database, id, "alice");
}

export async function leaseOf(database: Database, id: string, owner: string): Promise<Lease> {
  const outcome = await leases(database).acquire(
    id,
    { owner, incarnation: owner },
    { lease: "10s" },
  );
  if (outcome.kind !== "acquired") throw new Error("The lease is not free.");
  return outcome.lease;
}

/** A database whose next body is kept waiting with the snapshot that it has. */
export interface Stale {
  readonly database: Database;
  readonly clock: ManualClock;
  readonly barrier: Barrier;
  /**
   * Runs a part in a body of the app's own whose snapshot is older than what
   * the rival does: the body takes its snapshot and stops, the rival commits,
   * the body goes on.
   */
  readonly after: (rival: () => Promise<unknown>, part: () => Tx<unknown>) => Promise<Outcome>;
}

/** How a body ended, and how often it was run for that. */
export interface Outcome {
  readonly runs: number;
  readonly value?: unknown;
  readonly code?: string;
}

export function withStale(body: (stale: Stale) => Promise<void>): () => Promise<void> {
  return () =>
    withPlace(async (place) => {
      const clock = manualClock(1_000);
      const database = await place.open({ clock });
      const barrier = await Barrier.raise(place);
      await body({
        database,
        clock,
        barrier,
        after: (rival, part) =>
          pastRival(barrier, rival, (stopOnce) =>
            database.write("mine", function* () {
              yield* stopOnce();
              return yield* part();
            }),
          ),
      });
    });
}

/** Makes a call whose body stops once, lets the rival finish meanwhile, and tells how the call ended. */
export async function pastRival(
  barrier: Barrier,
  rival: () => Promise<unknown>,
  call: (stopOnce: () => Tx<void>) => Promise<unknown>,
): Promise<Outcome> {
  let runs = 0;
  const ended = outcomeOf(
    call(function* () {
      runs += 1;
      if (runs === 1) yield* barrier.stop();
    }),
  );
  await barrier.stopped(1);
  await rival();
  await barrier.lift();
  const outcome = await ended;
  return { runs, ...outcome };
}

async function outcomeOf(call: Promise<unknown>): Promise<Omit<Outcome, "runs">> {
  try {
    return { value: await call };
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return { code: error.code };
  }
}
