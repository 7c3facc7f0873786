import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import type { LeaseFence } from "../../model/lease.ts";
import {
  eventTypeUndeclared,
  processPruned,
  processTerminal,
} from "../../model/process-errors.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { signalType, waitKey } from "../../model/process.ts";
import type { ProcessWait } from "../../model/process.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { appendToProcess } from "./append-to.ts";
import { assertProcessFence, assertUnattended } from "./fence.ts";
import { eventTypesOf, lockedProcess } from "./process-row.ts";
import type { ProcessRoot } from "./process-row.ts";

export interface SetWait {
  readonly process: ProcessId;
  readonly signal: string;
  readonly ordinal: number;
  readonly fence: LeaseFence | undefined;
  readonly now: Now;
}

/**
 * Records that a process waits for the n-th signal of a name. The same again
 * changes nothing; another one takes its place.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`,
 *   `PROCESS_TERMINAL`, `EVENT_TYPE_UNDECLARED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
 */
export const setWait: Operation<SetWait, ProcessWait> = plainOperation(
  "setProcessWait",
  {
    key: (input: SetWait) => input.process,
    *one({ process, signal, ordinal, fence, now: clock }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      const { status, wait: before } = root.state;
      const key = waitKey(root.id, signal, ordinal);
      const isSame = before?.key === key;
      // Whoever repeats a call is told the same, also after somebody has begun to work on it.
      if (isSame && fence === undefined) return before;
      yield* refuseStale(root, fence, now);
      if (status !== "running") throw processTerminal(root.id, status);
      const type = signalType(signal);
      if (!eventTypesOf(root.row).some(({ name }) => name === type))
        throw eventTypeUndeclared(root.id, type);
      if (isSame) return before;
      const wait = { signal, ordinal, key, since: now };
      yield* appendToProcess(root, {
        type: coreTypes.waiting,
        at: now,
        hash: "",
        wait,
      });
      return wait;
    },
  },
);

export interface ClearWait {
  readonly process: ProcessId;
  readonly fence: LeaseFence | undefined;
  readonly now: Now;
}

/** Records that a process goes on; false when it did not wait. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST` */
export const clearWait: Operation<ClearWait, boolean> = plainOperation(
  "clearProcessWait",
  {
    key: (input: ClearWait) => input.process,
    *one({ process, fence, now: clock }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      const { wait, prunedAt } = root.state;
      if (fence === undefined && wait === null && prunedAt === null)
        return false;
      yield* refuseStale(root, fence, now);
      if (wait === null) return false;
      yield* appendToProcess(root, {
        type: coreTypes.resumed,
        at: now,
        hash: "",
      });
      return true;
    },
  },
);

/** Lets only who works on a process pass, or anybody while nobody does. */
export function* refuseStale(
  root: ProcessRoot,
  fence: LeaseFence | undefined,
  now: number,
): Tx<void> {
  if (root.state.prunedAt !== null) throw processPruned(root.id);
  if (fence === undefined) yield* assertUnattended(root, now);
  else yield* assertProcessFence(root, fence, now);
}
