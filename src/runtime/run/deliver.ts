import { unreachable } from "../../model/errors.ts";
import type { LoggedResponse } from "../../model/execution/event.ts";
import { externalFunction } from "../../model/execution/open-waits.ts";
import type { ExecutionResult } from "../../model/execution/result.ts";
import { restoredFailure } from "../../model/values/restored-error.ts";
import type { StoredError } from "../../model/values/stored-error.ts";
import { runCancelled, runFailure } from "../failures.ts";
import { withSite } from "./ctx/call-site.ts";
import { spokenShape } from "./replay/call-shape.ts";
import { startConflict } from "./ctx/calls.ts";
import type { OpenCall } from "./ctx/open-calls.ts";
import type { RunState } from "./run-state.ts";
import type { LoggedHistory } from "./replay/script.ts";

/**
 * Deliveries: the only moments at which the code of a run gets something. Each delivery settles
 * one call or fills the mailbox; a cancellation settles all calls that it ends. The code then
 * runs until it rests again.
 */

/** Delivers an outcome that the run recorded itself. */
export function deliverOutcome(run: RunState, logged: LoggedHistory): void {
  const { event, at } = logged;
  wake(run, at);
  if (event.kind === "cancellationDelivered") return cancel(run, at);
  run.unstarted.delete(event.call);
  const call = run.open.close(event.call);
  if (call === undefined) {
    // Cancelled calls are over before their late outcome arrives.
    if (!run.replay.isOver && event.call > run.calls) run.replay.missed(logged);
    return;
  }
  switch (event.kind) {
    case "stepFinished":
    case "transactionFinished":
      if (event.outcome === "failed")
        return rejectBy(run, call, restoredFailure(event.value as StoredError));
      return isCancelled(run, call) ? rejectBy(run, call) : call.resolve(event.value);
    case "receiveTimedOut":
      run.mailbox.forgetCall(event.call);
      return call.resolve(undefined);
    case "scheduled":
      if (event.outcome === "conflict") return call.reject(startConflict(event.execution));
      return call.resolve({
        id: event.execution,
        existed: event.outcome === "existed",
      });
    default:
      throw new Error(`A ${event.kind} is no outcome.`);
  }
}

/** Delivers a response from elsewhere. */
export function deliverResponse(run: RunState, logged: LoggedResponse<unknown>): void {
  const { response, seq, at } = logged;
  run.seen = seq;
  // The response made the run due in the log too, so the next rest is recorded again.
  run.isWaiting = false;
  wake(run, at);
  switch (response.kind) {
    case "signal": {
      const receiver = run.mailbox.deliver(seq, response);
      if (receiver !== undefined) run.open.close(receiver.call)?.resolve(response.value);
      return;
    }
    case "child":
      run.children.delete(response.child);
      run.childrenAsked.delete(response.child);
      return deliverTo(run, response.child, logged);
    case "delay":
      return deliverTo(run, response.delay, logged);
    default:
      return unreachable(response);
  }
}

function deliverTo(run: RunState, id: string, logged: LoggedResponse<unknown>): void {
  const source = run.sources.get(id);
  if (source === undefined) {
    if (!run.replay.isOver) run.replay.missedSource(id);
    return;
  }
  run.sources.delete(id);
  if (source.deliver !== undefined) source.deliver(logged);
  else settleBy(run, source.call, logged);
}

/** Settles the call that waited for a child or a delay. */
function settleBy(run: RunState, number: number, { response }: LoggedResponse<unknown>): void {
  const call = run.open.close(number);
  if (call === undefined) return;
  if (response.kind !== "child") return call.resolve(undefined);
  const result = response.result as ExecutionResult;
  // Only its own deadline ends a question so. Nothing has failed.
  if (result.kind === "timedOut" && call.shape.name === externalFunction)
    return isCancelled(run, call) ? rejectBy(run, call) : call.resolve(undefined);
  if (result.kind !== "completed") {
    const { name } = call.shape;
    const failure = runFailure({ id: response.child, function: name }, result);
    return rejectBy(run, call, withSite(failure, call.site));
  }
  return isCancelled(run, call) ? rejectBy(run, call) : call.resolve(result.value);
}

/** True if the run was cancelled while the call was open. */
function isCancelled({ cancelledAt }: RunState, { call }: OpenCall): boolean {
  return cancelledAt !== undefined && call <= cancelledAt;
}

/**
 * Rejects a call. Calls that are open at the cancellation reject, however their work ends.
 * Otherwise a run whose step or child completes just then would continue as if it were not
 * cancelled.
 */
function rejectBy(run: RunState, call: OpenCall, failure?: Error): void {
  if (failure !== undefined && !isCancelled(run, call)) return call.reject(failure);
  call.reject(
    runCancelled(run.id, run.cancellation?.reason ?? null, {
      call: spokenShape(call.shape),
      outcome: failure === undefined ? "completed" : "failed",
      cause: failure,
    }),
  );
}

/** Delivers the cancellation to the code. From here on the code does only cleanup. */
function cancel(run: RunState, at: number): void {
  const reason = runCancelled(run.id, run.cancellation?.reason ?? null);
  run.cancelledAt = run.calls;
  run.cleanupBy = at + run.definition.cleanupMs;
  run.steps.cancel(reason);
  for (const { transaction } of run.transactions.splice(0)) run.steps.fail(transaction, reason);
  for (const open of run.open.endingWithRun) {
    run.open.close(open.call);
    run.mailbox.forgetCall(open.call);
    open.reject(reason);
  }
  // Children end by themselves, and their waits with them. Children of the cleanup are not asked to end.
  run.childrenToCancel = [...run.children.keys()].toReversed();
  run.abort.abort(reason);
}

/** Marks the code as running until the next rest. */
function wake(run: RunState, at: number): void {
  if (at > run.now) run.now = at;
  run.isAwake = true;
}
