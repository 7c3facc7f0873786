import type {
  CancellationCause,
  ExecutionEvent,
  ExecutionRole,
} from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { FunctionName } from "../../../model/function-name.ts";
import { row, rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sift } from "../../damage.ts";
import type { Sifted } from "../../damage.ts";
import { eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import { checkedLimit } from "../read/page-limit.ts";

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
  /** A worker has it until then; null when nobody does. */
  readonly leaseUntil: number | null;
}

export interface CancellingPage extends Sifted<CancellingExecution> {
  /** The last id of this page, when there are more after it. */
  readonly next: ExecutionId | undefined;
}

export interface ListCancelling {
  readonly function: FunctionName;
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: ExecutionId;
}

interface CancellingRow extends EventRow {
  readonly id: ExecutionId;
  readonly role: ExecutionRole;
  readonly next_version: number;
  readonly lease_until: number | null;
}

/** What is being cancelled, of one function, in the order of ids. @throws HoldfastError `OPTION_INVALID` */
export const listCancelling: Operation<ListCancelling, CancellingPage> =
  plainOperation("listCancelling", {
    key: (input: ListCancelling) => input.function,
    *one({ function: name, limit: wanted, after = "" }) {
      const limit = checkedLimit(wanted);
      // Little can be appended after the request, so it is found near the end.
      const found = yield* rows<CancellingRow>(sql`
        SELECT x.id, x.role, x.version + 1 AS next_version, x.lease_until,
          e.version, e.at, e.responses, e.kind, e.call, e.seen, e.body, e.payload
        FROM (
          SELECT key, id, role, version, lease_until FROM holdfast_execution
          WHERE lifecycle = 'cancelling' AND function = ${name} AND id > ${after} ORDER BY id LIMIT ${limit + 1}
        ) AS x LEFT JOIN holdfast_execution_event e ON e.execution = x.key AND e.version = (
          SELECT q.version FROM holdfast_execution_event q
          WHERE q.execution = x.key AND q.kind = 'cancellationRequested' ORDER BY q.version DESC LIMIT 1)
        ORDER BY x.id`);
      const page = found.slice(0, limit);
      return {
        ...sift("holdfast_execution", page, ({ id }) => id, cancellingOf),
        next: found.length > limit ? page.at(-1)?.id : undefined,
      };
    },
  });

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
