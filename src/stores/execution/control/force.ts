import { HoldfastError } from "../../../model/errors.ts";
import { readGiven } from "../../../model/shape.ts";
import { durationMs } from "../../../model/time/durations.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { isEndedFromOutside, isHeld } from "../../../model/execution/pending.ts";
import type { ExecutionState } from "../../../model/execution/state.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { announce, row, rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { writes, type Method } from "../../method.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { appendTo } from "../log/append-to.ts";
import { idsBelow } from "../read/tree.ts";
import { lockedRecord } from "../state-row.ts";
import { runInterrupted } from "../topics.ts";
import {
  givenCancellation,
  requestCancellation,
  type CancellationOutcome,
  type CancelOptions,
  type RequestCancellation,
} from "./lifecycle.ts";

/**
 * `marked` if a descendant has not finished: until then the execution cannot be locked or extended
 * with children.
 */
type Forced = "cancelled" | "marked" | "alreadyFinished";

/**
 * Ends one execution without running its code, or marks it if a descendant is open. May be
 * repeated.
 */
const forceCancellation = storeOperation("forceCancellation", {
  key: (input) => input.id,
  *one(
    context: ExecutionContext,
    { id, at: askedAt, reason, cancelled }: RequestCancellation,
  ): Tx<Forced> {
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, askedAt);
    if (record.state.pending.kind === "finished") return "alreadyFinished";
    const requested: readonly ExecutionEvent[] = isForced(record.state)
      ? []
      : [{ kind: "cancellationRequested", reason, cause: "force" }];
    // A child is created under the lock of its parent, which this transaction holds.
    const isOpenBelow = yield* hasOpenBelow(id);
    const events = isOpenBelow ? requested : [...requested, cancelled];
    if (events.length > 0) yield* appendTo(context, record, at, events);
    if (isHeld(record.state.pending, at)) yield* announce(runInterrupted, id);
    return isOpenBelow ? "marked" : "cancelled";
  },
});

function isForced({ lifecycle, pending }: ExecutionState): boolean {
  return lifecycle === "cancelling" && isEndedFromOutside(pending);
}

function* hasOpenBelow(id: ExecutionId): Tx<boolean> {
  const [low, high] = idsBelow(id);
  const open = yield* row(sql`
    SELECT id FROM holdfast_execution
    WHERE id > ${low} AND id < ${high} AND parent IS NOT NULL AND state <> 'finished' ORDER BY id LIMIT 1`);
  return open !== undefined;
}

interface OpenBelow {
  readonly id: ExecutionId;
  /** The last id of the previous page. */
  readonly after: string | undefined;
  /** Parents before their children, or after them. */
  readonly order: "down" | "up";
}

/** The number of executions that are ended at once, each in a transaction of its own. */
const sliceSize = 50;

/** A page of unfinished descendants of an execution. */
const openBelow = storeOperation("openBelow", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, after, order }: OpenBelow): Tx<readonly ExecutionId[]> {
    const [low, high] = idsBelow(id);
    const from = order === "down" ? (after ?? low) : low;
    const to = order === "up" ? (after ?? high) : high;
    const found = yield* rows<{ readonly id: ExecutionId }>(sql`
      SELECT id FROM holdfast_execution
      WHERE id > ${from} AND id < ${to} AND parent IS NOT NULL AND state <> 'finished'
      ORDER BY ${order === "down" ? sql`id` : sql`id DESC`} LIMIT ${sliceSize}`);
    return found.map((each) => each.id);
  },
});

/**
 * Ends an execution and all its unfinished descendants without running code. First it marks the
 * execution, after which nothing can join it. Then it marks all descendants from the top down, so
 * that nothing can join them; an execution without open descendants ends at once. The others then
 * end from the bottom up, and the execution last. A crash in between leaves it marked, and the same
 * call continues.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `CORRUPT_ROW`, and those of waits.
 */
async function cancelByForce(
  context: ExecutionContext,
  request: RequestCancellation,
  wait: WaitOptions,
): Promise<CancellationOutcome> {
  const { database, clock } = context;
  const { signal, timeout } = wait;
  const deadline = timeout === undefined ? undefined : clock.now() + durationMs(timeout, "timeout");
  const waiting = (): WaitOptions => ({
    signal,
    ...(deadline !== undefined && {
      timeout: Math.max(0, deadline - clock.now()),
    }),
  });
  const force = (id: ExecutionId): Promise<Forced> =>
    database.write(forceCancellation(context), { ...request, id }, waiting());
  const first = await force(request.id);
  if (first === "cancelled") return first;
  do {
    for (const order of ["down", "up"] as const) {
      let after: ExecutionId | undefined;
      do {
        const ids: readonly ExecutionId[] = await database.read(
          openBelow(context),
          { id: request.id, after, order },
          waiting(),
        );
        await allOf(ids.map(force));
        after = ids.length < sliceSize ? undefined : ids.at(-1);
      } while (after !== undefined);
    }
  } while ((await force(request.id)) === "marked");
  return first === "alreadyFinished" ? first : "cancelled";
}

/**
 * The method that requests an end, or forces it: then in as many transactions as its tree needs.
 */
export function cancels(
  context: ExecutionContext,
): Method<[id: string, options?: CancelOptions], CancellationOutcome> {
  const request = writes(context, requestCancellation, givenCancellation);
  const call = async (id: string, options?: CancelOptions) => {
    if (!isByForce(options)) return request(id, options);
    const { input, wait } = givenCancellation(context, id, options);
    return cancelByForce(context, input, wait);
  };
  const { kind, operation } = request;
  return Object.assign(call, {
    kind,
    operation,
    prepare(id: string, options?: CancelOptions) {
      if (!isByForce(options)) return request.prepare(id, options);
      throw new HoldfastError(
        "OPTION_INVALID",
        "A prepared call takes no force, because ending a tree takes several transactions. Call the method directly, or leave force out.",
        { option: "force" },
      );
    },
  });
}

function isByForce(options: CancelOptions | undefined): boolean {
  return readGiven("options", () => options?.force) === true;
}

/** Waits for all calls, and only then throws the error of one. */
async function allOf(calls: readonly Promise<unknown>[]): Promise<void> {
  for (const outcome of await Promise.allSettled(calls))
    if (outcome.status === "rejected") throw outcome.reason;
}
