import { isFinal, isHoldfastError, type HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { readHeld, type HeldExecution } from "../../stores/execution/lock/held.ts";
import { repeated } from "../pauses.ts";
import type { WorkerParts } from "./worker-parts.ts";

/** Releases the locks of runs that a closing worker could not finish. */
export async function releaseLeft(
  parts: WorkerParts,
  left: ReadonlySet<ExecutionId>,
): Promise<void> {
  if (left.size === 0) return;
  await releaseHeld(parts, "the worker closed", ({ id }) => left.has(id));
}

/**
 * Releases the selected locks that the log assigns to this worker. An append under way may
 * change a run during this. Such a run is checked again.
 */
export async function releaseHeld(
  parts: WorkerParts,
  reason: string,
  isMeant: (held: HeldExecution) => boolean,
): Promise<void> {
  try {
    await release(parts, reason, isMeant);
  } catch (error) {
    // Their leases expire, and other workers lock the runs.
    const { message, code } = error as HoldfastError;
    const isClosed = code === "DATABASE_CLOSED" || isFinal(error);
    if (isClosed || parts.signal.aborted) return;
    parts.context.tell({
      level: "warn",
      message: `Runs that this worker has locked could not be released: ${message}`,
      details: {},
    });
  }
}

async function release(
  parts: WorkerParts,
  reason: string,
  isMeant: (held: HeldExecution) => boolean,
): Promise<void> {
  const { context, holder, signal } = parts;
  const { clock, database, store } = context;
  for (let hasMoved = true; hasMoved;) {
    const held = await repeated(clock, signal, () =>
      database.read(readHeld(store), { owner: database.owner, holder }),
    );
    const meant = held.filter(isMeant);
    const moved = await Promise.all(meant.map((each) => hasMovedBefore(parts, each, reason)));
    hasMoved = moved.includes(true);
  }
}

/** Releases a run, unless its log has grown since it was read. Returns true if it has. */
async function hasMovedBefore(
  { context, holder, signal }: WorkerParts,
  { id, key, version }: HeldExecution,
  reason: string,
): Promise<boolean> {
  const { clock, pages } = context;
  const dueAt = clock.now();
  try {
    await repeated(clock, signal, () =>
      pages.executions.append(id, version + 1, [{ kind: "unlocked", dueAt, reason }], {
        fence: holder,
        key,
      }),
    );
    return false;
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    // Any other refusal means that the lock is no longer held: the run has ended or was taken over.
    return error.code === "VERSION_CONFLICT";
  }
}
