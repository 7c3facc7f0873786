import type { ProcessId } from "../../model/process-id.ts";
import { behindPlace, belowHorizon } from "../../sql/dialect.ts";
import { rows, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { numberAt } from "../cursor.ts";
import {
  list,
  pageOf,
  type List,
  type Page,
  type PageOptions,
  type Place,
  type Slice,
  type SliceBounds,
} from "../list.ts";
import type { ProcessContext } from "./context.ts";

/** Something that happened to a process. Its event has the rest. */
export interface ProcessChange {
  readonly process: ProcessId;
  readonly sequence: number;
  readonly type: string;
  readonly at: number;
}

/** A feed has no end: there is always somewhere to go on, now or later. */
export interface ProcessChangePage extends Page<ProcessChange> {
  readonly next: string;
}

interface ChangeRow extends ProcessChange {
  readonly tx: number;
  readonly key: number;
}

const start: Place = [0, 0];

/**
 * What happened to processes behind a cursor, in an order in which nothing
 * can be missed: what a slower transaction may still precede is left out.
 */
export const changeList: List<
  ProcessContext,
  [options?: PageOptions],
  ProcessChange
> = list("readProcessChanges", {
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
});

export function* changeSlice({
  after = start,
  limit,
}: SliceBounds): Tx<Slice<ChangeRow>> {
  const found = yield* rows<ChangeRow>(sql`
    SELECT e.tx, e.key, p.id AS process, e.sequence, e.type, e.at
    FROM holdfast_process_event e JOIN holdfast_process p ON p.key = e.process
    WHERE ${behindPlace(numberAt(after, 0), numberAt(after, 1))} AND ${belowHorizon}
    ORDER BY e.tx, e.key LIMIT ${limit}`);
  const last = found.at(-1);
  return { rows: found, next: last ? [last.tx, last.key] : after };
}
