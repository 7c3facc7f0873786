import type { Encoded } from "../values/encoded.ts";
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
import type { ExecutionResult } from "./result.ts";
import { draftOf } from "../shape.ts";
import { rangesOf, type SeqRange } from "./unread.ts";
import type { ValueCodec } from "../values/value-codec.ts";

type Finished = Extract<ControlEvent, { readonly kind: "finished" }>;

type Codec = Pick<ValueCodec, "encode" | "decode" | "hash">;

/** Turns the values in events and responses into what is stored, and back. */
export interface ExecutionCodec {
  value(value: unknown): Encoded;
  input(value: unknown): {
    readonly input: Encoded;
    readonly inputHash: string;
  };
  /** @throws HoldfastError `OPTION_INVALID` when it is no result. */
  finished(result: ExecutionResult): Finished;
  /** `inputHash` is that of the execution that is created with it, if one is. */
  event(event: GivenEvent, inputHash?: string): ExecutionEvent;
  readValue(stored: Encoded): unknown;
  readResult(stored: Encoded): ExecutionResult;
  readEvent(logged: LoggedEvent): LoggedEvent<unknown>;
  readResponse(logged: LoggedResponse): LoggedResponse<unknown>;
  /** Equal for equal values; for inputs, results and signals. */
  hash(value: unknown): string;
}

export function executionCodec(codec: Codec): ExecutionCodec {
  const value = (given: unknown): Encoded => codec.encode(given) as Encoded;
  const hash = (given: unknown): string => codec.hash("execution", 1, given);
  const readResult = (stored: Encoded): ExecutionResult => decodeResult(stored, codec);
  const coding: ExecutionCodec = {
    value,
    hash,
    input: (given) => ({ input: value(given), inputHash: hash(given) }),
    finished: (result) => ({
      kind: "finished",
      resultKind: checkedResult(result).kind,
      resultHash: hash(result),
      result: value(result),
    }),
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

/** What results of each kind have. */
const resultNames: Readonly<Record<ExecutionResult["kind"], readonly string[]>> = {
  completed: ["kind", "value"],
  failed: ["kind", "error"],
  cancelled: ["kind", "reason"],
  timedOut: ["kind"],
};

function checkedResult(result: ExecutionResult): ExecutionResult {
  if (isResult(result)) {
    const names = resultNames[result.kind] as readonly "kind"[];
    return draftOf("the result", result, names);
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "A result is completed with a value, failed with an error that has a name and a message, cancelled, or timedOut.",
    { option: "result" },
  );
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
        // With what is no field of it, which is refused where events are checked.
        ...event,
        input: codec.value(input),
        inputHash: codec.hash(input),
        seen: event.seen ?? 0,
        unread: unread === undefined ? null : givenRanges(unread),
        // What the store decides, whatever is said here.
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
      // The outcome is the store's to decide, whatever is said here.
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
      const resultHash = codec.hash(checkedResult(event.result));
      return recorded(event, { result: undefined, resultHash });
    }
    default:
      return withPayload(codec, event);
  }
}

/** What is no list of numbers stays as it is, and is refused where events are checked. */
function givenRanges(unread: readonly number[]): readonly SeqRange[] {
  return Array.isArray(unread) && unread.every(Number.isSafeInteger)
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
 * A history event with what is recorded instead of what was given; what the
 * caller does not say of its place is 0. Copied field by field: a literal
 * that adds fields after a spread takes ten times as long (2 µs), and this is
 * done for every step.
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
      return { ...response, result: decodeResult(response.result, codec) };
    case "signal":
      return { ...response, value: codec.decode(response.value) };
    default:
      return response;
  }
}
