import type { Encoded } from "../../model/values/encoded.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { integersOf, pairRows, textsOf } from "../../sql/dialect.ts";
import { row, rows, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StreamContext } from "./context.ts";

/** How far a reader has read the output of a run: up to this chunk, written when its log had this version. */
export interface StreamPlace {
  readonly execution: number;
  readonly runVersion: number;
  readonly position: number;
}

/** The newest chunk of a run. */
export interface NewestChunk extends StreamPlace {
  readonly id: ExecutionId;
}

/** Chunks that were written together, as they are stored. */
export interface StoredPart extends StreamPlace {
  readonly chunks: number;
  readonly step: string | null;
  readonly attempt: number;
  readonly at: number;
  readonly size: number;
  readonly supersedes: number;
  readonly payload: Encoded;
}

export interface StreamPage {
  /** In the order of ids. */
  readonly newest: readonly NewestChunk[];
  /** What follows the places, by run and position. */
  readonly parts: readonly StoredPart[];
  /** True if more follows than one page holds. */
  readonly isCut: boolean;
}

/** About the largest size of one page. */
const pageMax = 2 * 1_048_576;
/** The most runs of a tree whose output is read together. */
const runsMax = 1_000;

/** Reads what follows some places, for any number of runs. Waits for no flush: see `writeStream`. */
export const readStreams = storeOperation("readStreams", {
  key: () => "streams",
  isUnflushed: true,
  *one(_: StreamContext, places: readonly StreamPlace[]): Tx<StreamPage> {
    const newest = yield* rows<NewestChunk>(sql`
      SELECT execution, id, run_version AS "runVersion", position FROM holdfast_stream
      WHERE execution IN ${integersOf(places.map(({ execution }) => execution))} ORDER BY id`);
    return yield* pageBehind(newest, places);
  },
});

interface TreeOfStreams {
  readonly id: ExecutionId;
  /** The range of the ids below it, without its ends. */
  readonly low: string;
  readonly high: string;
  readonly places: readonly StreamPlace[];
}

/** The same for a run and all runs below it. */
export const readStreamTree = storeOperation("readStreamTree", {
  key: () => "streams",
  isUnflushed: true,
  *one(_: StreamContext, { id, low, high, places }: TreeOfStreams): Tx<StreamPage> {
    const newest = yield* rows<NewestChunk>(sql`
      SELECT execution, id, run_version AS "runVersion", position FROM holdfast_stream
      WHERE id = ${id} OR (id > ${low} AND id < ${high}) ORDER BY id LIMIT ${runsMax}`);
    return yield* pageBehind(newest, places);
  },
});

function* pageBehind(
  newest: readonly NewestChunk[],
  places: readonly StreamPlace[],
): Tx<StreamPage> {
  const known = new Map(places.map((place) => [place.execution, place]));
  const wanted: [number, number][] = [];
  for (const head of newest) {
    const after = yield* placeIn(head, known.get(head.execution));
    if (after < head.position) wanted.push([head.execution, after]);
  }
  if (wanted.length === 0) return { newest, parts: [], isCut: false };
  const parts = yield* rows<StoredPart>(sql`
    SELECT p.execution, p.run_version AS "runVersion", p.position, p.chunks, p.step, p.attempt, p.at, p.size,
      p.supersedes, p.payload
    FROM (
      SELECT c.key, c.size, CAST(SUM(c.size) OVER (ORDER BY c.execution, c.position) AS BIGINT) AS total
      FROM ${pairRows(wanted)} w JOIN holdfast_stream_part c
        ON c.execution = w.one AND c.position + c.chunks - 1 > w.other
          AND c.position >= COALESCE((
            SELECT MAX(m.position) FROM holdfast_stream_part m
            WHERE m.execution = w.one AND m.position <= w.other), 0)
    ) t JOIN holdfast_stream_part p ON p.key = t.key
    WHERE t.total - t.size < ${pageMax} ORDER BY p.execution, p.position`);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  return { newest, parts, isCut: size >= pageMax };
}

/**
 * The position behind which a reader reads on. After a power cut the database may have lost chunks
 * that the reader saw, and the next owner of the run has used their numbers again.
 */
function* placeIn(head: NewestChunk, place: StreamPlace | undefined): Tx<number> {
  if (place === undefined) return 0;
  const { execution, runVersion, position } = place;
  if (head.runVersion <= runVersion) return position;
  const read = yield* row<{ readonly runVersion: number }>(sql`
    SELECT run_version AS "runVersion" FROM holdfast_stream_part
    WHERE execution = ${execution} AND position <= ${position} ORDER BY position DESC LIMIT 1`);
  if (read === undefined || read.runVersion <= runVersion) return position;
  const later = yield* row<{ readonly position: number | null }>(sql`
    SELECT MIN(position) AS position FROM holdfast_stream_part
    WHERE execution = ${execution} AND position <= ${position} AND run_version > ${runVersion}`);
  const first = later?.position ?? null;
  return first === null ? position : first - 1;
}

/** A run as a reader of its output needs to know it. */
export interface StreamedRun {
  readonly id: ExecutionId;
  readonly execution: number;
  readonly hasEnded: boolean;
}

/** Reads runs by id, for readers of their output. Leaves out missing and erased runs. */
export const readStreamedRuns = storeOperation("readStreamedRuns", {
  key: () => "streams",
  *one(_: StreamContext, ids: readonly ExecutionId[]): Tx<readonly StreamedRun[]> {
    const found = yield* rows<{
      readonly id: ExecutionId;
      readonly execution: number;
      readonly state: string;
    }>(sql`
      SELECT id, key AS execution, state FROM holdfast_execution
      WHERE id IN ${textsOf(ids)} AND removing_at IS NULL`);
    return found.map(({ id, execution, state }) => ({
      id,
      execution,
      hasEnded: state === "finished",
    }));
  },
});
