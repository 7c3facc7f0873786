import type { HoldfastError } from "../../model/errors.ts";
import type { ExecutionCodec } from "../../model/execution/codec.ts";
import type { ExecutionEvent } from "../../model/execution/event.ts";
import { isRunFailedError } from "../../model/run-failed-error.ts";
import { isCancellation, isOfTheCodec, ofSubject, recorded, runCancelled } from "../failures.ts";
import { eventFault } from "../../stores/execution/log/event-fields.ts";
import type { Definition } from "../definition/definitions.ts";
import { Continuation } from "./continuation.ts";
import { append } from "./append.ts";
import { mismatchIn } from "./replay/nondeterminism.ts";
import type { RunState, Settled } from "./run-state.ts";

/**
 * Closes a run whose code has ended. Nothing is delivered to the code any more, and nothing
 * that it left open may outlive it. Steps are aborted and forgotten, and sleeps end with the
 * run. Children are asked to end, newest first, and the run waits for them.
 */
export function closeAndEnd(run: RunState): boolean {
  if (!run.isClosing) {
    run.isClosing = true;
    warnOfForgotten(run);
    run.steps.drop(() => runCancelled(run.id, null));
    run.transactions.length = 0;
    // The code may have ended before the frontier: steps that have not started then never start.
    run.unstarted.clear();
    run.journal.dropAnnouncements();
    run.childrenToCancel = [...run.children.keys()].toReversed();
    // Signals that the code no longer waits for are left to the next pass.
    run.mailbox.dropReceivers();
  }
  endCleanup(run);
  for (const { response, seq } of run.arrived.splice(0)) {
    run.seen = Math.max(run.seen, seq);
    // The response made the run due in the log too, so the next rest is recorded again.
    run.isWaiting = false;
    if (response.kind === "child") run.children.delete(response.child);
    // The next pass, if there is one, gets the signals that no call has taken.
    if (response.kind === "signal") run.mailbox.deliver(seq, response);
  }
  run.acknowledged.length = 0;
  // Requests that the code made before it ended, such as starts that outlive it.
  if (run.journal.hasRequests) return append(run);
  run.journal.dropRecords();
  if (run.children.size === 0) return end(run);
  const left = run.childrenToCancel.filter((child) => run.children.has(child));
  run.childrenToCancel = [];
  if (left.length > 0) run.host.cancel(left, run.isAbandoned);
  if (run.leaving !== undefined) return leave(run, run.leaving);
  return run.isWaiting ? false : append(run);
}

/** Warned once per function: its code is the same in all its runs. */
const warnedOf = new WeakSet<Definition>();

/** Warns of a step without an await: it does its work, or half of it, and is not recorded. */
function warnOfForgotten({ id, host, steps, settled, definition }: RunState): void {
  const [step] = steps.runningNames;
  if (step === undefined || settled?.kind !== "returned") return;
  if (warnedOf.has(definition)) return;
  warnedOf.add(definition);
  const { name } = definition;
  host.warn(
    `Run ${id} of ${name} returned while its step "${step}" was running. That step is not recorded, and may be only half done. ` +
      "Await every step before returning; to limit a step, use its timeout instead of a race.",
    { id, function: name, step },
  );
}

/** Ends children that are still running at the end of the cleanup's time, without their cleanup. */
function endCleanup(run: RunState): void {
  const { cleanupBy, isAbandoned, host } = run;
  if (cleanupBy === undefined || isAbandoned) return;
  if (host.clock.now() < cleanupBy) return;
  run.isAbandoned = true;
  run.isWaiting = false;
  run.childrenToCancel = [...run.children.keys()].toReversed();
}

/** Releases a run whose running steps have been recorded: another worker may have it, or it stays paused. */
export function leave(run: RunState, reason: string): boolean {
  run.isAppending = true;
  void run.host.release(run, reason);
  return false;
}

/** Ends a run whose cleanup took too long, without the rest of the cleanup, and its children with it. */
export function endAbandoned(run: RunState): boolean {
  run.isAbandoned = true;
  run.settled = {
    kind: "threw",
    error: runCancelled(run.id, run.cancellation?.reason ?? null),
  };
  return true;
}

function end(run: RunState): boolean {
  const { host, settled } = run;
  if (settled === undefined) throw new Error("It has not ended.");
  const continuation =
    settled.kind === "returned" && settled.value instanceof Continuation
      ? settled.value
      : undefined;
  // The next pass would start here, though the run is paused or its worker closes.
  if (continuation !== undefined && run.leaving !== undefined) return leave(run, run.leaving);
  const next = continuation && continued(run, continuation);
  // The run fails if its next pass cannot be recorded.
  const events = next ?? [{ ...finished(run, run.settled ?? settled), ...unreadOf(run) }];
  run.isAppending = true;
  run.isLockingAgain = next !== undefined;
  void host.append(run, { at: host.clock.now(), events }).then((done) => {
    run.isLockingAgain = false;
    if (done === undefined) return;
    run.isOver = true;
    // Removes the run's timer.
    if (run.cleanupBy !== undefined) run.again();
    host.ended(run, next !== undefined);
  });
  return false;
}

type Finished = Extract<ExecutionEvent, { readonly kind: "finished" }>;

/** The responses that the code was given, and how many of their messages it did not take. */
function unreadOf(run: RunState): Pick<Finished, "seen" | "unread"> {
  // Code that took another path than its log was given messages twice: the log tells more.
  if (run.told.has("unended")) return {};
  const unread = run.mailbox.unreadNames.length;
  const seen = Math.max(run.seen, run.locked.responsesFrom);
  return unread === 0 ? { seen } : { seen, unread };
}

function continued(run: RunState, { input }: Continuation): readonly ExecutionEvent[] | undefined {
  try {
    return [
      run.host.values.event({
        kind: "continued",
        input,
        seen: run.seen,
        unread: run.mailbox.unread,
      }),
      run.host.lockedAgain(run),
    ];
  } catch (error) {
    // A codec error says nothing about the input.
    if (isOfTheCodec(error)) throw error;
    run.settled = {
      kind: "threw",
      error: ofSubject(error, "the input of its next pass"),
    };
    return undefined;
  }
}

function finished(run: RunState, settled: Settled): Finished {
  const { values } = run.host;
  const failed = (thrown: unknown): Finished =>
    recorded(thrown, undefined, (error) => values.finished({ kind: "failed", error }));
  if (settled.kind === "returned")
    try {
      return values.finished({ kind: "completed", value: settled.value });
    } catch (error) {
      if (isOfTheCodec(error)) throw error;
      return failed(ofSubject(refusalOf(values, settled.value) ?? error, "its result"));
    }
  const { cancellation } = run;
  if (cancellation === null || !isOfCancellation(run, settled.error)) return failed(settled.error);
  if (cancellation.cause === "deadline") return values.finished({ kind: "timedOut" });
  const { reason } = cancellation;
  return values.finished({
    kind: "cancelled",
    ...(reason !== null && { reason }),
  });
}

/** The reason why a value cannot be stored, with its path from the returned value, not from the result around it. */
function refusalOf(values: ExecutionCodec, value: unknown): unknown {
  try {
    values.value(value);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** True for the cancellation itself, or for that of a child that was asked to end because of it. */
function isOfCancellation({ cancelledAt }: RunState, error: unknown): boolean {
  if (isCancellation(error)) return true;
  return cancelledAt !== undefined && isRunFailedError(error) && error.kind === "cancelled";
}

/** Drops requests of the code that are not in the log. Requests in the log end with the run. */
function keepToLog(run: RunState): void {
  const { replay, children, arrived, journal, unstarted } = run;
  unstarted.clear();
  const dropped = journal.drop();
  if (replay.hasMatched) {
    for (const { id } of dropped) children.delete(id);
    return;
  }
  // The code took another path: neither its children nor its deliveries count.
  children.clear();
  for (const [child, call] of replay.children) children.set(child, call);
  arrived.unshift(...replay.responses);
}

/** Gives up a run whose end cannot be recorded, such as while a payload codec fails. */
function giveUp(run: RunState, why: HoldfastError): boolean {
  const { id, host, definition } = run;
  const { name } = definition;
  host.warn(
    `Run ${id} of ${name} is being cancelled, but its end cannot be recorded: ${why.message} It is retried when its lease has expired.`,
    { id, function: name, code: why.code },
  );
  host.lost(run, why);
  return false;
}

/** False for a codec that fails at every value. That says nothing about the run, so its cleanup is retried. */
function canEncode({ host }: RunState): boolean {
  try {
    host.values.value(null);
    return true;
  } catch {
    return false;
  }
}

const reasonMax = 4_096;

/** Parks a run that cannot continue. A run that is being cancelled ends instead: its cleanup cannot run. */
export function park(run: RunState, why: HoldfastError): boolean {
  const onlyReplays = run.host.onlyReplays !== undefined;
  if (run.cancellation !== null && !onlyReplays) {
    if (run.told.has("unended") || (isOfTheCodec(why) && !canEncode(run))) return giveUp(run, why);
    run.told.add("unended");
    run.poison = undefined;
    run.isAbandoned = true;
    keepToLog(run);
    run.childrenToCancel = [...run.children.keys()].toReversed();
    const isConvicted = why.code === "RUN_KEEPS_KILLING_WORKERS";
    run.settled = {
      kind: "threw",
      error: isConvicted ? why : runCancelled(run.id, run.cancellation.reason),
    };
    run.replay.abandon();
    return true;
  }
  run.isAppending = true;
  run.steps.drop(() => why);
  const { host } = run;
  const event = parked(why, host.codeVersion);
  void host.append(run, { at: host.clock.now(), events: [event] }).then((done) => {
    if (done === undefined) return;
    run.isOver = true;
    // Removes the run's timer.
    run.again();
    host.parked(run, why);
  });
  return false;
}

/** The event with the calls that differ, unless the log holds a damaged one that cannot be stored. */
function parked(why: HoldfastError, codeVersion: string | null): ExecutionEvent {
  const reason = storable(why.message);
  const bare: ExecutionEvent = { kind: "parked", code: why.code, reason, codeVersion };
  const mismatch = mismatchIn(why);
  if (mismatch === undefined) return bare;
  const whole = { ...bare, mismatch };
  return eventFault(whole) === undefined ? whole : bare;
}

/** Limits a reason to its length and characters: an error of the run may contain anything. */
function storable(reason: string): string {
  return reason.replaceAll("\0", "").slice(0, reasonMax).toWellFormed();
}
