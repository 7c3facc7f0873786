import type { ProcessId } from "../../model/ids/process-id.ts";
import {
  decideRecovery,
  type ProcessRecovery,
  type ProcessStatus,
  type ProcessSummary,
} from "../../model/process/process.ts";
import { HoldfastError } from "../../model/errors.ts";
import { checkedFilterText, givenFlag } from "../../model/shape.ts";
import { behindPlace, belowHorizon, integersOf } from "../../sql/dialect.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { numberAt, textAt } from "../cursor.ts";
import {
  list,
  lists,
  pageOf,
  slicedFitting,
  type List,
  type Page,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import type { ProcessContext } from "./context.ts";
import { processLeaseOperations } from "./lease.ts";
import {
  sizedSummaryColumns,
  summaryColumns,
  summaryOf,
  type SizedSummary,
  type SummaryRow,
} from "./process-row.ts";
import { runningOf, runningSlice, type RunningProcess, type RunningRow } from "./running-row.ts";

/** The filter of a list of processes. */
export interface ListProcessesOptions extends PageOptions {
  /** Defaults to `running`. */
  readonly status?: ProcessStatus | "any";
  /** Only processes that wait for a signal (true), or only the others (false). */
  readonly waiting?: boolean;
  readonly definition?: string;
  readonly kind?: string;
  /** Only processes of which no session has a handle (true), or only the others (false). */
  readonly orphaned?: boolean;
}

interface ProcessFilter {
  readonly status: ProcessStatus | "any";
  readonly waiting: boolean | undefined;
  readonly definition: string | undefined;
  readonly kind: string | undefined;
  readonly orphaned: boolean | undefined;
}

const processTable = "holdfast_process";

/** Processes in the order of their ids. */
export const processList: List<ProcessContext, [options?: ListProcessesOptions], ProcessSummary> =
  list("listProcesses", {
    table: processTable,
    given(_: ProcessContext, options?: ListProcessesOptions) {
      const { filter, page } = pageOf(options, [
        "status",
        "waiting",
        "definition",
        "kind",
        "orphaned",
      ]);
      const { status = "running", waiting, definition, kind, orphaned } = filter;
      return {
        filter: {
          status: checkedStatus(status),
          waiting: givenFlag("waiting", waiting),
          definition: filterText("definition", definition),
          kind: filterText("kind", kind),
          orphaned: givenFlag("orphaned", orphaned),
        },
        page,
      };
    },
    slice: (_, filter: ProcessFilter, bounds) => processSlice(filter, bounds),
    keyOf: ({ id }: SummaryRow) => id,
    itemOf: (_, found) => summaryOf(found),
  });

function filterText(option: string, text?: string): string | undefined {
  return text === undefined ? undefined : checkedFilterText(option, text);
}

const statuses: readonly string[] = [
  "running",
  "completed",
  "failed",
  "cancelled",
  "abandoned",
  "any",
] satisfies (ProcessStatus | "any")[];

function checkedStatus(status: ProcessStatus | "any"): ProcessStatus | "any" {
  if (statuses.includes(status)) return status;
  throw new HoldfastError("OPTION_INVALID", `status must be one of ${statuses.join(", ")}.`, {
    option: "status",
  });
}

export function processSlice(filter: ProcessFilter, bounds: SliceBounds): Tx<Slice<SummaryRow>> {
  return slicedFitting<SummaryRow & SizedSummary, SummaryRow>(
    bounds,
    ({ id }) => [id],
    function* (after, count, smallMax) {
      return yield* rows<SummaryRow & SizedSummary>(sql`
        SELECT ${sizedSummaryColumns(smallMax)} FROM holdfast_process p
        WHERE p.id > ${after === undefined ? "" : textAt(after, 0)} ${conditionOf(filter)} ORDER BY p.id LIMIT ${count}`);
    },
    function* (large) {
      return yield* rows<SummaryRow>(sql`
        SELECT ${summaryColumns} FROM holdfast_process p
        WHERE p.key IN ${integersOf(large.map(({ key }) => key))} ORDER BY p.id`);
    },
  );
}

const everything: Statement = sql``;

function conditionOf(filter: ProcessFilter): Statement {
  const { status, waiting, definition, kind, orphaned } = filter;
  const grants = sql`SELECT 1 FROM holdfast_process_grant g WHERE g.process = p.key`;
  const conditions = [
    status === "any" ? everything : sql`AND p.status = ${status}`,
    waiting === undefined
      ? everything
      : waiting
        ? // Only running processes wait. The status is repeated for the index, which covers only those.
          sql`AND p.status = 'running' AND p.wait IS NOT NULL`
        : sql`AND p.wait IS NULL`,
    definition === undefined ? everything : sql`AND p.definition = ${definition}`,
    kind === undefined ? everything : sql`AND p.kind = ${kind}`,
    orphaned === undefined
      ? everything
      : orphaned
        ? sql`AND NOT EXISTS (${grants})`
        : sql`AND EXISTS (${grants})`,
  ];
  return conditions.reduce((left, right) => sql`${left} ${right}`);
}

export interface ProcessWorklistOptions extends PageOptions {
  /** Only started processes (true), or only those that were never started (false). */
  readonly started?: boolean;
}

/** A process without a worker. */
export interface RecoverableProcess {
  /** `get` shows the input of one process. */
  readonly process: ProcessSummary;
  /**
   * The reason that it has no worker: never claimed or released, an expired lease, or a dead owner.
   */
  readonly lease: "none" | "expired" | "ownerDead";
  /** The recovery that follows from its disposition and its number of starts. */
  readonly recovery: ProcessRecovery;
}

interface JudgedRow {
  readonly row: RunningRow;
  /** The instant at which its lease was judged. */
  readonly now: number;
}

interface JudgedProcess extends RunningProcess {
  readonly now: number;
}

/** Running processes by id, with their workers. */
const runningList: List<ProcessContext, [options?: ProcessWorklistOptions], JudgedProcess> = list(
  "listRunningProcesses",
  {
    table: processTable,
    given(_: ProcessContext, options?: ProcessWorklistOptions) {
      const { filter, page } = pageOf(options, ["started"]);
      const isStarted = givenFlag("started", filter.started);
      return { filter: { isStarted }, page };
    },
    *slice({ clock }, { isStarted }: { readonly isStarted: boolean | undefined }, bounds) {
      const { rows: found, next } = yield* runningSlice(isStarted, bounds);
      const now = clock.now();
      return { rows: found.map((row) => ({ row, now })), next };
    },
    keyOf: ({ row }: JudgedRow) => row.id,
    itemOf: (_, { row, now }) => ({ ...runningOf(row, now), now }),
  },
);

/** Running processes without a worker. Expired leases are recorded as ended. */
export async function worklist(
  context: ProcessContext,
  options: ProcessWorklistOptions | undefined,
): Promise<Page<RecoverableProcess>> {
  const { items, damaged, next } = await lists(context, runningList)(options);
  const ended = items.filter((item) => item.isUnrecordedEnd);
  const [first] = ended;
  if (first !== undefined) {
    const of = ended.toSorted((a, b) => a.key - b.key).map(({ process }) => process.id);
    const { signal, timeout } = options ?? {};
    await processLeaseOperations.recordFoundEnds(
      context,
      { of, at: first.now },
      { signal, timeout },
    );
  }
  const unattended = await withoutLiving(context, items);
  return {
    items: unattended.map(({ process, holder, hasExpired }) => ({
      process,
      lease: holder ? "ownerDead" : hasExpired ? "expired" : "none",
      recovery: decideRecovery(process),
    })),
    damaged,
    next,
  };
}

/** Processes without a worker, or with a dead one. Each owner is checked once. */
async function withoutLiving(
  { database }: ProcessContext,
  running: readonly RunningProcess[],
): Promise<readonly RunningProcess[]> {
  const dead = new Map<string, boolean>();
  const kept: RunningProcess[] = [];
  for (const one of running) {
    const { holder } = one;
    if (holder !== undefined) {
      const { process } = holder;
      if (process === null) continue;
      if (!dead.has(process)) dead.set(process, (await database.liveness(process)) === "dead");
      if (dead.get(process) !== true) continue;
    }
    kept.push(one);
  }
  return kept;
}

/** A change of a process. Its event has the details. */
export interface ProcessChange {
  readonly process: ProcessId;
  readonly sequence: number;
  readonly type: string;
  readonly at: number;
}

interface ChangeRow extends ProcessChange {
  readonly tx: number;
  readonly key: number;
}

const start: Place = [0, 0];

/**
 * Changes of processes after a cursor, in an order in which none can be missed. Changes that a
 * slower transaction may still precede are left out. There is always a next cursor, since the feed
 * has no end.
 */
export const changeList: List<ProcessContext, [options?: PageOptions], ProcessChange> = list(
  "readProcessChanges",
  {
    table: "holdfast_process_event",
    given(_: ProcessContext, options?: PageOptions) {
      return { filter: {}, page: pageOf(options, []).page };
    },
    slice: (_, __: object, bounds) => changeSlice(bounds),
    keyOf: ({ process, sequence }: ChangeRow) => `${process}:${sequence}`,
    itemOf: (_, { process, sequence, type, at }) => ({
      process,
      sequence,
      type,
      at,
    }),
  },
);

export function* changeSlice({ after = start, limit }: SliceBounds): Tx<Slice<ChangeRow>> {
  const found = yield* rows<ChangeRow>(sql`
    SELECT e.tx, e.key, p.id AS process, e.sequence, e.type, e.at
    FROM holdfast_process_event e JOIN holdfast_process p ON p.key = e.process
    WHERE ${behindPlace(numberAt(after, 0), numberAt(after, 1))} AND ${belowHorizon}
    ORDER BY e.tx, e.key LIMIT ${limit}`);
  const last = found.at(-1);
  return { rows: found, next: last ? [last.tx, last.key] : after };
}
