import type { EventDraft, Step, StepName } from "./steps.ts";

const plain = { set: 0, index: 1, inMs: 0, flag: false, seen: 0 };

/** A sequence in which every call changes something and every kind of event occurs. */
export const example: readonly Step[] = [
  // A parent with children of every role, delays, and everything it may record.
  step("create", "", { index: 1 }),
  step("lockPending", "", { inMs: 1_000 }),
  append(
    "run-1",
    draft("joinSetCreated"),
    draft("childRequested", { index: 1 }),
    draft("childRequested", { index: 2 }),
    draft("childRequested", { index: 3 }),
    draft("delayRequested", { index: 1, inMs: 100 }),
    draft("delayRequested", { index: 2, inMs: 60_000 }),
  ),
  append(
    "run-1",
    draft("stepFinished", { flag: true }),
    draft("stepBegan"),
    draft("stepAttemptFailed"),
    draft("transactionFinished"),
    draft("patched"),
    draft("receiveRequested"),
    draft("receiveTimedOut"),
    draft("cancellationDelivered"),
    draft("joinNextTooMany"),
    draft("joinNextTried"),
    draft("externalResolved"),
    draft("scheduled"),
    draft("scheduled"),
    draft("scheduled", { set: 1 }),
  ),
  // A delay that is over is answered at once; another is taken back again.
  append(
    "run-1",
    draft("delayRequested", { set: 1, index: 1, inMs: 100 }),
    draft("delayRequested", { set: 1, index: 2 }),
  ),
  step("append", "run-1", { events: [draft("patched")], set: 1, index: 2 }),
  step("setProgress", "run-1", { flag: true }),
  step("signal", "run-1"),
  step("receive", "run-1", { fence: "right" }),

  // It waits, and is answered by delays; once so late that its lease has run out.
  step("pauseDelay", "run-1", { index: 2 }),
  step("unpauseDelay", "run-1", { index: 2 }),
  append("run-1", draft("joinNext", { inMs: 1_000 })),
  step("renew", "run-1", { inMs: 60_000, fence: "right" }),
  step("expireDelay", "run-1", { index: 1 }),
  step("clock", "", { inMs: 60_000 }),
  step("pause", "run-1"),
  step("unpause", "run-1"),
  append("run-1", draft("waiting", { seen: 2, inMs: 1_000 })),
  step("pause", "run-1"),
  step("cancelDelay", "run-1", { index: 2 }),
  step("unpause", "run-1"),
  append("run-1", draft("joinNextTried", { flag: true })),

  // A child that fails, times out and is cancelled; one resolved; one that ends.
  step("lock", "run-1.n:set-0_2", { inMs: 1_000, seen: 1 }),
  step("lock", "run-1.n:set-0_2", { inMs: 60_000 }),
  step("extend", "run-1.n:set-0_2", { inMs: 60_000 }),
  append("run-1.n:set-0_2", draft("attemptFailed")),
  step("lock", "run-1.n:set-0_2", { inMs: 1_000, seen: 1 }),
  step("unlock", "run-1.n:set-0_2", { fence: "right" }),
  step("lock", "run-1.n:set-0_2", { inMs: 100, seen: 1 }),
  step("clock", "", { inMs: 100 }),
  step("expireLock", "run-1.n:set-0_2"),
  step("cancelActivity", "run-1.n:set-0_2"),
  step("resolve", "run-1.n:set-0_3"),
  step("lock", "run-1.n:set-0_1", { inMs: 1_000 }),
  step("finish", "run-1.n:set-0_1", { fence: "right", flag: true }),
  append("run-1", draft("joinNext"), draft("joinNext"), draft("joinNext")),
  append("run-1", draft("waiting", { seen: 1 })),

  // It is parked, starts again, is copied, cancelled, and tried again.
  append("run-1", draft("parked")),
  step("unpark", "run-1"),
  append("run-1", draft("attemptTimedOut")),
  step("signal", "run-1", { index: 2 }),
  step("signal", "run-1", { index: 2, set: 1 }),
  append("run-1", draft("continued")),
  append("run-1", draft("waiting", { seen: 0 })),
  step("receive", "run-1"),
  append("run-1", draft("continued", { flag: true, seen: 2 })),
  step("fork", "run-1", { of: 20 }),
  step("fork", "run-1", { of: 5, index: 2 }),
  step("cancel", "run-1", { flag: true }),
  step("finish", "run-1", { index: 2 }),
  step("retry", "run-1"),
  step("retry", "run-1.n:set-0_2", { index: 2 }),
  step("clock", "", { inMs: 10 }),
  step("pruneHistory", "retry-1"),
  step("fork", "retry-1", { of: 100, index: 3 }),

  // A run that takes its worker down five times without progress is parked; progress starts the count anew.
  step("createLocked", "", { index: 2, inMs: 10 }),
  step("releaseDead", "run-2"),
  append(
    "run-2",
    draft("stepFinished"),
    draft("delayRequested", { index: 1, inMs: 100 }),
    draft("delayRequested", { index: 2, inMs: 100 }),
  ),
  step("expireDelays", "run-2", { index: 1 }),
  step("clock", "", { inMs: 60_000 }),
  step("lock", "run-2", { inMs: 10 }),
  ...[1, 2, 3, 4].flatMap(() => [
    step("releaseDead", "run-2"),
    step("clock", "", { inMs: 60_000 }),
    step("lock", "run-2", { inMs: 10 }),
  ]),
  step("releaseDead", "run-2"),
  step("unpark", "run-2"),

  // A run that is ended by force, with what is below it; first its end is only marked.
  step("create", "", { index: 1, fence: "right", set: 1 }),
  step("cancelByForce", "run-2"),

  // A run whose worker knows its key, and whose end takes along the delay that it left open.
  step("createLocked", "", { index: 4, inMs: 10 }),
  append("run-4", draft("delayRequested", { inMs: 60_000 })),
  step("append", "run-4", { events: [draft("stepFinished")], fence: "right", flag: true }),
  step("finish", "run-4", { fence: "right", index: 2 }),

  // A run that is too late.
  step("create", "", { index: 3, seen: 1, inMs: 100 }),
  step("clock", "", { inMs: 1_000 }),
  step("expireDeadline", "run-3"),
];

function step(call: StepName, on: string, more: Partial<Omit<Step, "call" | "on">> = {}): Step {
  return {
    call,
    of: 0,
    ...(on !== "" && { on }),
    versionBy: 0,
    fence: "none",
    worker: 0,
    role: "workflow",
    events: [],
    ...plain,
    ...more,
  };
}

function append(on: string, ...events: readonly EventDraft[]): Step {
  return step("append", on, { events });
}

function draft(kind: EventDraft["kind"], more: Partial<Omit<EventDraft, "kind">> = {}): EventDraft {
  return { kind, ...plain, ...more };
}
