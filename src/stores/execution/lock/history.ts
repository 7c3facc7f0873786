import type { LoggedEvent } from "../../../model/execution/event.ts";
import { isHistoryKind } from "../../../model/execution/history-event.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { pageBytesMax, rowBytes, rowsWithin } from "../../list.ts";
import {
  eventBytes,
  eventColumns,
  eventOf,
  responseBytes,
  responseColumns,
  responseTables,
  storedResponseOf,
  type EventRow,
  type StoredResponse,
  type ValuedResponseRow,
} from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";

/** The execution whose rows are read. */
type Owner = Pick<ExecutionRecord, "id" | "key">;

/** Some items in order, and whether more follow. */
export interface LoadedPage<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** The number of rows that fit into the few milliseconds a transaction may take. */
const pageRowsMax = 200;

/**
 * The bytes of histories and responses that one call may still read. A spent budget ends every
 * page.
 */
export class ReadBudget {
  #left: number = pageBytesMax;

  get left(): number {
    return this.#left;
  }

  /** True until something has been read. */
  get isWhole(): boolean {
    return this.#left === pageBytesMax;
  }

  /** The number of next rows that fit: at least one if nothing has been read yet. */
  fitting(bytes: readonly number[]): number {
    const count = rowsWithin(bytes, this.#left);
    const [first = 0] = bytes;
    return count === 1 && rowBytes + first > this.#left && !this.isWhole ? 0 : count;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  spend(bytes: number): void {
    this.#left -= bytes;
  }
}

/** History events in order, and the version up to which the log was searched for them. */
export interface HistoryPage extends LoadedPage<LoggedEvent> {
  /** Continue after this version. */
  readonly upTo: number;
}

/**
 * History events after a version. Lock events in between are left out but cost something too: a run
 * that was only ever locked again ends the page as well. If the budget was spent first, more may
 * follow.
 */
export function* historyPage(
  { id, key: execution }: Owner,
  afterVersion: number,
  lastVersion: number,
  budget: ReadBudget,
): Tx<HistoryPage> {
  const events: NumberedRows<EventRow> = {
    number: sql`version`,
    bytes: eventBytes,
    columns: eventColumns,
    from: sql`holdfast_execution_event WHERE execution = ${execution}`,
    numberOf: ({ version }) => version,
    missing: (version) => missingRow("holdfast_execution_event", id, version),
  };
  const items: LoggedEvent[] = [];
  let upTo = afterVersion;
  for (;;) {
    const wanted = pageRowsMax + 1 - items.length;
    const high = Math.min(upTo + wanted, lastVersion);
    const { found, isCut } = yield* readWithin(budget, events, upTo, high);
    for (const event of found) {
      if (isHistoryKind(event.kind)) {
        if (items.length === pageRowsMax) return { items, hasMore: true, upTo };
        items.push(eventOf(event));
      }
      upTo = event.version;
    }
    if (isCut) return { items, hasMore: true, upTo };
    upTo = high;
    if (high >= lastVersion) return { items, hasMore: false, upTo };
  }
}

/**
 * Responses after a number, up to the last one. With an id, a missing response is damage: none
 * after the start of a run has been removed.
 */
export function* responsePage(
  { id, key: execution }: Partial<Owner> & Pick<Owner, "key">,
  afterSeq: number,
  lastSeq: number,
  budget: ReadBudget = new ReadBudget(),
): Tx<LoadedPage<StoredResponse>> {
  const responses: NumberedRows<ValuedResponseRow> = {
    number: sql`r.seq`,
    bytes: responseBytes,
    columns: responseColumns,
    from: sql`${responseTables} WHERE r.execution = ${execution}`,
    numberOf: ({ seq }) => seq,
    ...(id !== undefined && {
      missing: (seq) => missingRow("holdfast_execution_response", id, seq),
    }),
  };
  for (let after = afterSeq; ;) {
    const high = Math.min(after + pageRowsMax, lastSeq);
    const { found, isCut } = yield* readWithin(budget, responses, after, high);
    const hasMore = isCut || high < lastSeq;
    if (found.length > 0 || isCut || !hasMore)
      return { items: found.map(storedResponseOf), hasMore };
    // Pruning left a gap.
    const [next] = yield* rows<{ readonly seq: number }>(sql`
      SELECT seq FROM holdfast_execution_response
      WHERE execution = ${execution} AND seq > ${high} ORDER BY seq LIMIT 1`);
    if (next === undefined) return { items: [], hasMore: false };
    after = next.seq - 1;
  }
}

/**
 * Unread signals that a new start took over, up to the last response before it. They are few among
 * many, so their sizes are read first.
 */
export function* unreadPage(
  execution: number,
  upTo: number,
  budget: ReadBudget,
): Tx<LoadedPage<StoredResponse>> {
  if (budget.isSpent) return { items: [], hasMore: true };
  const sizes = yield* rows<Sized & { readonly seq: number }>(sql`
    SELECT seq, COALESCE(octet_length(payload), 0) AS bytes FROM holdfast_execution_response
    WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL AND seq <= ${upTo}
    ORDER BY seq LIMIT ${pageRowsMax + 1}`);
  const first = sizes.slice(0, pageRowsMax);
  const kept = first.slice(0, budget.fitting(first.map(({ bytes }) => bytes)));
  for (const { bytes } of kept) budget.spend(rowBytes + bytes);
  const found = yield* rows<ValuedResponseRow>(sql`
    SELECT ${responseColumns} FROM ${responseTables}
    WHERE r.execution = ${execution} AND r.seq IN ${integersOf(kept.map(({ seq }) => seq))} ORDER BY r.seq`);
  return { items: found.map(storedResponseOf), hasMore: kept.length < sizes.length };
}

/** Rows numbered without gaps before any removal, and the facts needed to read them. */
interface NumberedRows<R> {
  readonly number: Statement;
  readonly bytes: Statement;
  readonly columns: Statement;
  /** The statement's start, up to the condition that chooses the execution. */
  readonly from: Statement;
  readonly numberOf: (row: R) => number;
  /** The error for a gap; without it some rows may have been removed. */
  readonly missing?: (number: number) => HoldfastError;
}

/** The error for a missing row: without it a run would repeat work that the row records as done. */
function missingRow(table: string, id: ExecutionId, number: number): HoldfastError {
  return corruptRow(table, `${id}#${number}`, "is missing");
}

interface Sized {
  readonly bytes: number;
}

interface Read<R> {
  readonly found: readonly R[];
  /** True if the next row does not fit. */
  readonly isCut: boolean;
}

/**
 * The rows of some numbers in order, as long as they fit into the budget: at least one if nothing
 * was read before. One statement reads the small rows, so small that they fit in any number. A
 * number that is then missing belongs to a large row, whose size is read before its value.
 * @throws HoldfastError `CORRUPT_ROW` when a row is missing
 */
function* readWithin<R extends object>(
  budget: ReadBudget,
  numbered: NumberedRows<R>,
  after: number,
  upTo: number,
): Tx<Read<R>> {
  const { number, bytes, columns, from, numberOf, missing } = numbered;
  if (upTo <= after) return { found: [], isCut: false };
  if (budget.isSpent) return { found: [], isCut: true };
  const smallMax = Math.floor(budget.left / (upTo - after)) - rowBytes;
  const small = yield* rows<R & Sized>(sql`
    SELECT ${columns}, ${bytes} AS bytes FROM ${from} AND ${number} > ${after} AND ${number} <= ${upTo}
      AND ${bytes} <= ${smallMax} ORDER BY ${number}`);
  if (small.length === upTo - after) {
    for (const row of small) budget.spend(rowBytes + row.bytes);
    return { found: small, isCut: false };
  }
  const known = new Map<number, R>(small.map((row) => [numberOf(row), row]));
  const sizes = yield* rows<Sized & { readonly n: number }>(sql`
    SELECT ${number} AS n, ${bytes} AS bytes FROM ${from}
      AND ${number} > ${after} AND ${number} <= ${upTo} ORDER BY ${number}`);
  const gap = sizes.findIndex(({ n }, index) => n !== after + 1 + index);
  const present = gap >= 0 ? gap : sizes.length;
  if (missing !== undefined && present < upTo - after) throw missing(after + 1 + present);
  const fitting = budget.fitting(sizes.map((row) => row.bytes));
  const kept = sizes.slice(0, fitting);
  const large = kept.filter(({ n }) => !known.has(n)).map(({ n }) => n);
  for (const row of yield* rows<R>(sql`
    SELECT ${columns} FROM ${from} AND ${number} IN ${integersOf(large)}`))
    known.set(numberOf(row), row);
  for (const row of kept) budget.spend(rowBytes + row.bytes);
  return {
    found: kept.map(({ n }) => known.get(n) as R),
    isCut: fitting < sizes.length,
  };
}
