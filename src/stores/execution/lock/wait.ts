import type { LoggedResponse } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { RecordedResult } from "../../../model/execution/result.ts";
import { checkedCount, optionalText } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { storeOperation, type Tx } from "../../../sql/operation.ts";
import { onlyWait, optionsAndWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import type { ExecutionContext } from "../context.ts";
import { deliveredResponse, deliveredResult } from "../delivered.ts";
import type { StoredResponse } from "../event-row.ts";
import type { ResultLooks } from "../read/result-looks.ts";
import { standing } from "../state-row.ts";
import { executionEnded, newResponse, pendingWork, placeFreed } from "../topics.ts";
import type { KeyWalks } from "./candidates.ts";
import { responsePage, type LoadedPage } from "./history.ts";
import type { LockPendingOptions } from "./lock-pending.ts";
import { findLockable } from "./lockable.ts";
import { hasLimit, servedFunctions, type LimitedFunction } from "./limits.ts";
import { suspectsWanted, type SuspectsWanted } from "./suspects.ts";

export interface PendingWaitOptions extends WaitOptions {
  /** The version of the code that would run it. Runs parked under it are not waited for. */
  readonly codeVersion?: string;
  /** The suspects that `lockPending` is to be given. */
  readonly suspects?: SuspectsWanted;
}

/**
 * Resolves when a run of these functions is due and within their limits: now, at its due time, or
 * when a place is freed. Another worker may be faster, so the caller tries to lock and, if nothing
 * was left, waits again.
 * @throws HoldfastError `OPTION_INVALID`, and those of `waitUntil`.
 */
export async function waitForPending(
  context: ExecutionContext,
  given: LockPendingOptions["functions"],
  options?: PendingWaitOptions,
): Promise<void> {
  const { database, clock } = context;
  const { options: of, wait } = optionsAndWait(options, ["codeVersion", "suspects"]);
  const codeVersion = optionalText("A code version", of.codeVersion, 128);
  const suspects = suspectsWanted(of.suspects);
  const functions = servedFunctions(given);
  checkedCount("functions.length", functions.length, { min: 1 });
  let walkAfter: KeyWalks = new Map();
  return waitUntil<void>(
    database,
    {
      what: `work for ${spoken(functions)}`,
      clock,
      interests: [
        ...functions.map(({ name }) => ({ operation: pendingWork, key: name })),
        ...functions.filter(hasLimit).map(({ name }) => ({ operation: placeFreed, key: name })),
      ],
      async look() {
        const { isThere, again, walked } = await database.read(findLockable(context), {
          functions,
          now: clock.now(),
          walkAfter,
          codeVersion,
          suspects,
        });
        walkAfter = new Map([...walkAfter, ...walked]);
        return isThere ? { isThere, value: undefined } : { isThere: false, again };
      },
    },
    wait,
  );
}

/** The number of function names in an error: a worker may serve hundreds. */
const namesSpokenMax = 3;

function spoken(functions: readonly LimitedFunction[]): string {
  const named = functions
    .slice(0, namesSpokenMax)
    .map(({ name }) => name)
    .join(", ");
  const others = functions.length - namesSpokenMax;
  return others > 0 ? `${named} and ${others} other functions` : named;
}

interface AfterNumber {
  readonly id: ExecutionId;
  readonly after: number;
}

/**
 * A page of responses after a number. It reads few rows when there are none, since a wait looks
 * often.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`
 */
const responsesAfter = storeOperation("responsesAfter", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, after }: AfterNumber): Tx<LoadedPage<StoredResponse>> {
    const { key, responses } = yield* standing(id);
    return responses > after
      ? yield* responsePage({ key }, after, responses)
      : { items: [], hasMore: false };
  },
});

/**
 * The first page of responses of an execution after a number, in stored order, once there is one.
 * The wake-up says only that there may be one. Responses are read from the number on, so that none
 * is skipped or seen out of order.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export async function waitForResponses(
  context: ExecutionContext,
  execution: string,
  afterSeq: number,
  wait?: WaitOptions,
): Promise<readonly LoggedResponse<unknown>[]> {
  const { database, clock } = context;
  const id = parseExecutionId(execution);
  const after = checkedCount("afterSeq", afterSeq);
  const found = await waitUntil(
    database,
    {
      clock,
      what: `responses of run ${id} after number ${after}`,
      interests: [{ operation: newResponse, key: id }],
      async look() {
        const { items } = await database.read(responsesAfter(context), {
          id,
          after,
        });
        return items.length > 0 ? { isThere: true, value: items } : { isThere: false };
      },
    },
    onlyWait(wait),
  );
  return found.map((logged) => deliveredResponse(context, id, logged));
}

/**
 * Returns the result of an execution once it has finished. A finished execution wins against an
 * expired timeout.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export async function waitForResult(
  context: ExecutionContext,
  looks: ResultLooks,
  execution: string,
  wait?: WaitOptions,
): Promise<RecordedResult> {
  const { database, clock } = context;
  const id = parseExecutionId(execution);
  const ended = await waitUntil(
    database,
    {
      clock,
      what: `the result of run ${id}`,
      interests: [{ operation: executionEnded, key: id }],
      async look() {
        const found = await looks.look(id);
        return found === undefined ? { isThere: false } : { isThere: true, value: found };
      },
    },
    onlyWait(wait),
  );
  return deliveredResult(context, id, ended);
}
