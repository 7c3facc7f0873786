import type { HoldfastError } from "../../model/errors.ts";
import { append, transact } from "./append.ts";
import { beginUnstarted } from "./ctx/calls.ts";
import { isToBeCancelled } from "./cancellation.ts";
import { deliverOutcome, deliverResponse } from "./deliver.ts";
import { closeAndEnd, endAbandoned, leave, park } from "./ending.ts";
import { isStale, renewFirst } from "./lease.ts";
import { isResponse } from "./replay/script.ts";
import type { RunState } from "./run-state.ts";

/**
 * Advances a run by one step. Called only when its code is at rest, and never during an append.
 * Returns true if there may be more to do at the next rest.
 */
export function pump(run: RunState): boolean {
  run.isAwake = false;
  if (run.isOver || run.isAppending) return false;
  if (isStale(run)) return renewFirst(run);
  if (run.poison !== undefined) return setAside(run, run.poison);
  if (run.settled !== undefined) {
    if (!run.replay.isOver) run.arrived.unshift(...run.replay.endEarly(run.calls, run.settled));
    if (run.poison !== undefined) return true;
    writeLateProgress(run);
    return closeAndEnd(run);
  }
  // Undelivered events are in the log, for the next worker that has the run.
  if (run.leaving !== undefined) return moveOn(run);
  beginLate(run);
  const outcome = run.acknowledged.shift();
  if (outcome !== undefined) {
    deliverOutcome(run, outcome);
    return true;
  }
  if (!run.replay.isOver) return replayOn(run);
  const response = run.arrived.shift();
  if (response !== undefined) {
    deliverResponse(run, response);
    return true;
  }
  return moveOn(run);
}

/**
 * Parks a run that cannot continue. A run that is being released is parked by its next worker:
 * a paused run cannot be parked.
 */
function setAside(run: RunState, why: HoldfastError): boolean {
  const { leaving, cancellation } = run;
  return leaving === undefined || cancellation !== null ? park(run, why) : leave(run, leaving);
}

/** Starts what an append has allowed, when its answer came after the lease had expired. */
function beginLate(run: RunState): void {
  const isLive = run.replay.isOver && run.host.onlyReplays === undefined;
  if (isLive && run.unstarted.size > 0) beginUnstarted(run);
}

/** Delivers the next delivery of the log; after the log, the frontier. */
function replayOn(run: RunState): boolean {
  const delivery = run.replay.nextDelivery();
  if (delivery === undefined) reachFrontier(run);
  else if (isResponse(delivery)) deliverResponse(run, delivery);
  else deliverOutcome(run, delivery);
  return true;
}

/** The whole log has matched. Only now do calls without an outcome in the log start, in their order. */
function reachFrontier(run: RunState): void {
  run.replay.finish(run.calls);
  if (run.poison !== undefined) return;
  run.arrived.unshift(...run.replay.later);
  if (run.host.onlyReplays !== undefined) return;
  writeLateProgress(run);
  beginUnstarted(run);
}

/** Writes progress that the code reported after the last outcome: its worker may have died before writing it. */
function writeLateProgress(run: RunState): void {
  const late = run.lateProgress;
  run.lateProgress = undefined;
  if (late !== undefined) run.host.setProgress(run, late.value);
}

/** Records what has happened, or lets the run rest, when there is nothing to deliver. */
function moveOn(run: RunState): boolean {
  if (run.host.onlyReplays !== undefined) {
    run.host.onlyReplays(run);
    return false;
  }
  const now = run.host.clock.now();
  if (run.cleanupBy !== undefined && now >= run.cleanupBy) return endAbandoned(run);
  if (run.leaving === undefined) {
    if (!run.isWaiting && !isToBeCancelled(run)) beginDue(run, now);
    recordCancellation(run);
  }
  if (!run.journal.isEmpty) return append(run);
  cancelChildren(run);
  if (run.leaving !== undefined) return run.steps.isRunning ? false : leave(run, run.leaving);
  if (run.transactions.length > 0) return transact(run);
  if (run.steps.isBusy(now)) return false;
  if (run.isWaiting) return false;
  if (run.open.size === 0 && run.children.size === 0) return tellStuck(run);
  return append(run);
}

/** Records the cancellation, once. The request cannot know what the code had seen by then, so the run records it. */
function recordCancellation(run: RunState): void {
  if (!isToBeCancelled(run)) return;
  if (run.told.has("cancellation")) return;
  run.told.add("cancellation");
  run.journal.record({ kind: "cancellationDelivered", call: run.calls });
}

function cancelChildren(run: RunState): void {
  // Checked at each rest, and nearly always empty.
  if (run.childrenToCancel.length === 0) return;
  const left = run.childrenToCancel.filter((child) => run.children.has(child));
  run.childrenToCancel = [];
  if (left.length === 0) return;
  for (const child of left) run.childrenAsked.add(child);
  run.host.cancel(left, false);
}

/** Starts due attempts, except in a run that rests: that is woken once it has a place. */
function beginDue(run: RunState, now: number): void {
  run.steps.startDue(now);
  expireReceivers(run, now);
}

/** Records timeouts of receives. A signal that was read in time has won: nothing is left to deliver at this point. */
function expireReceivers(run: RunState, now: number): void {
  const { nextExpiry } = run.mailbox;
  if (nextExpiry === undefined || nextExpiry > now) return;
  for (const { call, signal } of run.mailbox.expire(now))
    run.journal.record({ kind: "receiveTimedOut", signal, call });
}

function tellStuck(run: RunState): boolean {
  if (run.told.has("stuck")) return false;
  run.told.add("stuck");
  const { name } = run.definition;
  run.host.warn(
    `Run ${run.id} of ${name} waits for something outside ctx, such as a timer or a request of its own. ` +
      "It stays in memory and holds its place until that arrives; if this process dies, the wait starts again. Do such work in a step.",
    { id: run.id, function: name },
  );
  return false;
}
