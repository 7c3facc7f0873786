import type { ExecutionEvent } from "../../model/execution/event.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { lockWasLost } from "../failures.ts";
import { broke } from "./broken.ts";
import { heldBack } from "./cancellation.ts";
import { announced, beginUnstarted } from "./ctx/calls.ts";
import { deliverOutcome } from "./deliver.ts";
import { isListening, isStale } from "./lease.ts";
import type { Batch } from "./journal.ts";
import type { Appended, TimeoutRefused } from "./run-host.ts";
import type { RunState } from "./run-state.ts";
import type { LoggedHistory } from "./replay/script.ts";

/** The instant of the next check if nothing arrives; null for none. */
export function nextWakeAt(run: RunState): number | null {
  const { steps, mailbox, cleanupBy, isAbandoned } = run;
  // A run that has ended or is being released starts no due work.
  const beginsNothing = run.isClosing || run.leaving !== undefined;
  const instant = earlier(
    isAbandoned ? undefined : cleanupBy,
    beginsNothing ? undefined : earlier(mailbox.nextExpiry, steps.nextRetryAt),
  );
  return instant ?? null;
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}

/**
 * Appends queued events, and the run's wait if it does nothing else. Appends nothing if the run
 * has just become busy: a pause before an attempt is short by now, and its timer comes.
 */
export function append(run: RunState): boolean {
  const { host, journal } = run;
  const at = host.clock.now();
  const batch = heldBack(run, journal.take(run.seen, at));
  const { outcomes, events, announced: begun } = batch;
  const waits =
    journal.isEmpty &&
    outcomes.length === 0 &&
    run.transactions.length === 0 &&
    run.unstarted.size === 0 &&
    run.leaving === undefined &&
    isWaitingForSomething(run) &&
    !run.steps.isBusy(at);
  const hotUntil = waits ? host.hotUntil(run) : 0;
  const draft = waits ? { ...batch, events: [...events, waiting(run, hotUntil)] } : batch;
  if (draft.events.length === 0) return false;
  run.isAppending = true;
  run.isGoingToRest = waits;
  void host.append(run, draft).then((done) => {
    run.isGoingToRest = false;
    if (done !== undefined && "message" in done) return readFirst(run, batch, done);
    if (done === undefined) {
      for (const { id } of batch.children ?? []) run.children.delete(id);
      return;
    }
    const rests = waits && done.isAwake === undefined;
    run.isWaiting = rests;
    if (rests) run.leaseUntil = hotUntil;
    acknowledge(run, done, () => {
      for (const index of outcomes) {
        const event = events[index] as ExecutionEvent;
        const { acknowledged } = run;
        acknowledged.push(readOutcome(run, done, done.version + index, event));
      }
      for (const call of begun) announced(run, call);
    });
    if (rests) rest(run);
  });
  return false;
}

/** Gives the code the message that came before its receive timed out. Nothing was appended. */
function readFirst(run: RunState, batch: Batch, { message }: TimeoutRefused): void {
  run.isAppending = false;
  if (run.isOver) return;
  batch.withoutTimeouts?.();
  run.mailbox.hold(message);
  if (run.known < message) run.host.fetch(run);
  run.again();
}

/** Frees the run's place. If responses arrived during the append, the run continues in its place instead. */
function rest(run: RunState): void {
  const { id, host, arrived, leaseUntil } = run;
  if (arrived.length === 0) return host.rests(run);
  // A run with limits continues under a new lock, for which it is due.
  if (leaseUntil <= host.clock.now()) host.lost(run, lockWasLost(id));
}

/** Code that waits for nothing of `ctx` would not be woken again. After the end of the code only children continue. */
function isWaitingForSomething({ open, children, settled }: RunState): boolean {
  return children.size > 0 || (settled === undefined && open.size > 0);
}

function waiting(run: RunState, runExpiresAt: number): ExecutionEvent {
  const { calls: call, seen } = run;
  const again = isEndingChildren(run) ? run.host.clock.now() + endingCheckMs : undefined;
  const wakeAt = earlier(nextWakeAt(run) ?? undefined, again) ?? null;
  return { kind: "waiting", runExpiresAt, wakeAt, call, seen };
}

/** The time after which another worker checks that children were really asked to end. */
const endingCheckMs = 60_000;

/** True while children are to end. Only this worker asks them, after the append, and it may die before it does. */
function isEndingChildren({
  children,
  childrenToCancel,
  childrenAsked,
  isClosing,
}: RunState): boolean {
  if (isClosing) return children.size > 0;
  return childrenAsked.size > 0 || childrenToCancel.some((child) => children.has(child));
}

/** Runs the next transaction: a body on the user's tables, committed with the event that records it. */
export function transact(run: RunState): boolean {
  const taken = run.transactions.shift();
  if (taken === undefined) return true;
  run.isAppending = true;
  const { seen } = run;
  const { call, name, isolation, body } = taken.transaction;
  void run.host.transact(run, { call, name, isolation, body, seen }).then((done) => {
    if (done === undefined) return;
    if ("thrown" in done) {
      run.isAppending = false;
      if (!run.isOver) run.steps.rolledBack(taken, done);
      return run.again();
    }
    const { version, entry } = done;
    acknowledge(run, done, () => {
      const outcome = readOutcome(run, done, version, { ...entry, seen });
      run.acknowledged.push(outcome);
    });
  });
  return false;
}

/** Reads an outcome as replay would: the code gets a step's result as it was stored, never the object itself. */
function readOutcome(
  run: RunState,
  { at, scheduled }: Appended,
  version: number,
  event: ExecutionEvent,
): LoggedHistory {
  // The text is about as large as the value will be.
  const { value } = event as { readonly value?: Encoded };
  if (value !== undefined) run.heldBytes += value.length;
  const outcome = scheduled.get(version);
  const whole =
    value !== undefined
      ? { ...event, value: run.host.values.readValue(value) }
      : outcome !== undefined
        ? { ...event, outcome }
        : event;
  return { version, at, event: whole } as LoggedHistory;
}

/**
 * Handles a durable append. Its first outcome is delivered at once, each further one at a rest;
 * all at a rest if the answer came after the lease had expired.
 */
function acknowledge(run: RunState, { responses }: Appended, readOutcomes: () => void): void {
  run.isAppending = false;
  if (run.isOver) return;
  try {
    readOutcomes();
    if (responses > run.known) run.host.fetch(run);
    if (isListening(run) && !isStale(run)) {
      if (run.replay.isOver) beginUnstarted(run);
      const first = run.acknowledged.shift();
      if (first !== undefined) deliverOutcome(run, first);
    }
  } catch (error) {
    broke(run, error);
  }
  run.again();
}
