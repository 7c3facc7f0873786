import { expect, test } from "vitest";
import type { ExecutionEvent, ExecutionResponse, LoggedEvent, LoggedResponse } from "./event.ts";
import { openWaits } from "./open-waits.ts";

type Given = { readonly kind: string; readonly seen?: number } & Record<string, unknown>;

/** A log with an event at each millisecond. */
function log(...events: readonly Given[]): readonly LoggedEvent<unknown>[] {
  return events.map((event, version) => ({
    version,
    at: version,
    event: { seen: 0, ...event } as unknown as ExecutionEvent<unknown>,
  }));
}

function responses(...all: readonly Record<string, unknown>[]): readonly LoggedResponse<unknown>[] {
  return all.map((response, index) => ({
    seq: index + 1,
    at: 100,
    response: response as unknown as ExecutionResponse<unknown>,
  }));
}

const asks = (call: number, signal: string, seen = 0): Given => ({
  kind: "receiveRequested",
  call,
  signal,
  expiresAt: null,
  seen,
});

const sent = (signal: string) => ({ kind: "signal", signal });

test("a signal goes to the oldest call that had asked for it", () => {
  const events = log(asks(1, "a"), asks(2, "a"), asks(3, "b"));
  expect(openWaits(events, responses(sent("a")), 50)).toEqual([
    { kind: "signal", signal: "a", since: 1, until: null },
    { kind: "signal", signal: "b", since: 2, until: null },
  ]);
});

test("a signal that came before it was asked for answers none of the later calls", () => {
  const events = log({ kind: "stepFinished", call: 1, seen: 0 }, asks(3, "a", 1));
  expect(openWaits(events, responses(sent("a")), 50)).toEqual([
    { kind: "signal", signal: "a", since: 1, until: null },
  ]);
});

test("sleeps, children, answers from outside and failed attempts are open until they are answered", () => {
  const events = log(
    { kind: "delayRequested", call: 1, delay: "d1", expiresAt: 70 },
    { kind: "delayRequested", call: 2, delay: "d2", expiresAt: 90 },
    { kind: "childRequested", call: 3, child: "c1", function: "charge" },
    { kind: "childRequested", call: 4, child: "c2", function: "charge" },
    {
      kind: "childRequested",
      call: 5,
      child: "x",
      function: "holdfast/external",
    },
    {
      kind: "stepAttemptFailed",
      call: 6,
      name: "print",
      attempt: 2,
      retryAt: 99,
    },
    {
      kind: "stepAttemptFailed",
      call: 7,
      name: "pay",
      attempt: 1,
      retryAt: 99,
    },
    { kind: "stepFinished", call: 7, name: "pay" },
    { kind: "receiveRequested", call: 8, signal: "a", expiresAt: 60 },
    { kind: "receiveTimedOut", call: 8, signal: "a" },
  );
  const answers = responses({ kind: "delay", delay: "d1" }, { kind: "child", child: "c1" });
  const open = openWaits(events, answers, 50);
  expect(open).toEqual([
    { kind: "sleep", since: 1, until: 90 },
    { kind: "child", child: "c2", function: "charge", since: 3 },
    { kind: "external", external: "x", since: 4 },
    { kind: "retry", step: "print", attempt: 2, since: 5, until: 99 },
  ]);
  expect(openWaits(events, answers, 95)).toEqual(open.slice(1));
});

test("a new start leaves what was open behind", () => {
  expect(openWaits(log(asks(1, "a"), { kind: "continued" }), [], 50)).toEqual([]);
});
