import type { Encoded } from "../../model/encoded.ts";
import { unreachable } from "../../model/errors.ts";
import type { ResultKind } from "../../model/execution-event.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import { endTypes } from "../../model/process-event-type.ts";
import type { ProcessEnd } from "../../model/process-output.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import type { Tx } from "../../sql/operation.ts";
import { appendToProcess } from "./append-to.ts";
import type { WakeDraft } from "./append-to.ts";
import { lockedProcessByKey } from "./process-row.ts";
import type { ProcessRoot } from "./process-row.ts";

/** How an execution ended, and where its log says so. */
export interface EndedExecution {
  readonly at: number;
  readonly version: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
}

/** What a session is told when an execution ends: encoded when it was spawned, since nobody can encode at the end. */
export type EndWakes = Readonly<
  Record<
    string,
    { readonly payload: Encoded; readonly dedupeKey: string | null }
  >
>;

/**
 * Ends a process with its execution, and wakes its session. The result is not
 * copied: it stays in the log of the execution, which retention keeps as long
 * as the process was not pruned.
 */
export function* endProcessOf(
  process: number,
  { at, version, resultKind, resultHash }: EndedExecution,
): Tx<void> {
  const root = yield* lockedProcessByKey(process);
  // Somebody may have ended it by hand before; that stays.
  if (root === undefined || root.state.status !== "running") return;
  const end = endOf(resultKind);
  const type = endTypes[end];
  yield* appendToProcess(root, {
    type,
    at,
    hash: resultHash,
    replayKey: registryKeys.end(type),
    end,
    executionVersion: version,
    wake: wakeOf(root, type),
  });
}

function endOf(resultKind: ResultKind): ProcessEnd {
  switch (resultKind) {
    case "completed":
    case "failed":
    case "cancelled":
      return resultKind;
    case "timedOut":
      return "failed";
    default:
      return unreachable(resultKind);
  }
}

function wakeOf(
  { row, state, id }: ProcessRoot,
  type: string,
): WakeDraft | null {
  if (row.end_wakes === null) return null;
  try {
    const wakes = JSON.parse(row.end_wakes) as EndWakes;
    const wake = Object.hasOwn(wakes, type) ? wakes[type] : undefined;
    return wake === undefined ? null : { ...wake, target: state.wakeTarget };
  } catch {
    throw corruptRow("holdfast_process", id, "has end_wakes that are no JSON");
  }
}
