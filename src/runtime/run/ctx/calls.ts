import { HoldfastError } from "../../../model/errors.ts";
import type { NewExecution } from "../../../stores/execution/log/create.ts";
import { runCancelled } from "../../failures.ts";
import { spokenShape, type CallShape, type HasInput } from "../replay/call-shape.ts";
import type { CallSite } from "./call-site.ts";
import type { Entry } from "../journal.ts";
import { isToBeCancelled } from "../cancellation.ts";
import type { RunState } from "../run-state.ts";
import type { LoggedHistory } from "../replay/script.ts";
import { ctxInStep, where } from "../step-context.ts";
import type { Task } from "../tasks.ts";

/** A call of `ctx`, with its event in the log, if there is one. */
export interface Call {
  readonly number: number;
  readonly recorded: LoggedHistory | undefined;
}

/**
 * Takes the next number for a call, and compares the call with the log.
 *
 * @throws HoldfastError `CTX_IN_STEP`
 */
export function takeCall(run: RunState, asked: CallShape, hasInput?: HasInput): Call {
  assertUsable(run, asked);
  run.calls += 1;
  run.draws = 0;
  const number = run.calls;
  const recorded = run.replay.isOver ? undefined : run.replay.match(number, asked, hasInput);
  return { number, recorded };
}

/**
 * The id under which the answer to a call arrives. A fork keeps ended children and sleeps,
 * which have the ids of the original run.
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

/** Queues an append for a call that is not in the log yet. */
export function request(
  run: RunState,
  { recorded }: Call,
  entry: Entry,
  child?: NewExecution,
): void {
  if (recorded === undefined) run.journal.request(entry, child);
}

/**
 * Starts a step or a transaction: at once, or at the frontier if the log may have its outcome.
 * Code that may reveal the token of an external starts once the external is recorded. Otherwise
 * the answer could come before the question. Nothing starts between a request to cancel and its
 * delivery.
 */
function begin(run: RunState, { number }: Call, start: () => void): void {
  // Another worker has the run by now; this code is left over.
  if (run.isOver) return;
  const isLive = run.replay.isOver && run.host.onlyReplays === undefined;
  if (isLive && !run.journal.hasExternals && !isToBeCancelled(run)) start();
  else run.unstarted.set(number, start);
}

/** Starts the steps and transactions that had to wait, in the order of the calls. */
export function beginUnstarted(run: RunState): void {
  if (run.unstarted.size === 0 || run.journal.hasExternals || isToBeCancelled(run)) return;
  const begun = [...run.unstarted.values()];
  run.unstarted.clear();
  for (const start of begun) start();
}

/** Starts a step or a transaction, with the attempts that have failed before. */
export function beginTask(run: RunState, call: Call, task: Task): void {
  begin(run, call, () => {
    const tooLate = cancelledBefore(run, call);
    if (tooLate !== undefined) return run.steps.fail(task, tooLate);
    const failed = run.replay.failedAttempts(task.call);
    run.steps.start(
      task,
      failed?.count,
      failed?.retryAt,
      run.replay.begunAttempt(task.call, task.name),
    );
  });
}

/** Lets an announced attempt start, now that its announcement is durable. */
export function announced(run: RunState, call: number): void {
  run.unstarted.set(call, () => {
    const tooLate = cancelledBefore(run, { number: call });
    if (tooLate === undefined) run.steps.beginAnnounced(call);
    else run.steps.failAnnounced(call, tooLate);
  });
}

/** The reason not to start a call: the run was cancelled after it. */
function cancelledBefore(
  { id, cancelledAt, cancellation }: RunState,
  { number }: Pick<Call, "number">,
): HoldfastError | undefined {
  return cancelledAt !== undefined && number <= cancelledAt
    ? runCancelled(id, cancellation?.reason ?? null)
    : undefined;
}

/**
 * Refuses code that is not part of the run, and warns of code that runs at the wrong time. Code
 * that a timer or a socket outside a step resumed runs at another moment on replay. Its calls
 * may then come in another order.
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
      "a timer, a request or an event outside a step. On replay that may happen at another moment, and the run would be parked. " +
      "Await only promises of ctx, and do everything else in a step.",
    { id: run.id, function: run.definition.name, stack },
  );
}

/** The error for code that continued after its run: nothing of it could be recorded. */
function runEnded({ id, definition: { name } }: RunState, asked: CallShape): HoldfastError {
  return new HoldfastError(
    "RUN_ENDED",
    `Run ${id} of ${name} has ended, but code that it did not await called ctx (${spokenShape(asked)}) afterwards. Nothing was started. Await everything before returning.`,
    { id, function: name },
  );
}

/** Refuses a method inside a step that is not a call and takes no number. @throws HoldfastError `CTX_IN_STEP` */
export function assertOutsideStep(): void {
  const inside = where.getStore();
  if (inside?.step !== undefined) throw ctxInStep(inside.step);
}

/** Decides once per run and id: see `WorkflowContext.patched`. */
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
    `Run ${id} already exists with another function or input, so nothing was started. Choose another id, or pass the same input.`,
    { id },
  );
}
