import type { LeaseFence } from "../../model/lease.ts";
import {
  eventTypeUndeclared,
  externalRefConflict,
  processPruned,
  processTerminal,
} from "../../model/process/errors.ts";
import { coreTypes } from "../../model/process/event-type.ts";
import { parseProcessId, type ProcessId } from "../../model/ids/process-id.ts";
import { registryKeys } from "../../model/process/replay-key.ts";
import { signalType, waitKey, type ProcessWait } from "../../model/process/process.ts";
import { checkedCount, checkedText, draftOf } from "../../model/shape.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { optionsAndWait, type Call } from "../method.ts";
import { checkedFence, checkedSignal, type ProcessFenceOptions } from "./append.ts";
import type { ProcessContext } from "./context.ts";
import { refuseStale } from "./declared.ts";
import { appendToProcess, eventPayload, replayed, type ProcessEventPayload } from "./event-row.ts";
import { eventTypesOf, lockedProcess } from "./process-row.ts";

/** The n-th signal of a name. */
interface AwaitedSignal {
  readonly signal: string;
  /** Counted from 1. */
  readonly ordinal: number;
}

interface SetWait extends AwaitedSignal {
  readonly process: ProcessId;
  readonly fence: LeaseFence | undefined;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID` */
export function givenSetWait(
  _: ProcessContext,
  process: string,
  awaited: AwaitedSignal,
  given?: ProcessFenceOptions,
): Call<SetWait> {
  const { signal, ordinal } = draftOf("awaited", awaited, ["signal", "ordinal"]);
  const { options, wait } = optionsAndWait(given, ["fence"]);
  const input = {
    process: parseProcessId(process),
    signal: checkedSignal(signal),
    ordinal: checkedCount("ordinal", ordinal, { min: 1 }),
    fence: checkedFence(options.fence),
  };
  return { input, wait };
}

/**
 * Records that a process waits for the n-th signal of a name. The same wait again changes nothing;
 * another one replaces it.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`,
 *   `EVENT_TYPE_UNDECLARED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
 */
export const setWait = storeOperation("setProcessWait", {
  key: (input) => input.process,
  *one(context: ProcessContext, { process, signal, ordinal, fence }: SetWait): Tx<ProcessWait> {
    const root = yield* lockedProcess(process);
    const { status, wait: before } = root.state;
    const key = waitKey(root.id, signal, ordinal);
    const isSame = before?.key === key;
    // A repeated call gets the same answer, even after a worker has started on the process.
    if (isSame && fence === undefined) return before;
    const at = yield* refuseStale(context, root, fence);
    if (status !== "running") throw processTerminal(root.id, status);
    const type = signalType(signal);
    if (!eventTypesOf(root.row).some(({ name }) => name === type))
      throw eventTypeUndeclared(root.id, type);
    if (isSame) return before;
    const wait = { signal, ordinal, key, since: at };
    yield* appendToProcess(root, {
      type: coreTypes.waiting,
      at,
      hash: "",
      wait,
    });
    return wait;
  },
});

interface ClearWait {
  readonly process: ProcessId;
  readonly fence: LeaseFence | undefined;
}

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID` */
export function givenClearWait(
  _: ProcessContext,
  process: string,
  given?: ProcessFenceOptions,
): Call<ClearWait> {
  const { options, wait } = optionsAndWait(given, ["fence"]);
  const fence = checkedFence(options.fence);
  return { input: { process: parseProcessId(process), fence }, wait };
}

/**
 * Clears the wait of a process; false when it was not waiting.
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
 */
export const clearWait = storeOperation("clearProcessWait", {
  key: (input) => input.process,
  *one(context: ProcessContext, { process, fence }: ClearWait): Tx<boolean> {
    const root = yield* lockedProcess(process);
    const { wait, prunedAt } = root.state;
    if (fence === undefined && wait === null && prunedAt === null) return false;
    const at = yield* refuseStale(context, root, fence);
    if (wait === null) return false;
    yield* appendToProcess(root, {
      type: coreTypes.resumed,
      at,
      hash: "",
    });
    return true;
  },
});

/** Work in another system. */
export interface ProcessExternalRef {
  readonly backend: string;
  readonly id: string;
  readonly metadata?: unknown;
}

interface SetExternalRef {
  readonly process: ProcessId;
  readonly ref: ProcessEventPayload;
  readonly fence: LeaseFence | undefined;
}

const idCharactersMax = 512;

/** @throws HoldfastError `ID_MALFORMED`, `OPTION_INVALID`, `NAME_INVALID`, `NOT_SERIALIZABLE` */
export function givenExternalRef(
  { codec }: ProcessContext,
  process: string,
  ref: ProcessExternalRef,
  given?: ProcessFenceOptions,
): Call<SetExternalRef> {
  const { options, wait } = optionsAndWait(given, ["fence"]);
  const { backend, id, metadata } = draftOf("ref", ref, ["backend", "id", "metadata"]);
  const value = {
    backend: checkedText("The backend of external work", backend),
    id: checkedText("The id of external work", id, idCharactersMax),
    ...(metadata !== undefined && { metadata }),
  };
  const input = {
    process: parseProcessId(process),
    ref: eventPayload(codec, coreTypes.externalRef, value),
    fence: checkedFence(options.fence),
  };
  return { input, wait };
}

const replayKey = registryKeys.externalRef;

/**
 * Records the external work that a process stands for. The same work again changes nothing; true
 * when it is new. Without a fence the process must have no worker.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_LEASED`,
 *   `PROCESS_LEASE_LOST`, `EXTERNAL_REF_CONFLICT`
 */
export const setExternalRef = storeOperation("setExternalRef", {
  key: (input) => input.process,
  *one(context: ProcessContext, { process, ref, fence }: SetExternalRef): Tx<boolean> {
    const root = yield* lockedProcess(process);
    if (root.state.prunedAt !== null) throw processPruned(root.id);
    const before = yield* replayed(root, replayKey);
    if (before?.hash === ref.hash) return false;
    const at = yield* refuseStale(context, root, fence);
    if (before !== undefined) throw externalRefConflict(root.id);
    yield* appendToProcess(root, {
      type: coreTypes.externalRef,
      at,
      hash: ref.hash,
      replayKey,
      payload: ref.encoded,
    });
    return true;
  },
});
