import type { Encoded } from "../values/encoded.ts";
import type { Holder } from "./event.ts";
import type { ExecutionId } from "../ids/execution-id.ts";

/**
 * The live output of a run: values that its steps show to readers while they run. It is no part of
 * the record. Sizes are characters of stored text.
 */

/** The most that waits to be written: of one run, and of one process. A chunk is at most the former. */
export const runWaitingMax = 1_048_576;
export const processWaitingMax = 64 * 1_048_576;
/** The most that is stored of a run. */
export const runStoredMax = 8 * 1_048_576;
/** The size down to which old parts are removed, so that not every write has to remove some. */
const runStoredKept = 7 * 1_048_576;

/** Names an attempt of a step within its run. An activity has one step, without a name. */
interface StreamedAttempt {
  /** Calls are numbered again in each pass of the run. */
  readonly continuation: number;
  readonly call: number;
  readonly step: string | null;
  readonly attempt: number;
}

/** Chunks of one attempt that are written together. */
export interface StreamPart extends StreamedAttempt {
  /** True until a write of this attempt is known to be stored. */
  readonly isFirst: boolean;
  readonly chunks: number;
  readonly size: number;
  readonly at: number;
  readonly payload: Encoded;
}

/** A step that was recorded: its chunks up to a position are complete. */
export interface FoldedStep {
  readonly continuation: number;
  readonly call: number;
  readonly upTo: number;
}

/** The output of a run that a process writes at once. */
export interface StreamWrite {
  readonly execution: number;
  readonly id: ExecutionId;
  /** The worker that must hold the run's lock. */
  readonly fence: Pick<Holder, "executor" | "run">;
  /** The version of the log with that lock: what has a lower one is of an earlier owner. */
  readonly lockVersion: number;
  /** The last position that the process was told: a database that lost some does not use them again. */
  readonly after: number;
  /** The number of chunks that were lost before the parts, and dropped behind them. */
  readonly lost: number;
  readonly parts: readonly StreamPart[];
  readonly dropped: number;
  readonly folded: readonly FoldedStep[];
}

/** The outcome of a write. */
export interface StreamWritten {
  /** The last position after the write; null when the worker no longer holds the run: nothing was written. */
  readonly position: number | null;
  /** True if the chunks were dropped, since they did not fit. */
  readonly isFull: boolean;
}

export const notWritten: StreamWritten = { position: null, isFull: false };

/** The state of a run's output. */
export interface StreamHead {
  readonly execution: number;
  /** The version of the log when the newest chunk was written: that of a later owner is higher. */
  readonly runVersion: number;
  /** The number of the newest chunk. */
  readonly position: number;
  readonly size: number;
}

export interface PlacedPart extends StreamPart {
  readonly position: number;
}

/** Numbers the chunks of a write. Dropped chunks take numbers too, so that readers notice them. */
export function placed(
  head: StreamHead,
  write: Pick<StreamWrite, "after" | "lost" | "parts" | "dropped">,
  runVersion: number,
): { readonly head: StreamHead; readonly parts: readonly PlacedPart[] } {
  let position = Math.max(head.position, write.after) + write.lost;
  let { size } = head;
  const parts = write.parts.map((part) => {
    const own = { ...part, position: position + 1 };
    position += part.chunks;
    size += part.size;
    return own;
  });
  position += write.dropped;
  return { head: { execution: head.execution, runVersion, position, size }, parts };
}

/** False for a write that only folds. */
export function hasChunks({
  parts,
  lost,
  dropped,
}: Pick<StreamWrite, "parts" | "lost" | "dropped">): boolean {
  return parts.length > 0 || lost + dropped > 0;
}

/** The same write without its chunks, which are dropped. */
export function allDropped(write: StreamWrite): StreamWrite {
  const chunks = write.parts.reduce((sum, part) => sum + part.chunks, 0);
  return { ...write, parts: [], dropped: write.dropped + chunks };
}

/** A stored part that may be removed to make room. */
export interface RemovablePart {
  readonly position: number;
  readonly size: number;
}

/** True if the parts of a write fit beside what is stored. */
export function fits(head: Pick<StreamHead, "size">, write: Pick<StreamWrite, "parts">): boolean {
  return head.size + sizeOf(write) <= runStoredMax;
}

/** The parts to remove so that a write fits, from a list in the order of removal; undefined if they do not suffice. */
export function roomFor(
  head: Pick<StreamHead, "size">,
  write: Pick<StreamWrite, "parts">,
  removable: readonly RemovablePart[],
): readonly RemovablePart[] | undefined {
  let size = head.size + sizeOf(write);
  const removed: RemovablePart[] = [];
  for (const part of removable) {
    if (size <= runStoredKept) break;
    removed.push(part);
    size -= part.size;
  }
  return size <= runStoredMax ? removed : undefined;
}

function sizeOf({ parts }: Pick<StreamWrite, "parts">): number {
  return parts.reduce((sum, { size }) => sum + size, 0);
}
