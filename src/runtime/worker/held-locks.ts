import { isFinal, isHoldfastError, type HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { readHeld, type HeldExecution } from "../../stores/execution/lock/held.ts";
import { repeated } from "../pauses.ts";
import type { WorkerParts } from "./worker-parts.ts";

/** Gives back what a worker that closes could not bring to an end. */
export async function releaseLeft(
  parts: WorkerParts,
  left: ReadonlySet<ExecutionId>,
): Promise<void> {
  if (left.size === 0) return;
  await releaseHeld(parts, "the worker closed", ({ id }) => left.has(id));
}

/**
 * Gives back what the log says that this worker holds, as far as it is meant.
 * An append that is still on its way moves a run while it is looked at: such a
 * one is looked at again.
 */
export async function releaseHeld(
  parts: WorkerParts,
  reason: string,
  isMeant: (held: HeldExecution) => boolean,
): Promise<void> {
  try {
    await release(parts, reason, isMeant);
  } catch (error) {
    // Their leases end, and others take them.
    const { message, code } = error as HoldfastError;
    const isClosed = code === "DATABASE_CLOSED" || isFinal(error);
    if (isClosed || parts.signal.aborted) return;
    parts.context.tell({
      level: "warn",
      message: `Runs that this worker has locked could not be given back: ${message}`,
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

/** Gives one back, unless its log has got longer since it was read. */
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
    // Any other refusal says that it is not held any more: it has ended, or was taken over.
    return error.code === "VERSION_CONFLICT";
  }
}
