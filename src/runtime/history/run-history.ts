import type { LoggedEvent, LoggedResponse } from "../../model/execution/event.ts";
import { payloadField } from "../../model/execution/event-payload.ts";
import { encodeValue } from "../../model/values/values.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";

/**
 * A recorded run as a document: plain JSON that can be written to a file and
 * kept beside the code. Instants are milliseconds since 1970. Values stand as
 * they are stored: what is JSON as it is, a Date or a bigint with a tag.
 */
export interface RunHistory {
  readonly format: "holdfast-history";
  readonly formatVersion: 1;
  /** The id of the run. */
  readonly run: string;
  readonly function: string;
  /** Of the worker that had it last; null when it had none. */
  readonly codeVersion: string | null;
  readonly startedAt: number;
  readonly scheduledAt: number;
  /** What its random numbers follow from. */
  readonly seed: string;
  /** How often it had begun anew by `ctx.continueWith`. */
  readonly continuations: number;
  /** The payload codec under which inputs were hashed; null for none. */
  readonly payload: string | null;
  readonly cancellation: LoadedExecution["cancellation"];
  readonly input: unknown;
  /** What happened to it since it began, or began anew, in order. */
  readonly events: readonly {
    readonly version: number;
    readonly at: number;
    readonly event: Readonly<Record<string, unknown>>;
  }[];
  /** What came to it from elsewhere, in order. */
  readonly responses: readonly {
    readonly seq: number;
    readonly at: number;
    readonly response: Readonly<Record<string, unknown>>;
  }[];
}

/** What this version writes, and reads up to. */
export const formatVersion = 1;

/** What is written down of a run. */
interface Recorded {
  readonly loaded: LoadedExecution;
  readonly codeVersion: string | null;
  readonly payload: string | null;
  readonly events: readonly LoggedEvent<unknown>[];
  readonly responses: readonly LoggedResponse<unknown>[];
}

export function historyDocument(recorded: Recorded): RunHistory {
  const { loaded, codeVersion, payload, events, responses } = recorded;
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

/** A run that has ended is not being cancelled any more; its log says that it was. */
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

/** A value as it is stored, as JSON. */
function plain(value: unknown): unknown {
  return JSON.parse(encodeValue(value, unlimited)) as unknown;
}
