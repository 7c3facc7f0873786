import { suspectWaitMs } from "../../../model/execution/decisions.ts";
import { isCompatible } from "../../../model/execution/lock.ts";
import type { Lifecycle } from "../../../model/execution/state.ts";
import type { FunctionName } from "../../../model/ids/function-name.ts";
import { givenInvalid } from "../../../model/shape.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { incompatibleOf, isSuspectRow } from "../state-row.ts";
import { candidateColumns, type Candidate } from "./candidate.ts";
import { Places, type Holdings, type LimitedFunction } from "./limits.ts";

/**
 * Suspects are runs that three workers in a row died of, or beside. They are kept apart from other
 * due runs, in an index of their own. A worker that runs nothing takes one suspect alone, the one
 * with most deaths first. A suspect that no worker could take alone for a minute is taken beside
 * other work.
 */
export type SuspectsWanted = "alone" | "overdue" | "none";

const wantedAll: readonly SuspectsWanted[] = ["alone", "overdue", "none"];

/** @throws HoldfastError `OPTION_INVALID` */
export function suspectsWanted(given: SuspectsWanted = "overdue"): SuspectsWanted {
  if (wantedAll.includes(given)) return given;
  throw givenInvalid("suspects", '"alone", "overdue" or "none"', given);
}

/** The latest due time of suspects that may be taken at `at`. */
export function suspectsDueBy(wanted: SuspectsWanted, at: number): number {
  return wanted === "alone" ? at : at - suspectWaitMs;
}

interface SuspectRow extends Candidate {
  readonly deaths: number;
  readonly lifecycle: Lifecycle;
  readonly incompatible: string | null;
}

export interface LookForSuspects {
  /** All served functions; `names` are the ones that have suspects. */
  readonly functions: readonly LimitedFunction[];
  readonly names: readonly FunctionName[];
  readonly holdings: Holdings;
  readonly codeVersion: string | null;
  readonly dueBy: number;
}

/**
 * The page size for suspects of one function, and the maximum number of pages per call. A call reads
 * the next page only if it may lock none of the previous ones.
 */
const pageMax = 100;
const pagesMax = 10;

/** The suspects that a worker may lock, most deaths first. */
export function* suspectsDue(look: LookForSuspects): Tx<readonly Candidate[]> {
  const found: SuspectRow[] = [];
  for (const served of look.functions)
    if (look.names.includes(served.name)) found.push(...(yield* suspectsOf(served, look)));
  return found.toSorted(
    (a, b) => b.deaths - a.deaths || a.due_at - b.due_at || (a.id < b.id ? -1 : 1),
  );
}

/**
 * The suspects of the first page with any that may be locked: others wait for other code, or for a
 * place.
 */
function* suspectsOf(served: LimitedFunction, look: LookForSuspects): Tx<readonly SuspectRow[]> {
  const places = placesOf(served, look.holdings);
  if (places?.room === 0) return [];
  let last: SuspectRow | undefined;
  for (let page = 0; page < pagesMax; page += 1) {
    const behind =
      last === undefined
        ? sql``
        : sql`AND (deaths < ${last.deaths} OR (deaths = ${last.deaths} AND (due_at, id) > (${last.due_at}, ${last.id})))`;
    const due = yield* rows<SuspectRow>(sql`
      SELECT ${candidateColumns}, 1 AS is_begun, deaths, lifecycle, incompatible FROM holdfast_execution
      WHERE function = ${served.name} AND ${isSuspectRow} AND due_at <= ${look.dueBy} ${behind}
      ORDER BY deaths DESC, due_at, id LIMIT ${pageMax}`);
    const open = due.filter(
      (one) => isOpenTo(one, look.codeVersion) && (places === undefined || places.take(one)),
    );
    if (open.length > 0 || due.length < pageMax) return open;
    last = due.at(-1);
  }
  return [];
}

function placesOf(served: LimitedFunction, holdings: Holdings): Places | undefined {
  const held = holdings.get(served.name);
  return held === undefined ? undefined : new Places(served, held, []);
}

function isOpenTo(
  { id, lifecycle, incompatible }: SuspectRow,
  codeVersion: string | null,
): boolean {
  const isOpen = (): boolean =>
    isCompatible({ lifecycle, incompatible: incompatibleOf(id, incompatible) }, codeVersion);
  return undamaged(isOpen) === true;
}

/** The instant at which the next suspect of a function is due, after an instant. */
export function* nextSuspectDue(name: FunctionName, after: number): Tx<number | undefined> {
  const found = yield* row<{ readonly due_at: number | null }>(sql`
    SELECT MIN(due_at) AS due_at FROM holdfast_execution
    WHERE function = ${name} AND ${isSuspectRow} AND due_at > ${after}`);
  return found?.due_at ?? undefined;
}
