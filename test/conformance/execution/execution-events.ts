import { parseDelayId, splitDelayId } from "../../../src/model/ids/delay-id.ts";
import { parseExecutionId } from "../../../src/model/ids/execution-id.ts";
import { parseFunctionName } from "../../../src/model/ids/function-name.ts";
import type { GivenEvent } from "../../../src/model/execution/given-event.ts";
import { parseJoinSetId } from "../../../src/model/ids/join-set-id.ts";

/** Events as a worker would append them, with only what a test cares about. */

export function joinSetCreated(joinSet: string): GivenEvent {
  return {
    kind: "joinSetCreated",
    joinSet: parseJoinSetId(joinSet),
    call: 0,
    seen: 0,
  };
}

/** A recorded result; replay would match it by its call number. */
export function step(name: string, value: unknown = null, call = 0, seen = 0): GivenEvent {
  return {
    kind: "stepFinished",
    name,
    outcome: "completed",
    value,
    call,
    seen,
  };
}

export function childRequested(joinSet: string, child: string, name: string): GivenEvent {
  return {
    kind: "childRequested",
    joinSet: parseJoinSetId(joinSet),
    child: parseExecutionId(child),
    function: parseFunctionName(name),
    call: 0,
    seen: 0,
  };
}

/** The set follows from the delay's id. */
export function delayRequested(delay: string, expiresAt: number): GivenEvent {
  const id = parseDelayId(delay);
  return {
    kind: "delayRequested",
    joinSet: splitDelayId(id).joinSet,
    delay: id,
    expiresAt,
    startAt: { at: expiresAt },
    call: 0,
    seen: 0,
  };
}

export function joinNext(joinSet: string, runExpiresAt: number, isClosing = false): GivenEvent {
  return {
    kind: "joinNext",
    joinSet: parseJoinSetId(joinSet),
    runExpiresAt,
    function: null,
    isClosing,
    call: 0,
    seen: 0,
  };
}

export function joinNextTooMany(joinSet: string): GivenEvent {
  return {
    kind: "joinNextTooMany",
    joinSet: parseJoinSetId(joinSet),
    function: null,
    call: 0,
    seen: 0,
  };
}

export function joinNextTried(
  joinSet: string,
  outcome: "found" | "pending" | "allProcessed",
): GivenEvent {
  return { kind: "joinNextTried", joinSet: parseJoinSetId(joinSet), outcome };
}

export function waiting(seen: number, runExpiresAt: number, wakeAt?: number): GivenEvent {
  const wait = { kind: "waiting", runExpiresAt, call: 0, seen } as const;
  return wakeAt === undefined ? wait : { ...wait, wakeAt };
}

export function attemptFailed(dueAt: number, message = "no luck"): GivenEvent {
  return { kind: "attemptFailed", dueAt, error: { name: "Error", message } };
}
