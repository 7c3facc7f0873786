import { isCompatible } from "../../../model/execution/lock.ts";
import type { Lifecycle } from "../../../model/execution/state.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf, textRows } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { incompatibleOf, isInLane, isSuspectRow } from "../state-row.ts";
import { candidateColumns, type Candidate } from "./candidate.ts";

/**
 * Pending runs that remember the code versions under which they were parked are stored apart from
 * the others. Runs of one function, lifecycle and memory form a lane, a range of an index. A worker
 * reads only lanes that its own version may run, at the front of each, regardless of how many runs
 * are in the others. There are as many lanes as versions that failed in a row. A function without
 * lanes costs one lookup.
 */

interface Lane {
  readonly lifecycle: Lifecycle;
  /** The stored form. */
  readonly incompatible: string;
}

/** The lanes that a worker may search, by function; functions without lanes are missing. */
export type Lanes = ReadonlyMap<FunctionName, readonly Lane[]>;

/**
 * The number of lanes of one function that one call searches: more versions than ever failed in a
 * row.
 */
const lanesMax = 100;

/** Pending runs of some functions that the plain index does not contain. */
export interface ApartRuns {
  readonly lanes: Lanes;
  /** Functions that have suspects. */
  readonly suspects: readonly FunctionName[];
}

export function* runsApart(
  functions: readonly FunctionName[],
  codeVersion: string | null,
): Tx<ApartRuns> {
  const lanes = new Map<FunctionName, readonly Lane[]>();
  // Differs: without a range on its second column SQLite walks all runs of a function instead of the lane index.
  const found = yield* rows<{ readonly name: FunctionName; readonly is_suspect: number }>(sql`
    SELECT asked.value AS name, 0 AS is_suspect FROM ${textRows(functions)} AS asked
    WHERE EXISTS (SELECT 1 FROM holdfast_execution WHERE function = asked.value AND ${isInLane} AND lifecycle > '')
    UNION ALL
    SELECT asked.value AS name, 1 AS is_suspect FROM ${textRows(functions)} AS asked
    WHERE EXISTS (SELECT 1 FROM holdfast_execution WHERE function = asked.value AND ${isSuspectRow})`);
  const suspects = found.flatMap(({ name, is_suspect: is }) => (is === 1 ? name : []));
  for (const { name, is_suspect: isSuspect } of found) {
    if (isSuspect === 1) continue;
    const open = (yield* lanesOf(name)).filter(({ lifecycle, incompatible }) =>
      undamaged(() =>
        isCompatible({ lifecycle, incompatible: incompatibleOf(name, incompatible) }, codeVersion),
      ),
    );
    if (open.length > 0) lanes.set(name, open);
  }
  return { lanes, suspects };
}

/** Walks from lane to lane by the index, regardless of how many runs are in each. */
function* lanesOf(name: FunctionName): Tx<readonly Lane[]> {
  const lanes: Lane[] = [];
  while (lanes.length < lanesMax) {
    const { lifecycle, incompatible } = lanes.at(-1) ?? none;
    const next = yield* row<Lane>(sql`
      SELECT lifecycle, incompatible FROM holdfast_execution
      WHERE function = ${name} AND ${isInLane}
        AND (lifecycle, incompatible) > (${lifecycle}, ${incompatible})
      ORDER BY lifecycle, incompatible LIMIT 1`);
    if (next === undefined) break;
    lanes.push(next);
  }
  return lanes;
}

const none = { lifecycle: "", incompatible: "" } as const;

/**
 * The longest due run of each lane of a function. A worker has had each of them, or it would
 * remember no version.
 */
export function* dueInLanes(
  lanes: Lanes,
  name: FunctionName,
  dueBy: number,
  except: readonly number[],
  limit: number,
): Tx<readonly Candidate[]> {
  const due: Candidate[] = [];
  for (const { lifecycle, incompatible } of lanes.get(name) ?? []) {
    const but = except.length === 0 ? sql`` : sql`AND NOT key IN ${integersOf(except)}`;
    due.push(
      ...(yield* rows<Candidate>(sql`
        SELECT ${candidateColumns}, 1 AS is_begun FROM holdfast_execution
        WHERE function = ${name} AND ${isInLane}
          AND lifecycle = ${lifecycle} AND incompatible = ${incompatible} AND due_at <= ${dueBy} ${but}
        ORDER BY due_at, id LIMIT ${limit}`)),
    );
  }
  return due;
}

/** The next instant, after the given one, at which a run in the lanes of a function is due. */
export function* nextDueInLanes(
  lanes: Lanes,
  name: FunctionName,
  after: number,
): Tx<number | undefined> {
  const instants: number[] = [];
  for (const { lifecycle, incompatible } of lanes.get(name) ?? []) {
    const found = yield* row<{ readonly due_at: number }>(sql`
      SELECT due_at FROM holdfast_execution
      WHERE function = ${name} AND ${isInLane}
        AND lifecycle = ${lifecycle} AND incompatible = ${incompatible} AND due_at > ${after}
      ORDER BY due_at, id LIMIT 1`);
    if (found !== undefined) instants.push(found.due_at);
  }
  return instants.length === 0 ? undefined : Math.min(...instants);
}
