import { manualClock } from "../../src/model/clock.ts";
import type { ManualClock } from "../../src/model/clock.ts";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Tx } from "../../src/sql/operation.ts";
import type { Database } from "../../src/stores/database.ts";
import { Barrier } from "./barrier.ts";
import { withPlace } from "./place.ts";

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
  readonly after: (
    rival: () => Promise<unknown>,
    part: () => Tx<unknown>,
  ) => Promise<Outcome>;
}

/** How a body ended, and how often it was run for that. */
export interface Outcome {
  readonly runs: number;
  readonly value?: unknown;
  readonly code?: string;
}

export function withStale(
  body: (stale: Stale) => Promise<void>,
): () => Promise<void> {
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

async function outcomeOf(
  call: Promise<unknown>,
): Promise<Omit<Outcome, "runs">> {
  try {
    return { value: await call };
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    return { code: error.code };
  }
}
