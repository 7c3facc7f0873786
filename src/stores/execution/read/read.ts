import type { Encoded } from "../../../model/values/encoded.ts";
import { eventNotFound, eventPruned, executionNotFound } from "../../../model/execution/errors.ts";
import type { Created, LoggedEvent } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, rows, storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { checkedVersion } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";
import { eventAt } from "../event-row.ts";
import {
  absence,
  corruptLog,
  finishedResult,
  isPresent,
  soundEvent,
  standing,
  type FinishedResult,
} from "../state-row.ts";
import {
  summaryColumns,
  summaryOf,
  withDetails,
  type ExecutionSummary,
  type SummaryRow,
} from "./summary.ts";

/** The one execution that a read is about. */
export function givenRead(_: ExecutionContext, id: string, wait?: WaitOptions): Call<ExecutionId> {
  return { input: parseExecutionId(id), wait: onlyWait(wait) };
}

/** All that is known of an execution beside its log. */
export interface ExecutionView extends ExecutionSummary {
  /** In order. */
  readonly tags: readonly string[];
  /** What its code said last about how far it is; null when it said nothing. */
  readonly progress: unknown;
}

interface StoredExecution extends ExecutionSummary {
  readonly tags: readonly string[];
  readonly progress: Encoded | null;
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readExecution: StoreOperation<ExecutionContext, ExecutionId, StoredExecution> =
  storeOperation("readExecution", {
    key: (id: ExecutionId) => id,
    *one({ clock }: ExecutionContext, id) {
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
    progress: progress === null ? null : values.readValue(progress),
  };
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readCreated: StoreOperation<ExecutionContext, ExecutionId, LoggedEvent> =
  storeOperation("readCreated", {
    key: (id: ExecutionId) => id,
    *one(_: ExecutionContext, id) {
      const { key } = yield* standing(id);
      const first = yield* soundEvent(id, key, 0);
      if (first.event.kind !== "created") throw corruptLog(id, 0);
      return first;
    },
  });

export function shownCreated({ values }: ExecutionContext, first: LoggedEvent): Created<unknown> {
  return values.readEvent(first).event as Created<unknown>;
}

/** How an execution ended; undefined when it has not. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readResult: StoreOperation<ExecutionContext, ExecutionId, FinishedResult | undefined> =
  storeOperation("readResult", {
    key: (id: ExecutionId) => id,
    one: (_: ExecutionContext, id) => finishedResult(id),
  });

export function shownResult(
  { values }: ExecutionContext,
  ended: FinishedResult | undefined,
): ExecutionResult | undefined {
  return ended && values.readResult(ended.result);
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
export const readEvent: StoreOperation<ExecutionContext, ReadEvent, LoggedEvent> = storeOperation(
  "readEvent",
  {
    key: (input: ReadEvent) => input.id,
    *one(_: ExecutionContext, { id, version }) {
      const { key, version: last, prunedBefore } = yield* standing(id);
      if (version > last) throw eventNotFound(id, version, last);
      if (version >= prunedBefore || version === 0) return yield* soundEvent(id, key, version);
      const found = yield* eventAt(key, version);
      if (found === undefined) throw eventPruned(id, version, prunedBefore);
      return found;
    },
  },
);

/** The newest event. @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`. */
export const readLastEvent: StoreOperation<ExecutionContext, ExecutionId, LoggedEvent> =
  storeOperation("readLastEvent", {
    key: (id: ExecutionId) => id,
    *one(_: ExecutionContext, id) {
      const { key, version } = yield* standing(id);
      return yield* soundEvent(id, key, version);
    },
  });

export function shownEvent(
  { values }: ExecutionContext,
  logged: LoggedEvent,
): LoggedEvent<unknown> {
  return values.readEvent(logged);
}
