import type { ExecutionId } from "../../model/execution-id.ts";
import type { FunctionName } from "../../model/function-name.ts";
import { row, rows, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";

/** A finished top-level execution in the order in which they finished. */
export interface TreePlace {
  readonly finishedAt: number;
  readonly id: string;
}

export interface TreesBetween {
  readonly function: FunctionName;
  /** Excluded; null for the oldest. */
  readonly after: TreePlace | null;
  /** Included. */
  readonly upTo: TreePlace;
  readonly limit: number;
}

/** Finished trees between two places, oldest first. */
export const finishedTrees: Operation<
  TreesBetween,
  readonly (TreePlace & { readonly id: ExecutionId })[]
> = plainOperation("finishedTrees", {
  key: (input: TreesBetween) => input.function,
  *one({ function: name, after, upTo, limit }) {
    const { finishedAt, id } = after ?? { finishedAt: -1, id: "" };
    const found = yield* rows<{ finished_at: number; id: ExecutionId }>(sql`
      SELECT finished_at, id FROM holdfast_execution
      WHERE function = ${name} AND state = 'finished' AND parent IS NULL
        AND (finished_at, id) > (${finishedAt}, ${id}) AND (finished_at, id) <= (${upTo.finishedAt}, ${upTo.id})
      ORDER BY finished_at, id LIMIT ${limit}`);
    return found.map((tree) => ({ finishedAt: tree.finished_at, id: tree.id }));
  },
});

/** Sorts after every id: no id begins with it. */
const afterAllIds = "\u{10ffff}";

/** The last place before an instant. */
export function placeBefore(instant: number): TreePlace {
  return { finishedAt: instant - 1, id: afterAllIds };
}

export function laterOf(
  a: TreePlace | undefined,
  b: TreePlace | undefined,
): TreePlace | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  const isLater =
    a.finishedAt > b.finishedAt ||
    (a.finishedAt === b.finishedAt && a.id > b.id);
  return isLater ? a : b;
}

interface StepBack {
  readonly function: FunctionName;
  /** Excluded; null for the newest. */
  readonly before: TreePlace | null;
  /** How many places, from 1 on. */
  readonly places: number;
}

/** So many are passed over in one read: skipping 300 thousand at once took 100 ms. */
export const placesPerStep = 2_000;

/** The place so many before another, or undefined when there are fewer. */
export const placeBack: Operation<StepBack, TreePlace | undefined> =
  plainOperation("placeBack", {
    key: (input: StepBack) => input.function,
    *one({ function: name, before, places }) {
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

/** The functions that have finished top-level executions, one after the other. */
export const nextFinishedFunction: Operation<
  { readonly after: string },
  FunctionName | undefined
> = plainOperation("nextFinishedFunction", {
  key: (input: { readonly after: string }) => input.after,
  *one({ after }) {
    const found = yield* row<{ readonly function: FunctionName }>(sql`
      SELECT function FROM holdfast_execution
      WHERE function > ${after} AND state = 'finished' AND parent IS NULL ORDER BY function LIMIT 1`);
    return found?.function;
  },
});

/** Trees whose removal was begun and not ended, one after the other. */
export const nextBeingRemoved: Operation<
  { readonly after: string },
  ExecutionId | undefined
> = plainOperation("nextBeingRemoved", {
  key: (input: { readonly after: string }) => input.after,
  *one({ after }) {
    const found = yield* row<{ readonly id: ExecutionId }>(sql`
      SELECT id FROM holdfast_execution
      WHERE removing_at IS NOT NULL AND id > ${after} ORDER BY id LIMIT 1`);
    return found?.id;
  },
});
