import type { Encoded } from "../../../model/values/encoded.ts";
import { eventNotFound, eventPruned, executionNotFound } from "../../../model/execution/errors.ts";
import type { Created, LoggedEvent } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { isSealed, sealedValue } from "../../../model/values/payload-mark.ts";
import type { RecordedResult } from "../../../model/execution/result.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, rows, storeOperation, type StoreOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { checkedVersion } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import { deliveredEvent, deliveredResult } from "../delivered.ts";
import { eventAt } from "../event-row.ts";
import { absence, corruptLog, isPresent, soundEvent, standing } from "../state-row.ts";
import { finishedResult, type FinishedResult } from "../result-row.ts";
import {
  summaryColumns,
  summaryOf,
  withDetails,
  type ExecutionSummary,
  type SummaryRow,
} from "./summary.ts";

/** Builds the input of a read of one execution. */
export function givenRead(_: ExecutionContext, id: string, wait?: WaitOptions): Call<ExecutionId> {
  return { input: parseExecutionId(id), wait: onlyWait(wait) };
}

/** The known facts about an execution, without its log. */
export interface ExecutionView extends ExecutionSummary {
  /** The tags, in order. */
  readonly tags: readonly string[];
  /**
   * The last progress that its code reported; null when it reported none, and `"sealed"` without
   * the payload codec.
   */
  readonly progress: unknown;
}

interface StoredExecution extends ExecutionSummary {
  readonly tags: readonly string[];
  readonly progress: Encoded | null;
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readExecution = storeOperation("readExecution", {
  key: (id) => id,
  *one({ clock }: ExecutionContext, id: ExecutionId): Tx<StoredExecution> {
    const found = yield* row<SummaryRow & { readonly progress: Encoded | null }>(sql`
      SELECT ${summaryColumns}, progress FROM holdfast_execution WHERE id = ${id} AND ${isPresent(id)}`);
    if (found === undefined) throw yield* absence(id);
    const [detailed] = yield* withDetails([found], clock.now());
    if (detailed === undefined) throw executionNotFound(id);
    const tags = yield* rows<{ readonly tag: string }>(sql`
      SELECT tag FROM holdfast_execution_tag WHERE execution = ${found.key} ORDER BY tag`);
    return {
      ...summaryOf(detailed),
      tags: tags.map(({ tag }) => tag),
      progress: found.progress,
    };
  },
});

export function shownExecution(
  { values }: ExecutionContext,
  { progress, ...found }: StoredExecution,
): ExecutionView {
  return {
    ...found,
    progress: progress === null ? null : unlessSealed(() => values.readValue(progress)),
  };
}

/**
 * The decoded value, or `"sealed"` if the payload codec is missing, so that the fields beside it
 * can be shown.
 */
function unlessSealed(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    if (isSealed(error)) return sealedValue;
    throw error;
  }
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readCreated = storeOperation("readCreated", {
  key: (id) => id,
  *one(_: ExecutionContext, id: ExecutionId): Tx<LoggedEvent> {
    const { key } = yield* standing(id);
    const first = yield* soundEvent(id, key, 0);
    if (first.event.kind !== "created") throw corruptLog(id, 0);
    return first;
  },
});

export function shownCreated(
  context: ExecutionContext,
  first: LoggedEvent,
  id: ExecutionId,
): Created<unknown> {
  return deliveredEvent(context, id, first).event as Created<unknown>;
}

/** The result of an execution; undefined while it has not finished. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readResult: StoreOperation<ExecutionContext, ExecutionId, FinishedResult | undefined> =
  storeOperation("readResult", {
    key: (id: ExecutionId) => id,
    one: (_: ExecutionContext, id) => finishedResult(id),
  });

export function shownResult(
  context: ExecutionContext,
  ended: FinishedResult | undefined,
  id: ExecutionId,
): RecordedResult | undefined {
  return ended && deliveredResult(context, id, ended);
}

interface ReadEvent {
  readonly id: ExecutionId;
  readonly version: number;
}

export function givenEvent(
  _: ExecutionContext,
  id: string,
  version: number,
  wait?: WaitOptions,
): Call<ReadEvent> {
  return {
    input: { id: parseExecutionId(id), version: checkedVersion(version) },
    wait: onlyWait(wait),
  };
}

/**
 * One event. @throws HoldfastError `EXECUTION_NOT_FOUND`, with
 *   `details.missing` "event" when the execution exists; `CORRUPT_ROW`.
 */
export const readEvent = storeOperation("readEvent", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, version }: ReadEvent): Tx<LoggedEvent> {
    const { key, version: last, prunedBefore } = yield* standing(id);
    if (version > last) throw eventNotFound(id, version, last);
    if (version >= prunedBefore || version === 0) return yield* soundEvent(id, key, version);
    const found = yield* eventAt(key, version);
    if (found === undefined) throw eventPruned(id, version, prunedBefore);
    return found;
  },
});

/** The newest event. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readLastEvent = storeOperation("readLastEvent", {
  key: (id) => id,
  *one(_: ExecutionContext, id: ExecutionId): Tx<LoggedEvent> {
    const { key, version } = yield* standing(id);
    return yield* soundEvent(id, key, version);
  },
});

export function shownEvent(
  context: ExecutionContext,
  logged: LoggedEvent,
  of: ExecutionId | ReadEvent,
): LoggedEvent<unknown> {
  return deliveredEvent(context, typeof of === "string" ? of : of.id, logged);
}
