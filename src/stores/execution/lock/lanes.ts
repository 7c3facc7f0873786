import { isCompatible } from "../../../model/execution/lock.ts";
import type { Lifecycle } from "../../../model/execution/state.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { integersOf, textRows } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { incompatibleOf } from "../state-row.ts";
import type { Candidate } from "./candidates.ts";

/**
 * Pending runs that remember code versions under which they were parked are
 * apart from the others: those of one function, lifecycle and memory are a
 * lane, a range of an index. A worker looks only into lanes that its own
 * version may run, at the front of each, however many runs are in the others.
 * There are as many lanes as versions that failed in a row; a function without
 * any costs one lookup.
 */

interface Lane {
  readonly lifecycle: Lifecycle;
  /** As it is stored. */
  readonly incompatible: string;
}

/** Those that a worker may look into, by function; functions without any are missing. */
export type Lanes = ReadonlyMap<FunctionName, readonly Lane[]>;

/** Lanes of one function that one call looks at: more versions than ever failed in a row. */
const lanesMax = 100;

export function* lanesFor(
  functions: readonly FunctionName[],
  codeVersion: string | null,
): Tx<Lanes> {
  const lanes = new Map<FunctionName, readonly Lane[]>();
  const found = yield* rows<{ readonly name: FunctionName }>(sql`
    SELECT asked.value AS name FROM ${textRows(functions)} AS asked
    WHERE EXISTS (
      SELECT 1 FROM holdfast_execution
      WHERE function = asked.value AND state = 'pending' AND incompatible IS NOT NULL)`);
  for (const { name } of found) {
    const open = (yield* lanesOf(name)).filter(({ lifecycle, incompatible }) =>
      undamaged(() =>
        isCompatible({ lifecycle, incompatible: incompatibleOf(name, incompatible) }, codeVersion),
      ),
    );
    if (open.length > 0) lanes.set(name, open);
  }
  return lanes;
}

/** From lane to lane by the index, however many runs are in each. */
function* lanesOf(name: FunctionName): Tx<readonly Lane[]> {
  const lanes: Lane[] = [];
  while (lanes.length < lanesMax) {
    const { lifecycle, incompatible } = lanes.at(-1) ?? none;
    const next = yield* row<Lane>(sql`
      SELECT lifecycle, incompatible FROM holdfast_execution
      WHERE function = ${name} AND state = 'pending' AND incompatible IS NOT NULL
        AND (lifecycle, incompatible) > (${lifecycle}, ${incompatible})
      ORDER BY lifecycle, incompatible LIMIT 1`);
    if (next === undefined) break;
    lanes.push(next);
  }
  return lanes;
}

const none = { lifecycle: "", incompatible: "" } as const;

/** What is due in the lanes of a function: of each the longest due. */
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
        SELECT key, id, function, due_at, concurrency_key FROM holdfast_execution
        WHERE function = ${name} AND state = 'pending' AND incompatible IS NOT NULL
          AND lifecycle = ${lifecycle} AND incompatible = ${incompatible} AND due_at <= ${dueBy} ${but}
        ORDER BY due_at, id LIMIT ${limit}`)),
    );
  }
  return due;
}

/** When the next in the lanes of a function is due, after an instant. */
export function* nextDueInLanes(
  lanes: Lanes,
  name: FunctionName,
  after: number,
): Tx<number | undefined> {
  const instants: number[] = [];
  for (const { lifecycle, incompatible } of lanes.get(name) ?? []) {
    const found = yield* row<{ readonly due_at: number }>(sql`
      SELECT due_at FROM holdfast_execution
      WHERE function = ${name} AND state = 'pending' AND incompatible IS NOT NULL
        AND lifecycle = ${lifecycle} AND incompatible = ${incompatible} AND due_at > ${after}
      ORDER BY due_at, id LIMIT 1`);
    if (found !== undefined) instants.push(found.due_at);
  }
  return instants.length === 0 ? undefined : Math.min(...instants);
}
