import type { SessionScope } from "../../model/process/process.ts";
import { givenFlag } from "../../model/shape.ts";
import { integersOf } from "../../sql/dialect.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StoreContext } from "../context.ts";
import { numberAt } from "../cursor.ts";
import {
  list,
  pageOf,
  slicedFitting,
  type List,
  type PageOptions,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import { grantColumns, grantOf, type GrantRow, type ProcessHandle } from "./grant-row.ts";
import { livingScope, scopeNamed, type SessionScopeName, type SessionScopeRef } from "./parts.ts";
import {
  sizedSummaryColumns,
  summaryColumns,
  summaryOf,
  type SizedSummary,
  type SummaryRow,
} from "./process-row.ts";

export interface ListHandlesOptions extends PageOptions {
  /** True for handles of running processes only; defaults to all. */
  readonly live?: boolean;
}

type HandleRow = SummaryRow & GrantRow;

interface HandleFilter {
  readonly scope: SessionScopeRef;
  readonly isLive: boolean;
}

/**
 * The handles of a session, or of one frame of it, in the order in which their processes were
 * registered.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const handleList: List<
  StoreContext,
  [scope: SessionScopeName, options?: ListHandlesOptions],
  ProcessHandle
> = list("listHandles", {
  table: "holdfast_process",
  given(_: StoreContext, scope: SessionScopeName, options?: ListHandlesOptions) {
    const { filter, page } = pageOf(options, ["live"]);
    const isLive = givenFlag("live", filter.live) ?? false;
    return { filter: { scope: scopeNamed(scope), isLive }, page };
  },
  *slice(_, { scope, isLive }: HandleFilter, bounds) {
    return yield* handleSlice(yield* livingScope(scope), isLive, bounds);
  },
  keyOf: ({ id }: HandleRow) => id,
  itemOf: (_, found) => ({ grant: grantOf(found), process: summaryOf(found) }),
});

export function handleSlice(
  { session, generation, frame }: SessionScope,
  isLive: boolean,
  bounds: SliceBounds,
): Tx<Slice<HandleRow>> {
  const live = isLive ? sql`AND p.status = 'running'` : sql``;
  const granted = sql`
    FROM holdfast_process_grant g JOIN holdfast_process p ON p.key = g.process
    WHERE g.session = ${session} AND g.generation = ${generation} AND g.frame = ${frame ?? ""}`;
  return slicedFitting<HandleRow & SizedSummary, HandleRow>(
    bounds,
    ({ key }) => [key],
    function* (after, count, smallMax) {
      return yield* rows<HandleRow & SizedSummary>(sql`
        SELECT ${sizedSummaryColumns(smallMax)}, ${grantColumns} ${granted}
          AND g.process > ${after === undefined ? 0 : numberAt(after, 0)} ${live}
        ORDER BY g.process LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<HandleRow>(sql`
        SELECT ${summaryColumns}, ${grantColumns} ${granted}
          AND g.process IN ${integersOf(large.map(({ key }) => key))} ORDER BY g.process`);
    },
  );
}
