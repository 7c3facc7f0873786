import { corruptRow } from "../../model/corrupt-row.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import type { ProcessSummary } from "../../model/process/process.ts";
import { integersOf } from "../../sql/dialect.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { textAt } from "../cursor.ts";
import { sift, type Sifted } from "../damage.ts";
import { leaseStateOf, readingOf, type LeaseReading } from "../lease/lease-row.ts";
import { slicedFitting, type Slice, type SliceBounds } from "../list.ts";
import {
  sizedSummaryColumns,
  summaryColumns,
  summaryOf,
  type SizedSummary,
  type SummaryRow,
} from "./process-row.ts";

/** A running process with the row of its lease. */
export interface RunningRow extends SummaryRow {
  readonly lease_fence: number | null;
  readonly given_back: number | null;
  readonly owner: string | null;
  readonly incarnation: string | null;
  readonly owner_process: OwnerId | null;
  readonly token: string | null;
  readonly claimed_at: number | null;
  readonly renewed_at: number | null;
  readonly expires_at: number | null;
}

/**
 * Running processes by id, with their workers: all, never started ones only, or started ones only.
 * Processes that run as executions have their own workers.
 */
export function runningSlice(
  isStarted: boolean | undefined,
  bounds: SliceBounds,
): Tx<Slice<RunningRow>> {
  const started =
    isStarted === undefined
      ? sql``
      : isStarted
        ? sql`AND p.started_at IS NOT NULL`
        : sql`AND p.started_at IS NULL`;
  return slicedFitting<RunningRow & SizedSummary, RunningRow>(
    bounds,
    ({ id }) => [id],
    function* (after, count, smallMax) {
      return yield* rows<RunningRow & SizedSummary>(sql`
        SELECT ${sizedSummaryColumns(smallMax)}, ${leaseColumns}
        WHERE p.status = 'running' AND p.execution IS NULL
          AND p.id > ${after === undefined ? "" : textAt(after, 0)} ${started}
        ORDER BY p.id LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<RunningRow>(sql`
        SELECT ${summaryColumns}, ${leaseColumns}
        WHERE p.key IN ${integersOf(large.map(({ key }) => key))} ORDER BY p.id`);
    },
  );
}

const leaseColumns: Statement = sql`
  l.fence AS lease_fence, l.given_back, l.owner, l.incarnation, l.owner_process, l.token, l.claimed_at, l.renewed_at,
    l.expires_at
  FROM holdfast_process p LEFT JOIN holdfast_process_lease l ON l.process = p.key`;

/** A running process, and its worker. */
export interface RunningProcess extends LeaseReading {
  readonly key: number;
  readonly process: ProcessSummary;
  /** True when it had a worker whose lease has expired. */
  readonly hasExpired: boolean;
}

/** @throws HoldfastError `CORRUPT_ROW` */
export function runningOf(found: RunningRow, now: number): RunningProcess {
  const { owner_process: process, lease_fence: fence, ...rest } = found;
  const state = leaseStateOf({
    ...rest,
    process,
    fence: fence ?? 0,
    given_back: rest.given_back ?? 0,
  });
  if (state === undefined) throw corruptRow("holdfast_process_lease", found.id, "lacks parts");
  const reading = readingOf(state, now);
  return {
    ...reading,
    key: found.key,
    process: summaryOf(found),
    hasExpired: state.kind === "held" && reading.holder === undefined,
  };
}

/** Running processes after an id, judged at an instant. */
export function* readRunning({
  after,
  isStarted,
  limit,
  now,
}: {
  readonly after: string;
  readonly isStarted: boolean | undefined;
  readonly limit: number;
  readonly now: number;
}): Tx<
  Sifted<RunningProcess> & {
    /** The id to continue after; undefined at the end. */
    readonly next: string | undefined;
  }
> {
  const bounds = { after: [after], limit };
  const { rows: page, next } = yield* runningSlice(isStarted, bounds);
  const sifted = sift(
    "holdfast_process",
    page,
    ({ id }) => id,
    (each) => runningOf(each, now),
  );
  return { ...sifted, next: next && textAt(next, 0) };
}
