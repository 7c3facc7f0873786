import type { ControlEvent, ExecutionEvent } from "../../../model/execution/event.ts";
import { showsProgress } from "../../../model/execution/history-event.ts";
import { announce, row, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Fence } from "../checks.ts";
import { eventColumnsOf } from "../event-row.ts";
import { executionEnded, placeFreed } from "../topics.ts";
import type { AppendOutcome } from "./append-to.ts";
import type { AppendEvents } from "./append.ts";
import { responsesSeen } from "./event-check.ts";
import { hasSeenAll, withUnread } from "./unread-at-end.ts";

/**
 * The two most frequent appends of a run, by a worker that knows key and fence: steps, and the end.
 * One conditional update decides whether the append is allowed. If it changes nothing, the general
 * path finds out why and answers repeated calls. Statement texts are whole, columns are built by
 * hand, and values that the caller knows are not returned: each of these shows at 50,000 appends a
 * second (docs/benchmarks.md).
 */
export function appendLean(
  input: AppendEvents,
  otherwise: () => Tx<AppendOutcome>,
): Tx<AppendOutcome> {
  const { key, fence } = input;
  if (key === undefined || fence === undefined) return otherwise();
  if (!hasOnlyEvents(input)) return otherwise();
  const [first] = input.events;
  if (first?.kind === "finished" && input.events.length === 1)
    return finishLean(input, key, fence, first, otherwise);
  return input.events.every(isBare) ? appendBare(input, key, fence, otherwise) : otherwise();
}

/** Kinds that add only a row to the log. */
const bareKinds: ReadonlySet<string> = new Set([
  "stepBegan",
  "stepFinished",
  "stepAttemptFailed",
  "transactionFinished",
  "receiveRequested",
  "patched",
]);

function isBare({ kind }: ExecutionEvent): boolean {
  return bareKinds.has(kind);
}

function hasOnlyEvents({ children, starts, withdraw, respondTo }: AppendEvents): boolean {
  return isNone(children) && isNone(starts) && isNone(withdraw) && respondTo === undefined;
}

function isNone(list: readonly unknown[] | undefined): boolean {
  return list === undefined || list.length === 0;
}

function* appendBare(
  { id, version, at, events }: AppendEvents,
  key: number,
  fence: Fence,
  otherwise: () => Tx<AppendOutcome>,
): Tx<AppendOutcome> {
  // Spelled out twice: a nested statement would cost every step.
  const changed = yield* run(
    events.some(showsProgress)
      ? sql`
    UPDATE holdfast_execution SET version = version + ${events.length}, deaths = 0, alone_deaths = 0
    WHERE key = ${key} AND id = ${id} AND version = ${version - 1} AND state <> 'finished' AND lifecycle = 'active'
      AND responses >= ${responsesSeen(events)} AND executor = ${fence.executor} AND run = ${fence.run}`
      : sql`
    UPDATE holdfast_execution SET version = version + ${events.length}
    WHERE key = ${key} AND id = ${id} AND version = ${version - 1} AND state <> 'finished' AND lifecycle = 'active'
      AND responses >= ${responsesSeen(events)} AND executor = ${fence.executor} AND run = ${fence.run}`,
  );
  if (changed === 0) return yield* otherwise();
  let next = version;
  for (const event of events) {
    const { kind, call, seen, body, payload } = eventColumnsOf(event);
    yield* run(sql`
      INSERT INTO holdfast_execution_event
        (execution, version, at, responses, kind, call, seen, body, payload)
      SELECT key, ${next}, ${at}, responses, ${kind}, ${call}, ${seen}, ${body}, ${payload}
      FROM holdfast_execution WHERE key = ${key}`);
    next += 1;
  }
  return { nextVersion: next, at };
}

type Finished = Extract<ControlEvent, { readonly kind: "finished" }>;

/** Ends a locked run without a parent: no other run is notified in the same transaction. */
function* finishLean(
  { id, version, at }: AppendEvents,
  key: number,
  fence: Fence,
  finished: Finished,
  otherwise: () => Tx<AppendOutcome>,
): Tx<AppendOutcome> {
  const ended = yield* row<{
    readonly function: string;
    readonly responses: number;
  }>(sql`
    UPDATE holdfast_execution SET version = ${version}, state = 'finished', finished_at = ${at},
      result_kind = ${finished.resultKind}, lease_until = NULL, lock_version = NULL, is_alone = NULL,
      executor = NULL, run = NULL, owner = NULL
    WHERE key = ${key} AND id = ${id} AND version = ${version - 1} AND state = 'locked' AND lifecycle = 'active'
      AND executor = ${fence.executor} AND run = ${fence.run} AND parent IS NULL AND process IS NULL AND session IS NULL
    RETURNING function, responses`);
  if (ended === undefined) return yield* otherwise();
  // Nearly always so; a generator for nothing would show.
  const counted = hasSeenAll(finished, ended.responses)
    ? finished
    : yield* withUnread(key, ended.responses, finished);
  const { seen, body, payload } = eventColumnsOf(counted);
  yield* run(sql`
    INSERT INTO holdfast_execution_event
      (execution, version, at, responses, kind, call, seen, body, payload)
    VALUES (${key}, ${version}, ${at}, ${ended.responses}, 'finished', 0, ${seen}, ${body}, ${payload})`);
  yield* run(sql`
    DELETE FROM holdfast_execution_delay WHERE execution = ${key}`);
  yield* announce(placeFreed, ended.function);
  yield* announce(executionEnded, id);
  const { unread } = counted;
  return unread === undefined ? { nextVersion: version, at } : { nextVersion: version, at, unread };
}
