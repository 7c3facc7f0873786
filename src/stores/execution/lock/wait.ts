import type { LoggedResponse } from "../../../model/execution/event.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { checkedCount, optionalText } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { storeOperation, type StoreOperation } from "../../../sql/operation.ts";
import { onlyWait, optionsAndWait } from "../../method.ts";
import { waitUntil } from "../../wait.ts";
import type { ExecutionContext } from "../context.ts";
import type { ResultLooks } from "../read/result-looks.ts";
import { standing } from "../state-row.ts";
import { executionEnded, newResponse, pendingWork, placeFreed } from "../topics.ts";
import type { KeyWalks } from "./candidates.ts";
import { responsePage, type LoadedPage } from "./history.ts";
import type { LockPendingOptions } from "./lock-pending.ts";
import { findLockable } from "./lockable.ts";
import { hasLimit, servedFunctions, type LimitedFunction } from "./places.ts";

export interface PendingWaitOptions extends WaitOptions {
  /** Of the code that would run it: what was parked under it is not waited for. */
  readonly codeVersion?: string;
}

/**
 * Resolves when something of these functions is due and within their limits,
 * now or when its instant comes or a place is freed. Another worker may be
 * faster, so the caller tries to lock and, if there was nothing left, waits
 * again.
 *
 * @throws HoldfastError `OPTION_INVALID`, and those of `waitUntil`.
 */
export async function waitForPending(
  context: ExecutionContext,
  given: LockPendingOptions["functions"],
  options?: PendingWaitOptions,
): Promise<void> {
  const { database, clock } = context;
  const { options: of, wait } = optionsAndWait(options, ["codeVersion"]);
  const codeVersion = optionalText("A code version", of.codeVersion, 128);
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
        });
        walkAfter = new Map([...walkAfter, ...walked]);
        return isThere ? { isThere, value: undefined } : { isThere: false, again };
      },
    },
    wait,
  );
}

/** A worker may serve hundreds; an error names the first few. */
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

/** A page of responses after a number. Few rows are read when there are none, since a wait looks often. @throws HoldfastError `EXECUTION_NOT_FOUND` */
const responsesAfter: StoreOperation<
  ExecutionContext,
  AfterNumber,
  LoadedPage<LoggedResponse>
> = storeOperation("responsesAfter", {
  key: (input: AfterNumber) => input.id,
  *one(_: ExecutionContext, { id, after }) {
    const { key, responses } = yield* standing(id);
    return responses > after
      ? yield* responsePage(key, after, responses)
      : { items: [], hasMore: false };
  },
});

/**
 * The first page of responses of an execution after a number, in stored order,
 * as soon as there is one. The wake-up says only that there may be; what is
 * there is read from the number on, so that nothing is skipped or seen out of
 * order.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export async function waitForResponses(
  context: ExecutionContext,
  execution: string,
  afterSeq: number,
  wait?: WaitOptions,
): Promise<readonly LoggedResponse<unknown>[]> {
  const { database, clock, values } = context;
  const id = parseExecutionId(execution);
  const after = checkedCount("afterSeq", afterSeq);
  const found = await waitUntil(
    database,
    {
      clock,
      what: `responses of execution ${id} after number ${after}`,
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
  return found.map((logged) => values.readResponse(logged));
}

/**
 * How an execution ended, once it has. One that has ended already wins against
 * a timeout that is over.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export async function waitForResult(
  context: ExecutionContext,
  looks: ResultLooks,
  execution: string,
  wait?: WaitOptions,
): Promise<ExecutionResult> {
  const { database, clock, values } = context;
  const id = parseExecutionId(execution);
  const result = await waitUntil(
    database,
    {
      clock,
      what: `the result of execution ${id}`,
      interests: [{ operation: executionEnded, key: id }],
      async look() {
        const ended = await looks.look(id);
        return ended === undefined ? { isThere: false } : { isThere: true, value: ended };
      },
    },
    onlyWait(wait),
  );
  return values.readResult(result);
}
