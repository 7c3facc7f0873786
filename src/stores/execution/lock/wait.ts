import type { Clock } from "../../../model/clock.ts";
import type { LoggedResponse } from "../../../model/execution-event.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { Database, WaitOptions } from "../../../sql/database.ts";
import { waitUntil } from "../../wait.ts";
import { responsesAfter } from "./awaited.ts";
import type { KeyWalks } from "./candidates.ts";
import { findLockable } from "./lockable.ts";
import { hasLimit } from "./places.ts";
import type { LimitedFunction } from "./places.ts";
import { readResult } from "../read/read.ts";
import type { FinishedResult } from "../read/read.ts";
import {
  executionEnded,
  newResponse,
  pendingWork,
  placeFreed,
} from "../topics.ts";

/**
 * Resolves when something of these functions is due and within their limits,
 * now or when its instant comes or a place is freed. Another worker may be
 * faster, so the caller tries to lock and, if there was nothing left, waits
 * again.
 *
 * @throws HoldfastError those of `waitUntil`.
 */
export function waitForPending(
  database: Database,
  clock: Clock,
  functions: readonly LimitedFunction[],
  options?: WaitOptions,
): Promise<void> {
  const names: ReadonlySet<string> = new Set(functions.map(({ name }) => name));
  const limited: ReadonlySet<string> = new Set(
    functions.filter(hasLimit).map(({ name }) => name),
  );
  let walkAfter: KeyWalks = new Map();
  return waitUntil<void>(
    database,
    {
      what: `work for ${spoken(functions)}`,
      clock,
      isRelevant: ({ operation, key }) =>
        (operation === pendingWork && names.has(key)) ||
        (operation === placeFreed && limited.has(key)),
      async look() {
        const { isThere, again, walked } = await database.read(findLockable, {
          functions,
          now: clock.now(),
          walkAfter,
        });
        walkAfter = new Map([...walkAfter, ...walked]);
        return isThere
          ? { isThere, value: undefined }
          : { isThere: false, again };
      },
    },
    options,
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

interface ClockedWait extends WaitOptions {
  /** On which the timeout is counted; the database's unless told. */
  readonly clock?: Clock;
}

/**
 * The first page of responses of an execution after the cursor, in stored
 * order, as soon as there is one: whoever wants more asks again after the
 * last. The wake-up says only that there may be; what is there is
 * read from the cursor on, so that nothing is skipped or seen out of order.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export function waitForResponses(
  database: Database,
  id: ExecutionId,
  afterSeq: number,
  { clock = database.clock, ...options }: ClockedWait = {},
): Promise<readonly LoggedResponse[]> {
  return waitUntil(
    database,
    {
      clock,
      what: `responses of execution ${id} after number ${afterSeq}`,
      isRelevant: ({ operation, key }) =>
        operation === newResponse && key === id,
      async look() {
        const after = afterSeq;
        const { items } = await database.read(responsesAfter, { id, after });
        return items.length > 0
          ? { isThere: true, value: items }
          : { isThere: false };
      },
    },
    options,
  );
}

/**
 * How an execution ended, once it has. One that has ended already wins against
 * a timeout that is over.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, and those of `waitUntil`.
 */
export function waitForResult(
  database: Database,
  id: ExecutionId,
  { clock = database.clock, ...options }: ClockedWait = {},
): Promise<Pick<FinishedResult, "resultKind" | "result">> {
  return waitUntil(
    database,
    {
      clock,
      what: `the result of execution ${id}`,
      isRelevant: ({ operation, key }) =>
        operation === executionEnded && key === id,
      async look() {
        const ended = await database.read(readResult, id);
        if (ended === undefined) return { isThere: false };
        const { resultKind, result } = ended;
        return { isThere: true, value: { resultKind, result } };
      },
    },
    options,
  );
}
