import type { LoggedResponse } from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionResult } from "../../../model/result.ts";
import { checkedCount } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { Surroundings } from "../context.ts";
import { onceEach } from "./lock-pending.ts";
import { servedFunction } from "./locking.ts";
import type { LockPendingOptions } from "./locking.ts";
import { waitForPending, waitForResponses, waitForResult } from "./wait.ts";

/**
 * Waiting, in this process or for what another one does. Each wait can be
 * given up by a signal (`ABORTED`) or after a time (`DEADLINE_EXCEEDED`), and
 * ends with `DATABASE_CLOSED` when the database is closed.
 */
export interface ExecutionWaits {
  /**
   * Resolves when something of these functions is due and their limits, if
   * given, leave room for it: give what `lockPending` is given. Another worker
   * may be faster: lock, and wait again. What is damaged stays due, so pause
   * after a round that locked nothing and named some.
   *
   * @throws HoldfastError `OPTION_INVALID` when there are no functions.
   */
  waitForPending(
    functions: LockPendingOptions["functions"],
    wait?: WaitOptions,
  ): Promise<void>;
  /** The responses of an execution after a number, in order, as soon as there is one: at most 200, so ask again after the last. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  waitForResponses(
    id: string,
    afterSeq: number,
    wait?: WaitOptions,
  ): Promise<readonly LoggedResponse<unknown>[]>;
  /** How an execution ended, once it has. @throws HoldfastError `EXECUTION_NOT_FOUND` */
  waitForResult(id: string, wait?: WaitOptions): Promise<ExecutionResult>;
}

export function executionWaits({
  database,
  clock,
  codec,
}: Surroundings): ExecutionWaits {
  return {
    async waitForPending(functions, wait) {
      checkedCount("functions.length", functions.length, { min: 1 });
      const served = onceEach(functions.map(servedFunction));
      return waitForPending(database, clock, served, wait);
    },
    async waitForResponses(id, afterSeq, wait) {
      const found = await waitForResponses(
        database,
        parseExecutionId(id),
        checkedCount("afterSeq", afterSeq),
        { ...wait, clock },
      );
      return found.map((logged) => codec.readResponse(logged));
    },
    async waitForResult(id, wait) {
      const { result } = await waitForResult(database, parseExecutionId(id), {
        ...wait,
        clock,
      });
      return codec.readResult(result);
    },
  };
}
