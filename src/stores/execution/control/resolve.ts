import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { appendTo } from "../log/append-to.ts";
import { eventAt } from "../event-row.ts";
import type { Finished } from "../context.ts";
import { lockedRecord } from "../state-row.ts";

export interface ResolveExternal {
  readonly id: ExecutionId;
  readonly at: number;
  readonly finished: Finished;
}

/**
 * Resolves an external execution from outside, and answers its parent. The
 * first answer stays; the same again is fine.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `NOT_EXTERNAL`, or
 *   `RESOLUTION_CONFLICT` when it was resolved with another value.
 */
export const resolveExternal: Operation<
  ResolveExternal,
  "resolved" | "alreadyResolved"
> = plainOperation("resolveExternal", {
  key: (input: ResolveExternal) => input.id,
  *one({ id, at, finished }) {
    const record = yield* lockedRecord(id);
    const { role, pending, version } = record.state;
    if (role !== "external")
      throw new HoldfastError(
        "NOT_EXTERNAL",
        `Execution ${id} is run by workers, so it cannot be resolved from outside. Cancel it, or signal it.`,
        { id },
      );
    if (pending.kind !== "finished") {
      yield* appendTo(record, at, [finished]);
      return "resolved";
    }
    const event = (yield* eventAt(record.key, version))?.event;
    if (event?.kind === "finished" && event.resultHash === finished.resultHash)
      return "alreadyResolved";
    throw new HoldfastError(
      "RESOLUTION_CONFLICT",
      `Execution ${id} has ended already as ${pending.resultKind}, with another value; that stays.`,
      { id, resultKind: pending.resultKind },
    );
  },
});
