import { isPassing } from "../failures.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { pause, repeated } from "../pauses.ts";
import type { RunState } from "../run/run-state.ts";

/** A lock that a worker holds, and whom to tell what became of it: the very attempt, not the next one under its id. */
export interface HeldLock {
  readonly id: ExecutionId;
  readonly key: number;
  readonly renewed: (leaseUntil: number) => void;
  readonly lost: () => void;
}

/** What one statement renews at most. */
const locksMax = 1_000;

/** Renews locks, and tells what is lost. Never rejects: what was not renewed is tried again, and an append tells who really lost it. */
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
    // The row says this or later: it is read again when the call comes to its turn.
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

/** Renews a lock that must be known to be held; answers with the end of its lease, or undefined when it is lost. */
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

/** Renews all locks of what runs at each third of a lease. */
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

/** Of a run that goes on. It may rest, or be locked anew, before the answer comes, which is then about a lock that it had. */
export function lockOf(state: RunState, lost: () => void): HeldLock {
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

/** Of a run that is to go on. Lost, it rests: it may be on its way back to this worker. */
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
