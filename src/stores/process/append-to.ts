import type { Encoded } from "../../model/encoded.ts";
import { isHoldfastError } from "../../model/errors.ts";
import type { ProcessEnd } from "../../model/process-output.ts";
import { afterProcessEvent, isSignalType } from "../../model/process.ts";
import type {
  ProcessState,
  ProcessWait,
  ProcessWake,
  SessionScope,
  WakeDelivery,
} from "../../model/process.ts";
import { announce } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { enqueueWake } from "../queue/enqueue.ts";
import type { EnqueueBatch, NewlyEnqueued } from "../queue/enqueue.ts";
import { insertEvent, nextOrdinal } from "./event-row.ts";
import type { StoredProcessEvent } from "./event-row.ts";
import { writeProcess } from "./process-row.ts";
import type { ProcessRoot } from "./process-row.ts";
import { processEnded, processEvent } from "./topics.ts";
import { wakeBatchId } from "./wakes.ts";

/** An event that may be appended: everything about it is decided. */
export interface ProcessEventDraft {
  readonly type: string;
  readonly at: number;
  readonly hash: string;
  readonly replayKey?: string | null;
  readonly payload?: Encoded | null;
  readonly end?: ProcessEnd | null;
  readonly output?: Encoded | null;
  readonly wait?: ProcessWait | null;
  readonly wake?: WakeDraft | null;
  readonly executionVersion?: number | null;
}

export interface WakeDraft {
  /** What the session finds in its queue. */
  readonly payload: Encoded;
  /** Null when no two wakes are the same. */
  readonly dedupeKey: string | null;
  readonly target: SessionScope | null;
}

export interface Appended {
  readonly event: StoredProcessEvent;
  readonly state: ProcessState;
}

/** The kind of the item that a woken session finds. */
const wakeItemKind = "process.wake";

/**
 * Appends an event to a process that the transaction has locked, moves its
 * state, puts the wake into the queue of its session, and tells those who wait.
 */
export function* appendToProcess(
  root: ProcessRoot,
  draft: ProcessEventDraft,
): Tx<Appended> {
  const sequence = root.state.sequence + 1;
  const { type, at, hash } = draft;
  const wake =
    draft.wake === undefined || draft.wake === null
      ? null
      : yield* enqueuedWake(root, sequence, at, draft.wake);
  const event: StoredProcessEvent = {
    process: root.id,
    sequence,
    at,
    type,
    end: draft.end ?? null,
    wait: draft.wait ?? null,
    ordinal: isSignalType(type) ? yield* nextOrdinal(root.key, type) : null,
    replayKey: draft.replayKey ?? null,
    hash,
    payload: draft.payload ?? null,
    output: draft.output ?? null,
    wake,
    executionVersion: draft.executionVersion ?? null,
  };
  yield* insertEvent(root.key, event);
  const state = afterProcessEvent(root.state, event);
  yield* writeProcess(root.key, root.state, state);
  yield* announce(processEvent, root.id);
  if (event.end !== null) yield* announce(processEnded, root.id);
  return { event, state };
}

function* enqueuedWake(
  root: ProcessRoot,
  sequence: number,
  at: number,
  wake: WakeDraft,
): Tx<ProcessWake> {
  const { target, dedupeKey } = wake;
  return {
    dedupeKey: dedupeKey ?? `${root.id}:${sequence}`,
    delivery:
      target === null
        ? { kind: "noTarget" }
        : yield* delivered(root, sequence, at, { ...wake, target }),
  };
}

function* delivered(
  { key, id }: ProcessRoot,
  sequence: number,
  now: number,
  wake: WakeDraft & { readonly target: SessionScope },
): Tx<WakeDelivery> {
  const { payload, dedupeKey, target } = wake;
  const outcome = yield* unlessGone({
    session: { id: target.session, generation: target.generation },
    id: wakeBatchId(key, sequence),
    source: { process: id, sequence },
    policy: wakePolicy,
    availableAt: 0,
    items: [{ kind: wakeItemKind, payload }],
    at: now,
    dedupeKey: dedupeKey === null ? null : keyInFrame(target, dedupeKey),
  });
  return outcome === undefined
    ? { kind: "targetGone" }
    : { kind: outcome.kind, batch: outcome.batch.id, ...target };
}

/** Frames of one session are woken apart: what one is told does not stand for what another is. */
function keyInFrame({ frame }: SessionScope, dedupeKey: string): string {
  return JSON.stringify([frame, dedupeKey]);
}

const wakePolicy: EnqueueBatch["policy"] = {
  class: "turn",
  delivery: "earliestSafeBoundary",
  slot: "exclusive",
  mergeKey: null,
};

/** Undefined when who is to be woken is gone: the event happened all the same. */
function* unlessGone(
  wake: Parameters<typeof enqueueWake>[0],
): Tx<NewlyEnqueued | undefined> {
  try {
    return yield* enqueueWake(wake);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return (
    isHoldfastError(error) &&
    (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED")
  );
}
