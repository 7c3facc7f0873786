import { unreachable } from "../../../model/errors.ts";
import type { HistoryEvent } from "../../../model/execution/history-event.ts";
import type { CallKind } from "../../../model/execution/mismatch.ts";
import type { StartAt } from "../../../model/time/instants.ts";

/** The part of a `ctx` call that must be the same on replay. */
export interface CallShape {
  readonly kind: CallKind;
  /** The name of the step, function or signal; "" for a sleep. */
  readonly name: string;
  /** The call's target as the code put it: a sleep's time, a child's name, a start's time and id. */
  readonly intention: string;
  readonly inputHash: string | null;
}

/** True if a recorded hash belongs to the input of a call, though the call has a different hash. */
export type HasInput = (recorded: string) => boolean;

/** Events that a call makes, and that the call is compared with on replay. */
type CallEvent = Extract<HistoryEvent<unknown>, { readonly kind: keyof typeof madeByCalls }>;

const madeByCalls = {
  stepBegan: true,
  stepFinished: true,
  stepAttemptFailed: true,
  transactionFinished: true,
  childRequested: true,
  scheduled: true,
  delayRequested: true,
  receiveRequested: true,
  receiveTimedOut: true,
};

export function isMadeByCall(event: HistoryEvent<unknown>): event is CallEvent {
  return Object.hasOwn(madeByCalls, event.kind);
}

/** The shape for which an event was recorded; undefined for events that no call makes. */
export function recordedShape(event: HistoryEvent<unknown>): CallShape | undefined {
  if (!isMadeByCall(event)) return undefined;
  switch (event.kind) {
    case "stepBegan":
    case "stepFinished":
      return shape("step", event.name);
    case "stepAttemptFailed":
      return shape(event.isTransaction === true ? "transaction" : "step", event.name);
    case "transactionFinished":
      return shape("transaction", event.name);
    case "childRequested":
      return shape("child", event.function, childName(event.child), event.inputHash);
    case "scheduled":
      return shape(
        "start",
        event.function,
        startIntention(event.execution, event.startAt),
        event.inputHash,
      );
    case "delayRequested":
      return shape("sleep", "", timeIntention(event.startAt));
    case "receiveRequested":
    case "receiveTimedOut":
      return shape("receive", event.signal);
    default:
      return unreachable(event);
  }
}

export function shape(
  kind: CallShape["kind"],
  name: string,
  intention: string = "",
  inputHash: string | null = null,
): CallShape {
  return { kind, name, intention, inputHash };
}

/** The part of a child's id that is unique below its parent: its set and its number there. */
export function childName(child: string): string {
  return child.slice(child.lastIndexOf(".") + 1);
}

export function timeIntention(startAt: StartAt): string {
  if (startAt === "now") return "now";
  return "in" in startAt ? `for ${startAt.in} ms` : `until ${new Date(startAt.at).toISOString()}`;
}

export function startIntention(id: string, startAt: StartAt): string {
  return startAt === "now" ? id : `${id} ${timeIntention(startAt)}`;
}

/** True if the code asks for the recorded call. */
export function isSameShape(was: CallShape, asked: CallShape, hasInput?: HasInput): boolean {
  const { inputHash } = was;
  return (
    was.kind === asked.kind &&
    was.name === asked.name &&
    was.intention === asked.intention &&
    (inputHash === asked.inputHash || (inputHash !== null && hasInput?.(inputHash) === true))
  );
}

/** A text for people who compare two shapes. */
export function spokenShape(asked: CallShape): string {
  const { kind, name, intention, inputHash } = asked;
  const input = inputHash === null ? "" : ` with input ${inputHash.slice(0, 12)}`;
  switch (kind) {
    case "step":
    case "transaction":
      return `${kind} "${name}"`;
    case "child":
      return `child ${intention} of ${name}${input}`;
    case "start":
      return `start of ${name} as ${intention}${input}`;
    case "sleep":
      return `sleep ${intention}`;
    case "receive":
      return `receive of signal "${name}"`;
    default:
      return unreachable(kind);
  }
}
