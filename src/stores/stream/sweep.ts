import { integersOf } from "../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StreamContext } from "./context.ts";
import { removeStream } from "./parts.ts";

/** The number of runs that one call reads. */
const runsMax = 200;

interface SweepStreams {
  readonly endedBefore: number;
  /** The last execution that a call before this one read. */
  readonly after: number;
}

export interface EndedStreams {
  /** Executions whose output is no longer kept. */
  readonly executions: readonly number[];
  /** Where the next call continues; undefined at the end. */
  readonly next: number | undefined;
}

/** Finds runs that ended before an instant, or are gone, and still have output. Reads some runs per call. */
export const findEndedStreams = storeOperation("findEndedStreams", {
  key: () => "streams",
  *one(_: StreamContext, { endedBefore, after }: SweepStreams): Tx<EndedStreams> {
    const found = yield* rows<{ readonly execution: number }>(sql`
      SELECT execution FROM holdfast_stream WHERE execution > ${after} ORDER BY execution LIMIT ${runsMax}`);
    if (found.length === 0) return { executions: [], next: undefined };
    const all = found.map(({ execution }) => execution);
    const kept = yield* rows<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_execution
      WHERE key IN ${integersOf(all)} AND (state <> 'finished' OR finished_at > ${endedBefore})`);
    const isKept = new Set(kept.map(({ key }) => key));
    return {
      executions: all.filter((execution) => !isKept.has(execution)),
      next: found.length < runsMax ? undefined : all.at(-1),
    };
  },
});

interface RemoveStream {
  readonly execution: number;
  readonly rowsMax: number;
}

/** Removes rows of the output of a run that has ended; returns their number, fewer than requested if none are left. */
export const removeStreamSlice = storeOperation("removeStreamSlice", {
  key: (input) => String(input.execution),
  *one(_: StreamContext, { execution, rowsMax }: RemoveStream): Tx<number> {
    return yield* removeStream(execution, rowsMax);
  },
});
