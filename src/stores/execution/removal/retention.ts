import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { HoldfastError } from "../../../model/errors.ts";
import type { ResultKind } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { parseFunctionName, type FunctionName } from "../../../model/ids/function-name.ts";
import { checkedCount, draftOf, givenInvalid, givenList } from "../../../model/shape.ts";
import { row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import type { ExecutionContext } from "../context.ts";
import { removeTreeSlice, type RemoveTreeSlice } from "./remove-tree.ts";

/** The finished runs to remove: too old, or not among the newest; either is enough. */
export interface RetentionPolicy {
  /** Defaults to all functions. */
  readonly function?: string;
  readonly olderThan?: Duration;
  /** The number of runs to keep per function. */
  readonly keepNewest?: number;
  /** Only runs with these results; defaults to all. The others are skipped. */
  readonly results?: readonly ResultKind[];
}

export interface RetentionReport {
  /** The number of runs removed with everything under them. */
  readonly trees: number;
  readonly rows: number;
  /**
   * The number of runs kept because a descendant has not finished, or because their process was not
   * pruned.
   */
  readonly skipped: number;
}

/**
 * Removes finished runs with all their descendants, slice by slice: first the runs whose removal
 * was interrupted, then the ones that the policy selects.
 * @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`, `NAME_INVALID`, `ABORTED`
 */
export async function removeFinished(
  context: ExecutionContext,
  policy: RetentionPolicy,
  options?: SweepOptions<RetentionReport>,
  swept?: SweptPlaces,
): Promise<RetentionReport> {
  const checked = { ...checkedPolicy(policy), swept };
  const sweeping = sweepOptions(options);
  const { rowsPerSlice: rowsMax, signal } = sweeping;
  const trees = treesToRemove(context, checked);
  let tree = await trees.next();
  return sweep(context, sweeping, async () => {
    if (tree.done === true) return { report: nothing, isDone: true };
    const { rows: removed, left } = await context.database.write(
      removeTreeSlice(context),
      { ...tree.value, at: context.clock.now(), rowsMax },
      { signal },
    );
    if (left !== "more") tree = await trees.next();
    const report = {
      trees: left === "gone" && removed > 0 ? 1 : 0,
      rows: removed,
      skipped: left === "unfinished" || left === "process" ? 1 : 0,
    };
    return { report, isDone: tree.done === true };
  });
}

/**
 * The places that sweeps by the same policy have reached, by function: the next sweep continues
 * there, past the kept runs. For a caller that sweeps again and again. Skipped runs are visited
 * again only without it.
 */
export type SweptPlaces = Map<FunctionName, TreePlace>;

const nothing: RetentionReport = { trees: 0, rows: 0, skipped: 0 };

interface CheckedPolicy {
  readonly function: FunctionName | undefined;
  readonly olderThanMs: number | undefined;
  readonly keepNewest: number | undefined;
  readonly results: ReadonlySet<ResultKind> | undefined;
}

function checkedPolicy(given: RetentionPolicy): CheckedPolicy {
  const {
    function: name,
    olderThan,
    keepNewest,
    results,
  } = draftOf("a retention policy", given, ["function", "olderThan", "keepNewest", "results"]);
  if (olderThan === undefined && keepNewest === undefined)
    throw new HoldfastError(
      "OPTION_INVALID",
      "A retention policy says what to remove: give olderThan, keepNewest or both.",
    );
  return {
    function: name === undefined ? undefined : parseFunctionName(name),
    olderThanMs: olderThan === undefined ? undefined : durationMs(olderThan, "olderThan"),
    keepNewest:
      keepNewest === undefined
        ? undefined
        : checkedCount("keepNewest", keepNewest, { min: 0, max: 1_000_000 }),
    results: results === undefined ? undefined : checkedResults(results),
  };
}

const resultKinds: Readonly<Record<ResultKind, true>> = {
  completed: true,
  failed: true,
  cancelled: true,
  timedOut: true,
};

function checkedResults(results: readonly ResultKind[]): ReadonlySet<ResultKind> {
  const kinds = new Set(givenList("results", results));
  for (const kind of kinds)
    if (typeof kind !== "string" || !Object.hasOwn(resultKinds, kind))
      throw givenInvalid("results", `some of ${Object.keys(resultKinds).join(", ")}`, kind);
  return kinds;
}

/** A tree, and what remains of it. */
type TreeToRemove = Pick<RemoveTreeSlice, "id" | "leaves">;

/** The trees that a policy removes, looked up on demand. */
async function* treesToRemove(
  context: ExecutionContext,
  policy: CheckedPolicy & { readonly swept: SweptPlaces | undefined },
): AsyncGenerator<TreeToRemove, void> {
  yield* interruptedTrees(context);
  if (policy.function !== undefined) {
    yield* treesOf(context, policy, policy.function);
    return;
  }
  for (let after = ""; ;) {
    const name = await context.database.read(nextFinishedFunction(context), {
      after,
    });
    if (name === undefined) return;
    yield* treesOf(context, policy, name);
    after = name;
  }
}

/** Interrupted removals, by a call or process that ended early. */
async function* interruptedTrees(context: ExecutionContext): AsyncGenerator<TreeToRemove, void> {
  for (let after = ""; ;) {
    const id = await context.database.read(nextBeingRemoved(context), {
      after,
    });
    if (id === undefined) return;
    yield { id };
    after = id;
  }
}

const treesPerRead = 100;

async function* treesOf(
  context: ExecutionContext,
  {
    olderThanMs,
    keepNewest,
    results,
    swept,
  }: CheckedPolicy & { readonly swept: SweptPlaces | undefined },
  name: FunctionName,
): AsyncGenerator<TreeToRemove, void> {
  const { database, clock } = context;
  const byAge =
    olderThanMs === undefined ? undefined : placeBefore(Math.max(0, clock.now() - olderThanMs));
  const byCount =
    keepNewest === undefined ? undefined : await beyondNewest(context, name, keepNewest);
  const upTo = laterOf(byAge, byCount);
  if (upTo === undefined) return;
  for (let after: TreePlace | null = swept?.get(name) ?? null; ;) {
    const found: readonly FinishedTree[] = await database.read(finishedTrees(context), {
      function: name,
      after,
      upTo,
      limit: treesPerRead,
    });
    for (const { id, resultKind } of found)
      if (results?.has(resultKind) ?? true) yield { id, leaves: "nothing" };
    after = found.at(-1) ?? null;
    if (after === null) return;
    swept?.set(name, after);
    // As below: all of them may have been skipped.
    await database.pause();
  }
}

/** The number of places skipped in one read: skipping 300 thousand at once took 100 ms. */
const placesPerStep = 2_000;

/** The newest place outside the runs to keep. Runs that finish during the search are kept too. */
async function beyondNewest(
  context: ExecutionContext,
  name: FunctionName,
  keepNewest: number,
): Promise<TreePlace | undefined> {
  const { database } = context;
  let before: TreePlace | null = null;
  for (let left = keepNewest + 1; left > 0; left -= placesPerStep) {
    const place: TreePlace | undefined = await database.read(placeBack(context), {
      function: name,
      before,
      places: Math.min(left, placesPerStep),
    });
    if (place === undefined) return undefined;
    before = place;
    // A read that need not wait for a flush returns before the event loop turns.
    await database.pause();
  }
  return before ?? undefined;
}

/** The place of a finished top-level execution in the order of finishing. */
interface TreePlace {
  readonly finishedAt: number;
  readonly id: string;
}

interface FinishedTree extends TreePlace {
  readonly id: ExecutionId;
  readonly resultKind: ResultKind;
}

/** Sorts after every id: no id begins with it. */
const afterAllIds = "\u{10ffff}";

/** The last place before an instant. */
function placeBefore(instant: number): TreePlace {
  return { finishedAt: instant - 1, id: afterAllIds };
}

function laterOf(a: TreePlace | undefined, b: TreePlace | undefined): TreePlace | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const isLater = a.finishedAt > b.finishedAt || (a.finishedAt === b.finishedAt && a.id > b.id);
  return isLater ? a : b;
}

interface TreesBetween {
  readonly function: FunctionName;
  /** Exclusive; null for the oldest. */
  readonly after: TreePlace | null;
  /** Inclusive. */
  readonly upTo: TreePlace;
  readonly limit: number;
}

/** Finished trees between two places, oldest first. */
export const finishedTrees = storeOperation("finishedTrees", {
  key: (input) => input.function,
  *one(
    _: ExecutionContext,
    { function: name, after, upTo, limit }: TreesBetween,
  ): Tx<readonly FinishedTree[]> {
    const { finishedAt, id } = after ?? { finishedAt: -1, id: "" };
    const found = yield* rows<{
      readonly finished_at: number;
      readonly id: ExecutionId;
      readonly result_kind: ResultKind;
    }>(sql`
      SELECT finished_at, id, result_kind FROM holdfast_execution
      WHERE function = ${name} AND state = 'finished' AND parent IS NULL
        AND (finished_at, id) > (${finishedAt}, ${id}) AND (finished_at, id) <= (${upTo.finishedAt}, ${upTo.id})
      ORDER BY finished_at, id LIMIT ${limit}`);
    return found.map((tree) => ({
      finishedAt: tree.finished_at,
      id: tree.id,
      resultKind: tree.result_kind,
    }));
  },
});

interface StepBack {
  readonly function: FunctionName;
  /** Exclusive; null for the newest. */
  readonly before: TreePlace | null;
  /** The number of places, from 1 on. */
  readonly places: number;
}

/** The place a number of places before another, or undefined if there are fewer. */
const placeBack = storeOperation("placeBack", {
  key: (input) => input.function,
  *one(
    _: ExecutionContext,
    { function: name, before, places }: StepBack,
  ): Tx<TreePlace | undefined> {
    const { finishedAt, id } = before ?? {
      finishedAt: Number.MAX_SAFE_INTEGER,
      id: afterAllIds,
    };
    const found = yield* row<{ finished_at: number; id: string }>(sql`
      SELECT finished_at, id FROM holdfast_execution
      WHERE function = ${name} AND state = 'finished' AND parent IS NULL
        AND (finished_at, id) < (${finishedAt}, ${id})
      ORDER BY finished_at DESC, id DESC LIMIT 1 OFFSET ${places - 1}`);
    return found && { finishedAt: found.finished_at, id: found.id };
  },
});

interface AfterText {
  readonly after: string;
}

/** The functions that have finished top-level executions, one by one. */
const nextFinishedFunction = storeOperation("nextFinishedFunction", {
  key: (input) => input.after,
  *one(_: ExecutionContext, { after }: AfterText): Tx<FunctionName | undefined> {
    const found = yield* row<{ readonly function: FunctionName }>(sql`
      SELECT function FROM holdfast_execution
      WHERE function > ${after} AND state = 'finished' AND parent IS NULL ORDER BY function LIMIT 1`);
    return found?.function;
  },
});

/** Trees whose removal was interrupted, one by one. */
const nextBeingRemoved = storeOperation("nextBeingRemoved", {
  key: (input) => input.after,
  *one(_: ExecutionContext, { after }: AfterText): Tx<ExecutionId | undefined> {
    const found = yield* row<{ readonly id: ExecutionId }>(sql`
      SELECT id FROM holdfast_execution
      WHERE removing_at IS NOT NULL AND is_erased IS NULL AND id > ${after} ORDER BY id LIMIT 1`);
    return found?.id;
  },
});
