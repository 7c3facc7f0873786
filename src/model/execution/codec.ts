import type { Encoded, HashedText } from "../values/encoded.ts";
import { payloadField } from "./event-payload.ts";
import { isHistoryEvent } from "./history-event.ts";
import type {
  ControlEvent,
  ExecutionEvent,
  ExecutionResponse,
  LoggedEvent,
  LoggedResponse,
} from "./event.ts";
import { HoldfastError } from "../errors.ts";
import type { GivenEvent } from "./given-event.ts";
import { decodeResult, isResult } from "./result.ts";
import type { ExecutionResult, RecordedResult } from "./result.ts";
import { draftOf } from "../shape.ts";
import { rangesOf, type SeqRange } from "./unread.ts";
import type { ValueCodec } from "../values/value-codec.ts";

type Finished = Extract<ControlEvent, { readonly kind: "finished" }>;

type Codec = Pick<
  ValueCodec,
  "encode" | "encodeOnce" | "decode" | "hash" | "agrees" | "clearHash" | "clear"
>;

/** Converts the values in events and responses to their stored form and back. */
export interface ExecutionCodec {
  value(value: unknown): Encoded;
  /** With the hash of what will be read. */
  hashed(value: unknown): HashedText;
  input(value: unknown): {
    readonly input: Encoded;
    readonly inputHash: string;
  };
  /** @throws HoldfastError `OPTION_INVALID` for an invalid result. */
  finished(result: ExecutionResult): Finished;
  /** `inputHash` is the hash of the execution that is created with the event, if one is. */
  event(event: GivenEvent, inputHash?: string): ExecutionEvent;
  readValue(stored: Encoded): unknown;
  /** With `kind`, a result whose codec is missing can be shown too. */
  readResult(stored: Encoded, kind?: ExecutionResult["kind"]): ExecutionResult;
  readEvent(logged: LoggedEvent): LoggedEvent<unknown>;
  readResponse(logged: LoggedResponse): LoggedResponse<unknown>;
  /** Returns equal hashes for equal values; for inputs and signals. */
  hash(value: unknown): string;
  hashResult(result: ExecutionResult): string;
  /** The hash that an input has in the clear, where the payload codec has a key. */
  clearHash(value: unknown): string | undefined;
  /** True if that hash was made of an input or a signal that has been read. */
  agrees(value: unknown, hash: string): boolean;
  /** Checks that the hash belongs to a result that was read. */
  agreesResult(result: unknown, hash: string): boolean;
}

export function executionCodec(codec: Codec): ExecutionCodec {
  const value = (given: unknown): Encoded => codec.encode(given) as Encoded;
  const hash = (given: unknown): string => codec.hash("execution", 1, given);
  const readResult: ExecutionCodec["readResult"] = (stored, kind) =>
    decodeResult(stored, codec, kind);
  const coding: ExecutionCodec = {
    value,
    hash,
    hashed(given) {
      const { stored, read } = codec.encodeOnce(given);
      return { text: stored as Encoded, hash: hash(read) };
    },
    input(given) {
      const { text: input, hash: inputHash } = coding.hashed(given);
      return { input, inputHash };
    },
    finished(draft) {
      const result = checkedResult(draft);
      const { kind: resultKind } = result;
      const clear = clearResult(result);
      const { text, hash: resultHash } =
        clear === undefined
          ? coding.hashed(result)
          : { text: codec.clear.encode(clear) as Encoded, hash: coding.hashResult(clear) };
      return { kind: "finished", resultKind, resultHash, result: text };
    },
    hashResult(result) {
      const clear = clearResult(result);
      return clear === undefined ? hash(result) : codec.clear.hash("execution", 1, clear);
    },
    clearHash: (given) => codec.clearHash("execution", 1, given),
    agrees: (read, expected) => codec.agrees("execution", 1, read, expected),
    agreesResult(result, expected) {
      const clear = isResult(result) ? clearResult(result) : undefined;
      return clear === undefined
        ? coding.agrees(result, expected)
        : codec.clear.agrees("execution", 1, clear, expected);
    },
    event: (event, inputHash) => encodedEvent(coding, event, inputHash),
    readValue: (stored) => codec.decode(stored),
    readResult,
    readEvent(logged) {
      const { event } = logged;
      const field = payloadField(event.kind);
      if (field === undefined) return logged;
      const stored = (event as unknown as Record<string, Encoded>)[field];
      const read = stored === undefined ? undefined : codec.decode(stored);
      return {
        ...logged,
        event: { ...event, [field]: read },
      };
    },
    readResponse(logged) {
      const { response } = logged;
      return { ...logged, response: readResponse(codec, response) };
    },
  };
  return coding;
}

/** The fields of each kind of result. */
const resultNames: Readonly<Record<ExecutionResult["kind"], readonly string[]>> = {
  completed: ["kind", "value"],
  failed: ["kind", "error"],
  cancelled: ["kind", "reason"],
  timedOut: ["kind"],
};

function checkedResult(result: ExecutionResult): ExecutionResult {
  if (isResult(result)) {
    const names = resultNames[result.kind] as readonly "kind"[];
    // A recorded result may be given as it was read.
    const { unread: _, ...bare } = result as RecordedResult;
    return draftOf("the result", "unread" in result ? (bare as ExecutionResult) : result, names);
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "A result must be completed with a value, failed with an error that has a name and a message, cancelled, or timedOut.",
    { option: "result" },
  );
}

/** A result in the form in which it is stored in the clear; undefined when it holds what a user gave. */
function clearResult(result: ExecutionResult): ExecutionResult | undefined {
  if (result.kind === "timedOut") return { kind: "timedOut" };
  if (result.kind !== "cancelled") return undefined;
  const { kind, reason } = result;
  return { kind, ...(reason !== undefined && { reason }) };
}

function encodedEvent(
  codec: ExecutionCodec,
  event: GivenEvent,
  createdInputHash?: string,
): ExecutionEvent {
  switch (event.kind) {
    case "finished":
      return codec.finished(event.result);
    case "continued": {
      const { input, unread } = event;
      return {
        // Copies unknown fields too, which the check of events refuses.
        ...event,
        ...codec.input(input),
        seen: event.seen ?? 0,
        unread: unread === undefined ? null : givenRanges(unread),
        // Set by the store; the caller's values are ignored.
        left: [],
        continuation: 0,
      };
    }
    case "waiting":
      return recorded(event, { wakeAt: event.wakeAt ?? null });
    case "childRequested": {
      const inputHash = createdInputHash ?? codec.hash(event.input);
      return recorded(event, { input: undefined, inputHash });
    }
    case "scheduled":
      // The store decides the outcome; the caller's value is ignored.
      return recorded(event, {
        inputHash: createdInputHash,
        outcome: "created",
      });
    case "stepFinished":
    case "transactionFinished": {
      const { input } = event;
      const inputHash = input === undefined ? null : codec.hash(input);
      const encoded = codec.value(event.value);
      return recorded(event, { input: undefined, inputHash, value: encoded });
    }
    case "externalResolved": {
      const resultHash = codec.hashResult(checkedResult(event.result));
      return recorded(event, { result: undefined, resultHash });
    }
    default:
      return withPayload(codec, event);
  }
}

/** The most signals that a run may leave unread. */
const unreadMax = 1_000_000;

/** Passes anything but a list of numbers through unchanged: the check of events refuses it. */
function givenRanges(unread: readonly number[]): readonly SeqRange[] {
  return Array.isArray(unread) && unread.length <= unreadMax && unread.every(Number.isSafeInteger)
    ? rangesOf(unread)
    : (unread as unknown as readonly SeqRange[]);
}

function withPayload(codec: ExecutionCodec, event: GivenEvent): ExecutionEvent {
  const field = payloadField(event.kind);
  const given = event as unknown as Readonly<Record<string, unknown>>;
  const encoded = field === undefined ? {} : { [field]: codec.value(given[field]) };
  return isHistoryEvent(event)
    ? recorded(event, encoded)
    : ({ ...event, ...encoded } as ExecutionEvent);
}

/**
 * Returns a history event with recorded values in place of the given ones. `call` and `seen`
 * default to 0. Fields are copied one by one: a literal that adds fields after a spread takes ten
 * times as long (2 µs), and this runs for every step.
 */
function recorded(event: GivenEvent, instead: Readonly<Record<string, unknown>>): ExecutionEvent {
  const record: Record<string, unknown> = { call: 0, seen: 0 };
  for (const name of Object.keys(event)) record[name] = event[name as keyof GivenEvent];
  for (const name of Object.keys(instead)) record[name] = instead[name];
  return record as unknown as ExecutionEvent;
}

function readResponse(codec: Codec, response: ExecutionResponse): ExecutionResponse<unknown> {
  switch (response.kind) {
    case "child":
      return { ...response, result: decodeResult(response.result, codec, response.resultKind) };
    case "signal":
      return { ...response, value: codec.decode(response.value) };
    default:
      return response;
  }
}
