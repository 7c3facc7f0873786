import { corruptRow } from "../../model/corrupt-row.ts";
import type { ProcessSummary } from "../../model/process.ts";
import type { OwnerId } from "../../model/prefixed-id.ts";
import { rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sift } from "../damage.ts";
import type { Damaged } from "../damage.ts";
import {
  leaseStateOf,
  readingOf,
  type LeaseReading,
} from "../lease/lease-row.ts";
import { summaryColumns, summaryOf } from "./process-row.ts";
import type { SummaryRow } from "./process-row.ts";

export interface ListRunning {
  /** The last id of the page before. */
  readonly after: string;
  /** Only those that nobody has begun, or only those that somebody has. */
  readonly isStarted: boolean | undefined;
  readonly limit: number;
  readonly now: number;
}

/** A running process, and who works on it. */
export interface RunningProcess extends LeaseReading {
  readonly key: number;
  readonly process: ProcessSummary;
  /** True when somebody did and their lease has run out. */
  readonly hasExpired: boolean;
}

export interface RunningPage {
  readonly items: readonly RunningProcess[];
  readonly damaged: readonly Damaged[];
  /** The id to go on after; undefined at the end. */
  readonly next: string | undefined;
}

interface RunningRow extends SummaryRow {
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

/** Running processes by id, with those who work on them. What runs as an execution has its own workers. */
export const listRunning: Operation<ListRunning, RunningPage> = plainOperation(
  "listRunningProcesses",
  {
    key: () => "",
    *one({ after, isStarted, limit, now }) {
      const started =
        isStarted === undefined
          ? sql``
          : isStarted
            ? sql`AND p.started_at IS NOT NULL`
            : sql`AND p.started_at IS NULL`;
      const found = yield* rows<RunningRow>(sql`
        SELECT ${summaryColumns}, l.fence AS lease_fence, l.given_back, l.owner, l.incarnation, l.owner_process, l.token,
          l.claimed_at, l.renewed_at, l.expires_at
        FROM holdfast_process p LEFT JOIN holdfast_process_lease l ON l.process = p.key
        WHERE p.status = 'running' AND p.execution IS NULL AND p.id > ${after} ${started}
        ORDER BY p.id LIMIT ${limit + 1}`);
      const page = found.slice(0, limit);
      return {
        ...sift(
          "holdfast_process",
          page,
          ({ id }) => id,
          (one) => runningOf(one, now),
        ),
        next: found.length > limit ? page.at(-1)?.id : undefined,
      };
    },
  },
);

function runningOf(found: RunningRow, now: number): RunningProcess {
  const { owner_process: process, lease_fence: fence, ...rest } = found;
  const state = leaseStateOf({
    ...rest,
    process,
    fence: fence ?? 0,
    given_back: rest.given_back ?? 0,
  });
  if (state === undefined)
    throw corruptRow("holdfast_process_lease", found.id, "lacks parts");
  const reading = readingOf(state, now);
  return {
    ...reading,
    key: found.key,
    process: summaryOf(found),
    hasExpired: state.kind === "held" && reading.holder === undefined,
  };
}
