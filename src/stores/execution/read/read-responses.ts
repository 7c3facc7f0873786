import { HoldfastError } from "../../../model/errors.ts";
import type { LoggedResponse } from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { JoinSetId } from "../../../model/join-set-id.ts";
import { checkedCount, checkedFilterText } from "../../../model/shape.ts";
import { rows, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sift } from "../../damage.ts";
import type { Sifted } from "../../damage.ts";
import { responseOf, responseRows } from "../lock/history.ts";
import { checkedLimit, scanRowsMax } from "./page-limit.ts";
import { findStanding } from "./read.ts";

type ResponseRow = Parameters<typeof responseOf>[0];

export interface ListResponses {
  readonly id: ExecutionId;
  /** The responses nearest after this number. */
  readonly after?: number | undefined;
  /** The responses nearest before this number. With neither, the newest. */
  readonly before?: number | undefined;
  /** Counts the cursor's own response in. */
  readonly inclusive?: boolean | undefined;
  readonly limit: number;
  /** Only those of one set. Few of them among many others make short pages. */
  readonly joinSet?: JoinSetId | undefined;
}

export interface ResponsePage extends Sifted<LoggedResponse> {
  /** The (exclusive) cursor of the next page in the same direction; undefined when there is none now. */
  readonly next: number | undefined;
  /** The number of the newest response there is; 0 when there is none. */
  readonly lastSeq: number;
}

/**
 * Responses in the order of their numbers, whichever way the pages go; with
 * `joinSet` among at most 2,000 of them. Of an unknown execution there are
 * none.
 *
 * @throws HoldfastError `OPTION_INVALID`
 */
export const listResponses: Operation<ListResponses, ResponsePage> =
  plainOperation("listResponses", {
    key: (input: ListResponses) => input.id,
    *one(input) {
      const limit = checkedLimit(input.limit);
      assertOneCursor(input);
      if (input.joinSet !== undefined)
        checkedFilterText("joinSet", input.joinSet);
      const found = yield* findStanding(input.id);
      if (found === undefined)
        return { items: [], damaged: [], next: undefined, lastSeq: 0 };
      const { key, responses: lastSeq } = found;
      const range = rangeOf(input, limit, lastSeq);
      const only =
        input.joinSet === undefined
          ? sql`1 = 1`
          : // Not a bare column: by the index on it a large set would be read as a whole and sorted.
            sql`r.inbox || '' = ${input.joinSet}`;
      const page = yield* rows<ResponseRow>(sql`
        ${responseRows}
        WHERE r.execution = ${key} AND r.seq >= ${range.low} AND r.seq <= ${range.high} AND ${only}
        ORDER BY r.seq ${range.isUp ? sql`ASC` : sql`DESC`} LIMIT ${limit}`);
      const reached = page.length === limit ? page.at(-1)?.seq : undefined;
      return {
        ...sift(
          "holdfast_execution_response",
          range.isUp ? page : page.toReversed(),
          ({ seq }) => `${input.id}#${seq}`,
          soundResponse,
        ),
        next: nextCursor(range, reached, lastSeq),
        lastSeq,
      };
    },
  });

interface SeqRange {
  readonly isUp: boolean;
  /** Included; may be empty (`low > high`). */
  readonly low: number;
  readonly high: number;
}

/** Numbers have no gaps, so a range of them bounds the rows that are looked at. */
function rangeOf(
  { after, before, inclusive = false, joinSet }: ListResponses,
  limit: number,
  last: number,
): SeqRange {
  const span = joinSet === undefined ? limit : scanRowsMax;
  if (after !== undefined) {
    const low = Math.max(1, Math.min(inclusive ? after : after + 1, last + 1));
    return { isUp: true, low, high: Math.min(low + span - 1, last) };
  }
  const end = before === undefined || inclusive ? before : before - 1;
  const high = Math.min(end ?? last, last);
  return { isUp: false, low: Math.max(1, high - span + 1), high };
}

function nextCursor(
  { isUp, low, high }: SeqRange,
  reached: number | undefined,
  last: number,
): number | undefined {
  const edge = reached ?? (isUp ? high : low);
  return (isUp ? edge < last : edge > 1) ? edge : undefined;
}

function assertOneCursor({ after, before }: ListResponses): void {
  if (after !== undefined) checkedCount("after", after);
  if (before !== undefined) checkedCount("before", before);
  if (after !== undefined && before !== undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "A page goes one way: give `after` or `before`, not both.",
      { option: "before" },
    );
}

/** A child's result is in the child's log, which goes only together with its parent's. */
function soundResponse(found: ResponseRow): LoggedResponse {
  if (found.kind !== "delay" && found.payload === null)
    throw new HoldfastError(
      "CORRUPT_ROW",
      `Response ${found.seq} has lost its value. Look at it with a database shell; restore it from a backup.`,
      { table: "holdfast_execution_response", key: found.seq },
    );
  return responseOf(found);
}
