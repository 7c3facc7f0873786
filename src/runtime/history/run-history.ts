import type { LoggedEvent, LoggedResponse } from "../../model/execution/event.ts";
import { payloadField } from "../../model/execution/event-payload.ts";
import { encodeValue } from "../../model/values/values.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";

/**
 * A recorded run as a document: plain JSON, to be written to a file and kept beside the code.
 * Instants are milliseconds since 1970. Values have their stored form: JSON as it is, a Date or
 * a bigint with a tag.
 */
export interface RunHistory {
  readonly format: "holdfast-history";
  readonly formatVersion: 1;
  /** The id of the run. */
  readonly run: string;
  readonly function: string;
  /** The code version of the last worker that had the run; null if no worker had it. */
  readonly codeVersion: string | null;
  readonly startedAt: number;
  readonly scheduledAt: number;
  /** The seed of the run's random numbers. */
  readonly seed: string;
  /** The number of earlier passes, each of which ended with `ctx.continueWith`. */
  readonly continuations: number;
  /** The payload codec under which inputs were hashed; null for none. */
  readonly payload: string | null;
  readonly cancellation: LoadedExecution["cancellation"];
  /** The metadata of the run, if it has any. */
  readonly metadata?: Readonly<Record<string, string>>;
  readonly input: unknown;
  /** The events since the run began, or since its last pass began, in order. */
  readonly events: readonly {
    readonly version: number;
    readonly at: number;
    readonly event: Readonly<Record<string, unknown>>;
  }[];
  /** The responses that reached the run from elsewhere, in order. */
  readonly responses: readonly {
    readonly seq: number;
    readonly at: number;
    readonly response: Readonly<Record<string, unknown>>;
  }[];
}

/** The format that this version writes, and the newest that it reads. */
export const formatVersion = 1;

/** The parts of a run that are recorded. */
interface Recorded {
  readonly loaded: LoadedExecution;
  readonly codeVersion: string | null;
  readonly payload: string | null;
  readonly events: readonly LoggedEvent<unknown>[];
  readonly responses: readonly LoggedResponse<unknown>[];
}

export function historyDocument(recorded: Recorded): RunHistory {
  const { loaded, codeVersion, payload, events, responses } = recorded;
  const { metadata } = loaded.created;
  return {
    format: "holdfast-history",
    formatVersion,
    run: loaded.id,
    function: loaded.function,
    codeVersion,
    startedAt: loaded.startedAt,
    scheduledAt: loaded.created.scheduledAt,
    seed: loaded.seed.toString(),
    continuations: loaded.continuations,
    payload,
    cancellation: loaded.cancellation ?? requestIn(events),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    input: plain(loaded.input),
    events: events.map(({ version, at, event }) => ({
      version,
      at,
      event: withPlain(event, payloadField(event.kind)),
    })),
    responses: responses.map(({ seq, at, response }) => ({
      seq,
      at,
      response: withPlain(response, responseField(response.kind)),
    })),
  };
}

/** A run that has ended is no longer being cancelled; its log tells that it was. */
function requestIn(events: readonly LoggedEvent<unknown>[]): LoadedExecution["cancellation"] {
  const request = events.findLast(({ event }) => event.kind === "cancellationRequested");
  if (request?.event.kind !== "cancellationRequested") return null;
  const { cause, reason } = request.event;
  return { requestedAt: request.at, cause, reason };
}

/** The field of a response that holds a value. */
export function responseField(kind: string): string | undefined {
  if (kind === "child") return "result";
  return kind === "signal" ? "value" : undefined;
}

function withPlain(whole: object, field: string | undefined): Readonly<Record<string, unknown>> {
  const fields = whole as Readonly<Record<string, unknown>>;
  return field === undefined ? { ...fields } : { ...fields, [field]: plain(fields[field]) };
}

const unlimited = { charactersMax: Number.MAX_SAFE_INTEGER };

/** The stored form of a value, as JSON. */
function plain(value: unknown): unknown {
  return JSON.parse(encodeValue(value, unlimited)) as unknown;
}
