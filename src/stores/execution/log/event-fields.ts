import { isRan } from "../../../model/execution/ran.ts";
import { parseDelayId } from "../../../model/ids/delay-id.ts";
import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { isHistoryKind } from "../../../model/execution/history-event.ts";
import { callKinds } from "../../../model/execution/mismatch.ts";
import { parseExecutionId } from "../../../model/ids/execution-id.ts";
import { parseFunctionName } from "../../../model/ids/function-name.ts";
import { parseJoinSetId } from "../../../model/ids/join-set-id.ts";
import { parseExecutorId, parseOwnerId, parseRunId } from "../../../model/ids/prefixed-id.ts";
import { resolveStartAt } from "../../../model/time/instants.ts";
import type { StartAt } from "../../../model/time/instants.ts";
import { unreadPiecesMax } from "../../../model/execution/unread.ts";
import { isStorable } from "../../../model/shape.ts";

/** The allowed content of an event's field, in words for the error. */
interface Field {
  readonly expected: string;
  readonly accepts: (value: unknown) => boolean;
}

/** Kinds that may be appended: the others have a method of their own. */
type AppendedKind = Exclude<ExecutionEvent["kind"], "created" | "forked">;

const text = (charactersMin: number, charactersMax: number): Field => ({
  expected: `a string of ${charactersMin} to ${charactersMax} characters without U+0000 or lone surrogates`,
  accepts: (value) =>
    typeof value === "string" &&
    value.length >= charactersMin &&
    value.length <= charactersMax &&
    isStorable(value),
});

const orNull = ({ expected, accepts }: Field): Field => ({
  expected: `${expected}, or null`,
  accepts: (value) => value === null || accepts(value),
});

const orNothing = ({ expected, accepts }: Field): Field => ({
  expected: `${expected}, or left out`,
  accepts: (value) => value === undefined || accepts(value),
});

const whole = (min: number, max: number, expected: string): Field => ({
  expected,
  accepts: (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max,
});

const oneOf = (...values: readonly (string | boolean)[]): Field => ({
  expected: values.length === 1 ? String(values[0]) : `one of ${values.join(", ")}`,
  accepts: (value) => values.includes(value as string | boolean),
});

/** Fields checked by the parsers of the model, which throw. */
const parsed = (expected: string, parse: (value: string) => unknown): Field => ({
  expected,
  accepts(value) {
    if (typeof value !== "string") return false;
    try {
      parse(value);
      return true;
    } catch {
      return false;
    }
  },
});

/** An object with exactly these fields. */
const record = (expected: string, fields: Readonly<Record<string, Field>>): Field => ({
  expected,
  accepts: (value) =>
    typeof value === "object" &&
    value !== null &&
    Object.keys(value).length === Object.keys(fields).length &&
    Object.entries(fields).every(([name, { accepts }]) =>
      accepts((value as Readonly<Record<string, unknown>>)[name]),
    ),
});

const count = whole(0, Number.MAX_SAFE_INTEGER, "a whole number of 0 or more");
// The last instant that a Date can represent.
const instant = whole(0, 8.64e15, "an instant in whole milliseconds since 1970");
const flag = oneOf(true, false);
const trueOrNothing = orNothing(oneOf(true));
/** Readable only by the codec, which also limits its size. */
const payload: Field = {
  expected: "a value encoded by a codec",
  accepts: (value) => typeof value === "string",
};
const name = text(1, 256);
const reason = text(1, 4_096);
const codeVersion = orNull(text(1, 128));
const hash = text(0, 256);
const joinSet = parsed("a join set's id", parseJoinSetId);
const execution = parsed("an execution's id", parseExecutionId);
const functionName = parsed("a function's name", parseFunctionName);
const owner = parsed("an owner's id", parseOwnerId);

const startAt: Field = {
  expected: '"now", { at } or { in }',
  accepts(value) {
    if (value === "now") return true;
    if (typeof value !== "object" || value === null) return false;
    const keys = Object.keys(value);
    if (keys.length !== 1 || (keys[0] !== "at" && keys[0] !== "in")) return false;
    try {
      resolveStartAt(value as StartAt, 0);
      return true;
    } catch {
      return false;
    }
  },
};

const holder = record("an executor, a run and an owner", {
  executor: parsed("an executor's id", parseExecutorId),
  run: parsed("a run's id", parseRunId),
  owner: orNull(owner),
});

const retry = record("a retry policy of whole numbers of 0 or more", {
  maxRetries: orNull(count),
  backoffMs: count,
  backoffMaxMs: count,
});

/** Ranges in order, with a gap between each and the next. */
const ranges: Field = {
  expected: `numbers of responses, 1 or more, in at most ${unreadPiecesMax} pieces`,
  accepts: (value) =>
    Array.isArray(value) &&
    value.length <= unreadPiecesMax &&
    value.every((range: unknown, index) => {
      if (!Array.isArray(range) || range.length !== 2) return false;
      const [first, last] = range as [unknown, unknown];
      const before = (value[index - 1] as number[] | undefined)?.[1] ?? -1;
      return (
        Number.isSafeInteger(last) &&
        (last as number) >= (first as number) &&
        Number.isSafeInteger(first) &&
        (first as number) > before + 1
      );
    }),
};

/** An older log has none. */
const ran: Field = {
  expected:
    "two offsets in whole milliseconds up to 0, the first not behind the second, or left out",
  accepts: (value) => value === undefined || isRan(value),
};

const lossCount = oneOf("attempt", "death", "aloneDeath", "nothing");

const comparedCall = record("the kind, name, target, input hash and code version of a call", {
  kind: oneOf(...callKinds),
  name: text(0, 256),
  target: text(0, 512),
  inputHash: orNull(hash),
  codeVersion,
});

const mismatch = record("a call, a version, and the recorded and the actual call", {
  call: count,
  version: orNull(count),
  recorded: orNull(comparedCall),
  actual: orNull(comparedCall),
});

const stepOutcome: Readonly<Record<string, Field>> = {
  name,
  inputHash: orNull(hash),
  outcome: oneOf("completed", "failed"),
  value: payload,
  ran,
};

/** The fields of each kind. There are no others, so these limit the size of a body. */
const fieldsOfKind: Readonly<Record<AppendedKind, Readonly<Record<string, Field>>>> = {
  locked: {
    holder,
    leaseUntil: instant,
    retry,
    codeVersion,
    alone: trueOrNothing,
    whenPoisoned: orNothing(oneOf("cancel")),
  },
  unlocked: { dueAt: instant, reason },
  attemptFailed: { dueAt: instant, error: payload },
  attemptTimedOut: { dueAt: instant, counts: lossCount },
  ownerDied: { owner, dueAt: instant, counts: lossCount },
  paused: {},
  unpaused: {},
  cancellationRequested: {
    reason: orNull(reason),
    cause: oneOf("request", "deadline", "force", "deaths"),
  },
  parked: { code: text(1, 128), reason, codeVersion, mismatch: orNothing(mismatch) },
  unparked: {},
  continued: {
    input: payload,
    inputHash: hash,
    seen: count,
    unread: orNull(ranges),
    left: ranges,
    continuation: count,
  },
  finished: {
    resultKind: oneOf("completed", "failed", "cancelled", "timedOut"),
    resultHash: hash,
    result: payload,
    seen: orNothing(count),
    unread: orNothing(count),
  },
  joinSetCreated: { joinSet },
  childRequested: {
    joinSet,
    child: execution,
    function: functionName,
    inputHash: hash,
  },
  delayRequested: {
    joinSet,
    delay: parsed("a delay's id", parseDelayId),
    expiresAt: instant,
    startAt,
  },
  joinNext: {
    joinSet,
    runExpiresAt: instant,
    function: orNull(functionName),
    isClosing: flag,
  },
  joinNextTooMany: { joinSet, function: orNull(functionName) },
  joinNextTried: {
    joinSet,
    outcome: oneOf("found", "pending", "allProcessed"),
  },
  waiting: { runExpiresAt: instant, wakeAt: orNull(instant) },
  scheduled: {
    execution,
    function: functionName,
    inputHash: hash,
    startAt,
    outcome: oneOf("created", "existed", "conflict"),
  },
  externalResolved: {
    execution,
    resultHash: hash,
    outcome: oneOf("resolved", "conflict"),
  },
  signalReceived: { signal: functionName, seq: count },
  receiveRequested: { signal: functionName, expiresAt: orNull(instant) },
  receiveTimedOut: { signal: functionName },
  cancellationDelivered: {},
  stepFinished: stepOutcome,
  stepBegan: { name, attempt: count },
  stepAttemptFailed: {
    name,
    isTransaction: trueOrNothing,
    attempt: count,
    retryAt: instant,
    error: payload,
    ran,
  },
  transactionFinished: stepOutcome,
  patched: { patch: name },
};

/** The place fields of every history event; each defaults to 0. */
const placeOfHistory: Readonly<Record<string, Field>> = {
  call: count,
  seen: count,
};

/** An invalid field. */
export interface FieldFault {
  readonly name: string;
  readonly expected: string;
}

/** The same for an event of any kind that was read from elsewhere. */
export function eventFault(event: ExecutionEvent): FieldFault | undefined {
  if (!Object.hasOwn(fieldsOfKind, event.kind))
    return { name: "kind", expected: "a kind of event that runs record" };
  return faultyField(event, isHistoryKind(event.kind));
}

/** The first field of an event that no operation could have written, if any. */
export function faultyField(event: ExecutionEvent, isHistory: boolean): FieldFault | undefined {
  const fields = fieldsOfKind[event.kind as AppendedKind];
  const given = event as unknown as Readonly<Record<string, unknown>>;
  for (const field of Object.keys(given)) {
    if (field === "kind" || Object.hasOwn(fields, field)) continue;
    // Undefined fields are not written.
    if (given[field] === undefined) continue;
    const place = isHistory ? placeOfHistory[field] : undefined;
    if (place === undefined) return { name: field, expected: "left out: the field is unknown" };
    if (!place.accepts(given[field])) return { name: field, expected: place.expected };
  }
  for (const field in fields) {
    const { expected, accepts } = fields[field] as Field;
    if (!accepts(given[field])) return { name: field, expected };
  }
  return undefined;
}
