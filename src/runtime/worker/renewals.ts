import { isPassing } from "../failures.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { pause, repeated } from "../pauses.ts";
import type { RunState } from "../run/run-state.ts";

/**
 * A lock that a worker holds, and the listeners for its outcome: those of this attempt, not of
 * the next attempt under its id.
 */
export interface HeldLock {
  readonly id: ExecutionId;
  readonly key: number;
  readonly renewed: (leaseUntil: number) => void;
  readonly lost: () => void;
}

/** The most locks that one statement renews. */
const locksMax = 1_000;

/**
 * Renews locks and reports lost locks. Never rejects: a failed renewal is retried, and an
 * append finds out which locks are really lost.
 */
export async function renewLocks(
  { context, settings, holder }: WorkerParts,
  held: readonly HeldLock[],
): Promise<void> {
  const {
    clock,
    tell,
    pages: { executions },
  } = context;
  for (let from = 0; from < held.length; from += locksMax) {
    const some = held.slice(from, from + locksMax);
    // The row says this instant or a later one: the clock is read again when the call gets its turn.
    const leaseUntil = clock.now() + settings.leaseMs;
    try {
      const { lost } = await executions.renew(
        some.map(({ id, key }) => ({ id, key })),
        { holder, lease: settings.leaseMs },
      );
      const gone = new Set(lost);
      for (const lock of some)
        if (gone.has(lock.id)) lock.lost();
        else lock.renewed(leaseUntil);
    } catch (error) {
      if (isPassing(error)) continue;
      tell({
        level: "error",
        message: `The locks of ${some.length} runs could not be renewed: ${(error as Error).message}`,
        details: { runs: some.length },
      });
    }
  }
}

/** Renews a lock that must be known to be held. Returns the end of its lease, or undefined if it is lost. */
export async function renewedLock(
  { context, settings, holder, signal }: WorkerParts,
  { id, key }: Pick<HeldLock, "id" | "key">,
): Promise<number | undefined> {
  const { clock, pages } = context;
  try {
    return await repeated(clock, signal, async () => {
      const leaseUntil = clock.now() + settings.leaseMs;
      const { lost } = await pages.executions.renew([{ id, key }], {
        holder,
        lease: settings.leaseMs,
      });
      return lost.length === 0 ? leaseUntil : undefined;
    });
  } catch {
    // Nothing can be recorded any more.
    return undefined;
  }
}

/** Renews all locks of running work every third of a lease. */
export async function keepLocks(
  parts: WorkerParts,
  held: () => readonly HeldLock[],
): Promise<void> {
  const { context, settings, signal } = parts;
  while (!signal.aborted) {
    await pause(context.background, settings.leaseMs / 3, signal);
    if (!signal.aborted) await renewLocks(parts, held());
  }
}

/** The part of a run's state on which its lock depends. */
type LockedState = Pick<RunState, "id" | "leaseUntil" | "isWaiting" | "isOver" | "isAppending"> & {
  readonly locked: Pick<RunState["locked"], "key">;
};

/**
 * The lock of an active run. The run may rest or be locked again before the answer arrives. The
 * answer then concerns an older lock.
 */
export function lockOf(state: LockedState, lost: () => void): HeldLock {
  const { id, locked, leaseUntil } = state;
  const isSame = (): boolean =>
    state.leaseUntil === leaseUntil && !state.isWaiting && !state.isOver;
  return {
    id,
    key: locked.key,
    renewed(until) {
      if (isSame() && until > leaseUntil) state.leaseUntil = until;
    },
    lost() {
      if (isSame() && !state.isAppending) lost();
    },
  };
}

/** The lock of a run that is about to resume. If it is lost, the run rests: it may be on its way back to this worker. */
export function lockOfResting(state: RunState): HeldLock {
  const { id, locked } = state;
  return {
    id,
    key: locked.key,
    renewed(until) {
      if (until > state.leaseUntil) state.leaseUntil = until;
    },
    lost() {
      if (state.isWaiting) state.leaseUntil = 0;
    },
  };
}
