import { expect, test } from "vitest";
import type { ExecutionEvent } from "./event.ts";
import { spokenEvent } from "./spoken-event.ts";

test.each([
  [{ kind: "created", scheduledAt: 5_000 }, "created"],
  [{ kind: "created", scheduledAt: 65_000 }, "created, starts in 1 min"],
  [{ kind: "locked", codeVersion: "42" }, "locked by a worker with code version 42"],
  [{ kind: "attemptFailed", dueAt: 7_000 }, "attempt failed, retry in 2 s"],
  [{ kind: "cancellationRequested", reason: "late" }, "cancellation requested: late"],
  [{ kind: "parked", code: "NONDETERMINISM" }, "parked: NONDETERMINISM"],
  [{ kind: "finished", resultKind: "timedOut" }, "timed out"],
  [{ kind: "finished", resultKind: "completed", unread: 1 }, "completed, 1 message unread"],
  [{ kind: "finished", resultKind: "failed", unread: 20 }, "failed, 20 messages unread"],
  [{ kind: "delayRequested", startAt: { in: 172_800_000 } }, "sleeps for 2 days"],
  [{ kind: "delayRequested", startAt: { at: 0 } }, "sleeps until 1970-01-01T00:00:00.000Z"],
  [
    { kind: "delayRequested", startAt: { at: 9e15 } },
    "sleeps until an instant beyond all calendars",
  ],
  [{ kind: "childRequested", function: "charge", child: "a.o:1_1" }, "called charge (a.o:1_1)"],
  [
    { kind: "childRequested", function: "holdfast/external", child: "a.o:1_1" },
    "waits for an answer from outside (a.o:1_1)",
  ],
  [{ kind: "stepFinished", name: "print", outcome: "completed" }, 'step "print" completed'],
  [{ kind: "stepAttemptFailed", name: "print", attempt: 2 }, 'step "print" failed, attempt 2'],
  [{ kind: "receiveRequested", signal: "go" }, "waits for signal go"],
])("%j is %s", (event, said) => {
  expect(spokenEvent(event as unknown as ExecutionEvent<unknown>, 5_000)).toBe(said);
});
