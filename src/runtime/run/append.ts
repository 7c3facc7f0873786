import type { ExecutionEvent } from "../../model/execution/event.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { lockWasLost } from "../failures.ts";
import { broke } from "./broken.ts";
import { beginUnstarted } from "./ctx/calls.ts";
import { deliverOutcome } from "./deliver.ts";
import { isListening, isStale } from "./lease.ts";
import type { Appended } from "./run-host.ts";
import type { RunState } from "./run-state.ts";
import type { LoggedHistory } from "./replay/script.ts";

/** When to look again if nothing comes; null for never. */
export function nextWakeAt(run: RunState): number | null {
  const { steps, mailbox, cleanupBy, isAbandoned } = run;
  // What has ended, or is being given back, begins nothing that comes due.
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

/** Appends what there is, and that the run waits if that is all it does. Nothing is appended when it has just become busy: a pause before an attempt is short by now, and its timer comes. */
export function append(run: RunState): boolean {
  const { host, journal } = run;
  const batch = journal.take(run.seen);
  const { outcomes, events } = batch;
  const waits =
    journal.isEmpty &&
    outcomes.length === 0 &&
    run.transactions.length === 0 &&
    run.unstarted.size === 0 &&
    run.leaving === undefined &&
    isWaitingForSomething(run) &&
    !run.steps.isBusy(host.clock.now());
  const hotUntil = waits ? host.hotUntil(run) : 0;
  const draft = waits ? { ...batch, events: [...events, waiting(run, hotUntil)] } : batch;
  if (draft.events.length === 0) return false;
  run.isAppending = true;
  run.isGoingToRest = waits;
  void host.append(run, draft).then((done) => {
    run.isGoingToRest = false;
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
    });
    if (rests) rest(run);
  });
  return false;
}

/** It gives its place back, unless responses came during the append: then it goes on in it. */
function rest(run: RunState): void {
  const { id, host, arrived, leaseUntil } = run;
  if (arrived.length === 0) return host.rests(run);
  // One with limits goes on under a new lock, for which it is due.
  if (leaseUntil <= host.clock.now()) host.lost(run, lockWasLost(id));
}

/** Code that waits for nothing of `ctx` would not be woken again; of code that has ended only children go on. */
function isWaitingForSomething({ open, children, settled }: RunState): boolean {
  return children.size > 0 || (settled === undefined && open.size > 0);
}

function waiting(run: RunState, runExpiresAt: number): ExecutionEvent {
  const { calls: call, seen } = run;
  const again = isEndingChildren(run) ? run.host.clock.now() + endingCheckMs : undefined;
  const wakeAt = earlier(nextWakeAt(run) ?? undefined, again) ?? null;
  return { kind: "waiting", runExpiresAt, wakeAt, call, seen };
}

/** After this time another worker looks whether children were really asked to end. */
const endingCheckMs = 60_000;

/** Children are asked behind the append, by this worker alone: it may be gone before it has. */
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
  const task = run.transactions.shift();
  if (task === undefined) return true;
  run.isAppending = true;
  const { seen } = run;
  void run.host.transact(run, { ...task, seen }).then((done) => {
    if (done === undefined) return;
    const { version, entry } = done;
    acknowledge(run, done, () => {
      const outcome = readOutcome(run, done, version, { ...entry, seen });
      run.acknowledged.push(outcome);
    });
  });
  return false;
}

/** As replay would read it: what a step returned is delivered as it was stored, never the object itself. */
function readOutcome(
  run: RunState,
  { at, scheduled }: Appended,
  version: number,
  event: ExecutionEvent,
): LoggedHistory {
  // As text it is about as large as it will be.
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

/** The append is durable: its first outcome is delivered at once, each further one at a rest; all at a rest when the answer came after the end of the lease. */
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
