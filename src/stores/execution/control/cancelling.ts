import type {
  CancellationCause,
  ExecutionEvent,
  ExecutionRole,
} from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import {
  parseFunctionName,
  type FunctionName,
} from "../../../model/ids/function-name.ts";
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
import { eventBytes, eventOf, type EventRow } from "../event-row.ts";

/** True when an execution ever had children: then they are to end before it. */
export function* hasChildren(execution: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT id FROM holdfast_execution WHERE parent = ${execution} LIMIT 1`);
  return found !== undefined;
}

/** An execution that is being cancelled and has not ended. */
export interface CancellingExecution {
  readonly id: ExecutionId;
  readonly role: ExecutionRole;
  readonly nextVersion: number;
  readonly requestedAt: number;
  readonly reason: string | null;
  /** It ends as timed out when its deadline was the cause. */
  readonly cause: CancellationCause;
  /** A worker has it until then; null when none does. */
  readonly leaseUntil: number | null;
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

/** What is being cancelled, of one function, in the order of ids. @throws HoldfastError `NAME_INVALID`, `OPTION_INVALID`, `CURSOR_INVALID` */
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
  // Little can be appended after the request, so it is found near the end.
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

type Requested = Extract<
  ExecutionEvent,
  { readonly kind: "cancellationRequested" }
>;

/** @throws HoldfastError `CORRUPT_ROW` */
function cancellingOf(found: CancellingRow): CancellingExecution {
  const { at, event } = eventOf(found);
  const { reason, cause } = event as Requested;
  return {
    id: found.id,
    role: found.role,
    nextVersion: found.next_version,
    requestedAt: at,
    reason,
    cause,
    leaseUntil: found.lease_until,
  };
}
