import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import type { LeaseFence } from "../../model/lease.ts";
import {
  externalRefConflict,
  processPruned,
} from "../../model/process-errors.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import type { ProcessEventPayload } from "./append-event.ts";
import { appendToProcess } from "./append-to.ts";
import { replayed } from "./event-row.ts";
import { assertProcessFence, assertUnattended } from "./fence.ts";
import { lockedProcess } from "./process-row.ts";

export interface SetExternalRef {
  readonly process: ProcessId;
  readonly ref: ProcessEventPayload;
  /** Given by a worker: refused unless it holds the lease of the process. Without it nobody may hold that. */
  readonly fence?: LeaseFence | undefined;
  readonly now: Now;
}

const replayKey = registryKeys.externalRef;

/**
 * Records which outside work a process stands for. The same again changes
 * nothing; true when it was new.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`, `EXTERNAL_REF_CONFLICT`
 */
export const setExternalRef: Operation<SetExternalRef, boolean> =
  plainOperation("setExternalRef", {
    key: (input: SetExternalRef) => input.process,
    *one({ process, ref, fence, now: clock }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      if (root.state.prunedAt !== null) throw processPruned(root.id);
      const before = yield* replayed(root, replayKey);
      if (before?.hash === ref.hash) return false;
      if (fence === undefined) yield* assertUnattended(root, now);
      else yield* assertProcessFence(root, fence, now);
      if (before !== undefined) throw externalRefConflict(root.id);
      yield* appendToProcess(root, {
        type: coreTypes.externalRef,
        at: now,
        hash: ref.hash,
        replayKey,
        payload: ref.encoded,
      });
      return true;
    },
  });
