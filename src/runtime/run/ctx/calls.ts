import { HoldfastError } from "../../../model/errors.ts";
import type { NewExecution } from "../../../stores/execution/log/create.ts";
import { recorded as recordedError, runCancelled } from "../../failures.ts";
import { broke } from "../broken.ts";
import { spokenShape, type CallShape } from "../replay/call-shape.ts";
import type { CallSite } from "./call-site.ts";
import type { Entry } from "../journal.ts";
import type { RunState } from "../run-state.ts";
import type { LoggedHistory } from "../replay/script.ts";
import { ctxInStep, where } from "../step-context.ts";
import type { Step } from "../steps.ts";

/** A call of `ctx`, with the event that the log has of it, if it has one. */
export interface Call {
  readonly number: number;
  readonly recorded: LoggedHistory | undefined;
}

/**
 * Takes the next number for a call, and holds it to the log.
 *
 * @throws HoldfastError `CTX_IN_STEP`
 */
export function takeCall(run: RunState, asked: CallShape): Call {
  assertUsable(run, asked);
  run.calls += 1;
  run.draws = 0;
  const number = run.calls;
  const recorded = run.replay.isOver ? undefined : run.replay.match(number, asked);
  return { number, recorded };
}

/**
 * Under which id the answer to a call comes: a fork keeps the children and
 * sleeps that had ended, which are those of the run it was made from.
 */
export function answeringId<T extends string>({ recorded }: Call, own: T): T {
  const { child, delay } = (recorded?.event ?? {}) as {
    readonly child?: T;
    readonly delay?: T;
  };
  return child ?? delay ?? own;
}

/** A promise that settles when the call's outcome or response is delivered. */
export function promiseOf(
  run: RunState,
  { number }: Call,
  asked: CallShape,
  endsWithRun: boolean,
  site?: CallSite,
): Promise<unknown> {
  return run.open.open(number, asked, endsWithRun, site);
}

/** Has something appended that no log has yet. */
export function request(
  run: RunState,
  { recorded }: Call,
  entry: Entry,
  child?: NewExecution,
): void {
  if (recorded === undefined) run.journal.request(entry, child);
}

/**
 * Begins a step or a transaction: at once, or at the frontier when the log may
 * have its outcome. What may tell somebody the token of an external begins
 * once that is recorded, or the answer could come before there is a question.
 */
function begin(run: RunState, { number }: Call, start: () => void): void {
  // Somebody else has the run by now; this code is the ghost of it.
  if (run.isOver) return;
  const isLive = run.replay.isOver && run.host.onlyReplays === undefined;
  if (isLive && !run.journal.hasExternals) start();
  else run.unstarted.set(number, start);
}

/** Begins what had to wait, in the order of the calls. */
export function beginUnstarted(run: RunState): void {
  if (run.unstarted.size === 0 || run.journal.hasExternals) return;
  const begun = [...run.unstarted.values()];
  run.unstarted.clear();
  for (const start of begun) start();
}

/** Begins a step, with the attempts that have failed before. */
export function beginStep(run: RunState, call: Call, step: Step): void {
  begin(run, call, () => {
    const tooLate = cancelledBefore(run, call);
    if (tooLate !== undefined) return run.steps.fail(step, tooLate);
    const failed = run.replay.failedAttempts(step.call);
    run.steps.start(step, failed?.count, failed?.retryAt);
  });
}

/** Lets a transaction be run when those before it have been. */
export function beginTransaction(
  run: RunState,
  call: Call,
  task: RunState["transactions"][number],
): void {
  begin(run, call, () => {
    const tooLate = cancelledBefore(run, call);
    if (tooLate !== undefined) return failTransaction(run, task, tooLate);
    run.transactions.push(task);
    run.again();
  });
}

/** Records a transaction as failed that has not been run. */
export function failTransaction(
  run: RunState,
  { name, call }: RunState["transactions"][number],
  reason: Error,
): void {
  const { journal, host } = run;
  try {
    const value = recordedError(reason, { step: name, attempt: 1 }, (stored) =>
      host.values.value(stored),
    );
    journal.record({
      kind: "transactionFinished",
      name,
      inputHash: null,
      outcome: "failed",
      value,
      call,
    });
    run.again();
  } catch (error) {
    broke(run, error);
  }
}

/** Why a call is not begun any more: the run was cancelled behind it. */
function cancelledBefore(
  { id, cancelledAt, cancellation }: RunState,
  { number }: Call,
): HoldfastError | undefined {
  return cancelledAt !== undefined && number <= cancelledAt
    ? runCancelled(id, cancellation?.reason ?? null)
    : undefined;
}

/**
 * Whether this is code of the run, running when it may. What was resumed by a
 * timer or a socket outside a step runs at another moment on replay, and then
 * its calls may come in another order.
 */
function assertUsable(run: RunState, asked: CallShape): void {
  const inside = where.getStore();
  if (inside?.step !== undefined) throw ctxInStep(inside.step);
  if (run.settled !== undefined) throw runEnded(run, asked);
  if (run.isAwake || run.isOver) return;
  if (run.told.has("foreign")) return;
  run.told.add("foreign");
  const { stack } = new Error("called here");
  run.host.warn(
    `Run ${run.id} of ${run.definition.name} called ctx (${spokenShape(asked)}) after it was resumed by something that is not recorded: ` +
      "a timer, a request or an event outside of a step. On replay that may come at another moment, and the run would be parked. " +
      "Await only promises of ctx, and do everything else in a step.",
    { id: run.id, function: run.definition.name, stack },
  );
}

/** What a run did not await went on, or a timer of its own: nothing of it could be recorded. */
function runEnded({ id, definition: { name } }: RunState, asked: CallShape): HoldfastError {
  return new HoldfastError(
    "RUN_ENDED",
    `Run ${id} of ${name} has ended, and something that it did not await called ctx (${spokenShape(asked)}) afterwards. Nothing was begun. Await everything before returning.`,
    { id, function: name },
  );
}

/** @throws HoldfastError `CTX_IN_STEP`. For what is no call and takes no number. */
export function assertOutsideStep(): void {
  const inside = where.getStore();
  if (inside?.step !== undefined) throw ctxInStep(inside.step);
}

/** Decided once for each run and id: see `WorkflowContext.patched`. */
export function isPatched(run: RunState, id: string): boolean {
  assertOutsideStep();
  const decided = run.patches.get(id);
  if (decided !== undefined) return decided;
  const isNew = run.replay.isPatched(id, run.calls);
  run.patches.set(id, isNew);
  if (isNew && !run.replay.hasPatch(id))
    run.journal.request({ kind: "patched", patch: id, call: run.calls });
  return isNew;
}

export function startConflict(id: string): HoldfastError {
  return new HoldfastError(
    "EXECUTION_EXISTS",
    `Run ${id} exists already with another function or input, so nothing was started. Choose another id, or give the same input.`,
    { id },
  );
}
