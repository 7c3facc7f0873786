import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { isPolicy } from "../../model/queue.ts";
import { failedTurnsMax } from "../../model/session/agent.ts";
import { turnLost } from "../../model/session/errors.ts";
import { instantOf } from "../../model/time/clock.ts";
import { assertedRun } from "../../sql/asserted-run.ts";
import { keysOf } from "../../sql/dialect.ts";
import { announce, row, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { StoreContext } from "../context.ts";
import { restartIntents } from "../attachment/attachment-row.ts";
import { liveFence } from "../lease/parts.ts";
import { clearOpenTurn, lockedByKey, type SessionRoot } from "../session-row.ts";
import { openTurn, type TurnContext } from "../turn/parts.ts";
import type { BatchRow } from "./batch-row.ts";
import { queueWork } from "./topics.ts";

/**
 * The turns of a session with an agent, as seen from its queue.
 *
 *   work is queued      no turn is open: the next one begins, in the same transaction
 *   a turn is open      it may claim the work; its end looks again
 *   its run ends        claims return to the queue and count a failed turn; they are held back.
 *                       If other work waits, the next turn begins
 *   a commit gives up   the same, but claims that it did not consume count nothing if the turn has
 *                       consumed anything
 *   work is sent        batches that were held back are claimed with it. After three failed turns
 *                       they are set aside: the next turn only reports them
 *
 * All of it happens under the lock of the session. The end of a run holds the lock of the run too,
 * which comes first.
 */

/**
 * Begins a turn of a locked session when it has an agent and no turn that may begin by then. A turn
 * that may have begun by this clock is never replaced, whatever instant the caller read before.
 */
export function* beginTurn(
  context: TurnContext,
  session: SessionRoot,
  { at, dueAt }: { readonly at: number; readonly dueAt: number },
): Tx<void> {
  const { key, agent, open_turn: open, turn_due_at: openFrom } = session;
  if (agent === null) return;
  if (open !== null) {
    const opensAt = openFrom ?? 0;
    if (opensAt <= Math.max(at, dueAt)) return;
    if (opensAt <= instantOf(() => context.clock.now())) return;
    // Another clock may have begun it. Its claims return to the queue, and it can commit nothing.
    yield* returnClaims(key, open, false);
  }
  const last = yield* row<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_queue_batch WHERE ${keysOf(key, 0)} ORDER BY session DESC, key DESC LIMIT 1`);
  yield* openTurn(context, session, agent, { at, dueAt, batch: last?.key ?? 0 });
}

/** Begins a turn of a locked session without an open one, if work waits for it. */
export function* beginWaitingTurn(
  context: TurnContext,
  session: SessionRoot,
  at: number,
): Tx<void> {
  if (session.agent === null) return;
  const dueAt = yield* nextWorkAt(session.key, at);
  if (dueAt !== undefined) yield* beginTurn(context, session, { at, dueAt });
}

/** Ends the turn of a run that has ended. Does nothing when the session has another open turn. */
export function* endTurn(
  context: TurnContext,
  session: number,
  id: ExecutionId,
  at: number,
): Tx<void> {
  const root = yield* lockedByKey(session);
  if (root?.open_turn === id) yield* closeTurn(context, root, { at, hasCommitted: false });
}

/**
 * Accepts only a transaction of the run that takes the open turn, while the lease of the session is
 * free. The session is locked, so the answer stays true until the transaction ends.
 * @throws HoldfastError `LEASE_LOST`
 */
export function* assertTurn(
  { clock }: Pick<StoreContext, "clock">,
  session: SessionRoot,
): Tx<{ readonly turn: ExecutionId; readonly at: number }> {
  const asserted = yield* assertedRun();
  if (asserted === undefined) throw turnLost(session.id, "missing");
  if (asserted.id !== session.open_turn) throw turnLost(session.id, "closed");
  const at = instantOf(() => clock.now());
  if ((yield* liveFence(session, at)) !== 0) throw turnLost(session.id, "leased");
  return { turn: asserted.id, at };
}

/** Closes the open turn of a locked session, and begins the next one if work waits. */
export function* closeTurn(
  context: TurnContext,
  session: SessionRoot,
  { at, hasCommitted }: { readonly at: number; readonly hasCommitted: boolean },
): Tx<void> {
  const { key, open_turn: open } = session;
  if (open === null) return;
  // A turn that has consumed nothing would be followed by another one for the same work forever.
  const hasFailed = !hasCommitted || session.turn_batch !== null;
  const returned = yield* returnClaims(key, open, hasFailed);
  if (returned === 0) yield* holdBackUnclaimed(session, at);
  yield* clearOpenTurn(key);
  yield* restartIntents(key, at);
  yield* beginWaitingTurn(context, { ...session, open_turn: null, turn_due_at: null }, at);
  if (returned > 0) yield* announce(queueWork, session.id);
}

function* returnClaims(session: number, turn: ExecutionId, hasFailed: boolean): Tx<number> {
  const failed = Number(hasFailed);
  return yield* run(sql`
    UPDATE holdfast_queue_batch SET claim = NULL, claim_size = NULL, turn = NULL,
      failed_turns = failed_turns + ${failed},
      is_held_back = CASE WHEN ${failed} = 1 THEN 1 ELSE is_held_back END
    WHERE session = ${session} AND turn = ${turn}`);
}

/**
 * Holds back the work that a turn was begun for, and that it left in the queue. Otherwise a turn
 * that fails before it claims anything would be followed by another one without end. Does nothing
 * after a turn that has consumed work.
 */
function* holdBackUnclaimed({ key, turn_batch: last }: SessionRoot, at: number): Tx<void> {
  if (last === null) return;
  const waits = sql`available_at <= ${at} AND turn IS NULL AND is_held_back = 0`;
  const first = yield* row<PolicyRow>(sql`
    SELECT key, class, delivery, slot FROM holdfast_queue_batch
    WHERE ${keysOf(key, 0, last)} AND ${waits} ORDER BY session, key LIMIT 1`);
  if (first === undefined) return;
  // No turn can claim anything behind a batch whose policy is unreadable: that one alone has failed.
  const until = isPolicy(first) ? last : first.key;
  yield* run(sql`
    UPDATE holdfast_queue_batch SET failed_turns = failed_turns + 1, is_held_back = 1
    WHERE ${keysOf(key, 0, until)} AND ${waits}`);
}

type PolicyRow = Pick<BatchRow, "key" | "class" | "delivery" | "slot">;

/** Lets the next turn claim batches that were held back. Those that are set aside stay so. */
export function* releaseHeldBack(session: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_queue_batch SET is_held_back = 0
    WHERE session = ${session} AND is_held_back = 1 AND failed_turns < ${failedTurnsMax}`);
}

/** The instant at which a turn has something to claim; undefined when nothing waits for one. */
function* nextWorkAt(session: number, at: number): Tx<number | undefined> {
  const waits = sql`is_held_back = 0 AND turn IS NULL`;
  const ready = yield* row(sql`
    SELECT key FROM holdfast_queue_batch
    WHERE ${keysOf(session, 0)} AND available_at <= ${at} AND ${waits} ORDER BY session, key LIMIT 1`);
  if (ready !== undefined) return at;
  const later = yield* row<{ readonly available_at: number }>(sql`
    SELECT available_at FROM holdfast_queue_batch
    WHERE session = ${session} AND available_at > 0 AND available_at > ${at} AND ${waits}
    ORDER BY available_at LIMIT 1`);
  return later?.available_at;
}
