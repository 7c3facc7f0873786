import {
  controlKinds,
  type CancellationCause,
  type ExecutionEvent,
  type ExecutionRole,
} from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { textAt } from "../../cursor.ts";
import {
  list,
  pageOf,
  slicedByBytes,
  type List,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../../list.ts";
import type { ExecutionContext } from "../context.ts";
import { eventBytes, eventColumns, eventOf, type EventRow } from "../event-row.ts";
import { corruptLog, type ExecutionRecord } from "../state-row.ts";

/**
 * True if ending an execution would interrupt work. Either it ever had children, which must end
 * before it, or it is a workflow with a history, whose code may have to clean up.
 */
export function* hasBegun({
  key,
  state: { role, historyFrom },
}: Pick<ExecutionRecord, "key" | "state">): Tx<boolean> {
  const child = yield* row(sql`
    SELECT id FROM holdfast_execution WHERE parent = ${key} LIMIT 1`);
  if (child !== undefined) return true;
  if (role !== "workflow") return false;
  const recorded = yield* row(sql`
    SELECT version FROM holdfast_execution_event
    WHERE execution = ${key} AND version > ${historyFrom} AND kind NOT IN ${textsOf(controlKinds)}
    ORDER BY version LIMIT 1`);
  return recorded !== undefined;
}

/** The reason for a cancellation, and its time. */
export interface CancellationView {
  readonly requestedAt: number;
  readonly reason: string | null;
  /** The execution ends as timed out if its deadline was the cause. */
  readonly cause: CancellationCause;
}

/** An execution that is being cancelled and has not finished. */
export interface CancellingExecution extends CancellationView {
  readonly id: ExecutionId;
  readonly role: ExecutionRole;
  readonly nextVersion: number;
  /** The end of a worker's lease; null when no worker holds it. */
  readonly leaseUntil: number | null;
}

/** The newest cancellation request; null unless the execution is being cancelled. @throws HoldfastError `CORRUPT_ROW` */
export function* cancellationOf({
  id,
  key,
  state: { lifecycle, version },
}: Pick<ExecutionRecord, "id" | "key" | "state">): Tx<CancellationView | null> {
  if (lifecycle !== "cancelling") return null;
  const found = yield* row<EventRow>(sql`
    SELECT ${eventColumns} FROM holdfast_execution_event
    WHERE execution = ${key} AND kind = 'cancellationRequested' ORDER BY version DESC LIMIT 1`);
  if (found === undefined) throw corruptLog(id, version);
  return cancellationView(found);
}

export interface CancellingOptions extends PageOptions {
  readonly function: string;
}

interface CancellingRow extends EventRow {
  readonly id: ExecutionId;
  readonly role: ExecutionRole;
  readonly next_version: number;
  readonly lease_until: number | null;
}

/** The executions of one function that are being cancelled, ordered by id. @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CURSOR_INVALID` */
export const cancellingList: List<
  ExecutionContext,
  [options: CancellingOptions],
  CancellingExecution
> = list("listCancelling", {
  table: "holdfast_execution",
  given(_: ExecutionContext, options: CancellingOptions) {
    const { filter, page } = pageOf(options, ["function"]);
    return { filter: { function: parseFunctionName(filter.function) }, page };
  },
  slice: cancellingSlice,
  keyOf: ({ id }: CancellingRow) => id,
  itemOf: (_, found) => cancellingOf(found),
});

function cancellingSlice(
  _: ExecutionContext,
  { function: name }: { readonly function: FunctionName },
  bounds: SliceBounds,
): Tx<Slice<CancellingRow>> {
  const next = (after: Place | undefined, count: number) => sql`
    FROM (
      SELECT key, id, role, version, lease_until FROM holdfast_execution
      WHERE lifecycle = 'cancelling' AND function = ${name} AND id > ${after ? textAt(after, 0) : ""}
      ORDER BY id LIMIT ${count}
    ) AS x LEFT JOIN holdfast_execution_event e ON e.execution = x.key AND e.version = (
      SELECT q.version FROM holdfast_execution_event q
      WHERE q.execution = x.key AND q.kind = 'cancellationRequested' ORDER BY q.version DESC LIMIT 1)
    ORDER BY x.id`;
  return slicedByBytes(
    bounds,
    ({ id }: CancellingRow) => [id],
    function* (after, count) {
      const found = yield* rows<{ readonly bytes: number }>(sql`
        SELECT COALESCE(${eventBytes}, 0) AS bytes ${next(after, count)}`);
      return found.map(({ bytes }) => bytes);
    },
    function* (after, count) {
      return yield* rows<CancellingRow>(sql`
        SELECT x.id, x.role, x.version + 1 AS next_version, x.lease_until,
          e.version, e.at, e.responses, e.kind, e.call, e.seen, e.body, e.payload
        ${next(after, count)}`);
    },
  );
}

type Requested = Extract<ExecutionEvent, { readonly kind: "cancellationRequested" }>;

/** @throws HoldfastError `CORRUPT_ROW` */
function cancellationView(found: EventRow): CancellationView {
  const { at, event } = eventOf(found);
  const { reason, cause } = event as Requested;
  return { requestedAt: at, reason, cause };
}

/** @throws HoldfastError `CORRUPT_ROW` */
function cancellingOf(found: CancellingRow): CancellingExecution {
  return {
    id: found.id,
    role: found.role,
    nextVersion: found.next_version,
    ...cancellationView(found),
    leaseUntil: found.lease_until,
  };
}
