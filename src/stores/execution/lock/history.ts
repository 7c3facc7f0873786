import type { LoggedEvent, LoggedResponse } from "../../../model/execution/event.ts";
import { isHistoryKind } from "../../../model/execution/history-event.ts";
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
  responseOf,
  responseTables,
  type EventRow,
  type ResponseRow,
} from "../event-row.ts";

/** Some items in order, and whether there are more after them. */
export interface LoadedPage<T> {
  readonly items: readonly T[];
  readonly hasMore: boolean;
}

/** So many rows fit into the few milliseconds a transaction may take. */
const pageRowsMax = 200;

/** Bytes of histories and responses that one call may still read; once they are spent there are no more rows. */
export class ReadBudget {
  #left: number = pageBytesMax;

  get left(): number {
    return this.#left;
  }

  /** True as long as nothing was read. */
  get isWhole(): boolean {
    return this.#left === pageBytesMax;
  }

  /** How many of the rows that come next fit: one at least, if it is the first of all. */
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

/** History events in order, and how far the log was looked through for them. */
export interface HistoryPage extends LoadedPage<LoggedEvent> {
  /** Read on after this version. */
  readonly upTo: number;
}

/**
 * History events after a version; what happened to the lock in between is left
 * out, but costs something too: a run that was only ever locked again ends the
 * page as well. When the budget ended first there may be more.
 */
export function* historyPage(
  execution: number,
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

/** Responses after a number, of those up to the last one. */
export function* responsePage(
  execution: number,
  afterSeq: number,
  lastSeq: number,
  budget: ReadBudget = new ReadBudget(),
): Tx<LoadedPage<LoggedResponse>> {
  const responses: NumberedRows<ResponseRow> = {
    number: sql`r.seq`,
    bytes: responseBytes,
    columns: responseColumns,
    from: sql`${responseTables} WHERE r.execution = ${execution}`,
    numberOf: ({ seq }) => seq,
  };
  for (let after = afterSeq; ;) {
    const high = Math.min(after + pageRowsMax, lastSeq);
    const { found, isCut } = yield* readWithin(budget, responses, after, high);
    const hasMore = isCut || high < lastSeq;
    if (found.length > 0 || isCut || !hasMore) return { items: found.map(responseOf), hasMore };
    // What was pruned has left a gap.
    const [next] = yield* rows<{ readonly seq: number }>(sql`
      SELECT seq FROM holdfast_execution_response
      WHERE execution = ${execution} AND seq > ${high} ORDER BY seq LIMIT 1`);
    if (next === undefined) return { items: [], hasMore: false };
    after = next.seq - 1;
  }
}

/**
 * Signals that a new start took over unread, up to the last response before
 * it. They are few among many, so their sizes are looked at first.
 */
export function* unreadPage(
  execution: number,
  upTo: number,
  budget: ReadBudget,
): Tx<LoadedPage<LoggedResponse>> {
  if (budget.isSpent) return { items: [], hasMore: true };
  const sizes = yield* rows<Sized & { readonly seq: number }>(sql`
    SELECT seq, COALESCE(octet_length(payload), 0) AS bytes FROM holdfast_execution_response
    WHERE execution = ${execution} AND kind = 'signal' AND read_by IS NULL AND seq <= ${upTo}
    ORDER BY seq LIMIT ${pageRowsMax + 1}`);
  const first = sizes.slice(0, pageRowsMax);
  const kept = first.slice(0, budget.fitting(first.map(({ bytes }) => bytes)));
  for (const { bytes } of kept) budget.spend(rowBytes + bytes);
  const found = yield* rows<ResponseRow>(sql`
    SELECT ${responseColumns} FROM ${responseTables}
    WHERE r.execution = ${execution} AND r.seq IN ${integersOf(kept.map(({ seq }) => seq))} ORDER BY r.seq`);
  return { items: found.map(responseOf), hasMore: kept.length < sizes.length };
}

/** Rows that have numbers without gaps: what there is to know for reading them. */
interface NumberedRows<R> {
  readonly number: Statement;
  readonly bytes: Statement;
  readonly columns: Statement;
  /** Up to the condition that chooses the execution. */
  readonly from: Statement;
  readonly numberOf: (row: R) => number;
}

interface Sized {
  readonly bytes: number;
}

interface Read<R> {
  readonly found: readonly R[];
  /** True when the next one does not fit. */
  readonly isCut: boolean;
}

/**
 * The rows of some numbers in order, as long as they fit into the budget: one
 * at least, if nothing was read before. Most rows are small, and one statement reads
 * those: so small that they fit whatever their number. A number that is missing
 * then is that of a large row, whose size is looked at before it is read.
 */
function* readWithin<R extends object>(
  budget: ReadBudget,
  numbered: NumberedRows<R>,
  after: number,
  upTo: number,
): Tx<Read<R>> {
  const { number, bytes, columns, from, numberOf } = numbered;
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
