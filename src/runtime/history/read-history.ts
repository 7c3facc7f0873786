import { HoldfastError } from "../../model/errors.ts";
import type { ExecutionCodec } from "../../model/execution/codec.ts";
import type {
  ExecutionEvent,
  ExecutionResponse,
  LoggedEvent,
  LoggedResponse,
} from "../../model/execution/event.ts";
import { isMetadata, noMetadata } from "../../model/execution/metadata.ts";
import { payloadField } from "../../model/execution/event-payload.ts";
import { parseExecutionId } from "../../model/ids/execution-id.ts";
import { parseFunctionName } from "../../model/ids/function-name.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { isRecord, spokenKind } from "../../model/values/spoken-kind.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import { eventFault } from "../../stores/execution/log/event-fields.ts";
import { formatVersion, responseField, type RunHistory } from "./run-history.ts";

/**
 * Reads a document strictly: a partly understood history would be replayed wrongly.
 *
 * @throws HoldfastError `HISTORY_INVALID`
 */
export function readHistory(given: RunHistory, values: ExecutionCodec): LoadedExecution {
  const document = givenDocument(given);
  const { startedAt, cancellation } = document;
  const id = parsed("run", () => parseExecutionId(document.run));
  const name = parsed("function", () => parseFunctionName(document.function));
  const events = document.events.map((each, index) => readEvent(values, each, `events[${index}]`));
  const responses = document.responses.map((each, index) =>
    readResponse(values, each, `responses[${index}]`),
  );
  assertGrowing(
    "events",
    events.map(({ version }) => version),
  );
  assertGrowing(
    "responses",
    responses.map(({ seq }) => seq),
  );
  const input = parsed("input", () => values.readValue(stored(document.input)));
  const last = events.at(-1)?.version ?? 0;
  return {
    id,
    key: 0,
    role: "workflow",
    function: name,
    nextVersion: last + 1,
    input,
    inputHash: "",
    startedAt,
    seed: parsed("seed", () => BigInt(document.seed)),
    created: {
      kind: "created",
      role: "workflow",
      function: name,
      input,
      inputHash: "",
      scheduledAt: document.scheduledAt,
      deadlineAt: null,
      concurrencyKey: null,
      codeVersion: document.codeVersion,
      isPaused: false,
      scheduledBy: null,
      forkedFrom: null,
      metadata: document.metadata === undefined ? noMetadata : { ...document.metadata },
      tags: [],
    },
    tags: [],
    leaseUntil: null,
    holder: null,
    previousCodeVersion: document.codeVersion,
    attempt: 1,
    isRepeat: false,
    failures: 0,
    deaths: 0,
    aloneDeaths: 0,
    isAlone: false,
    cancellation,
    continuations: document.continuations,
    historyFrom: 0,
    responsesFrom: 0,
    unreadSignals: [],
    hasMoreUnreadSignals: false,
    history: events,
    hasMoreHistory: false,
    historyUpTo: last,
    responses,
    hasMoreResponses: false,
  };
}

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === "string";
const isTextOrNull: Check = (value) => value === null || isText(value);
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isList: Check = (value) => Array.isArray(value);

const fields: Readonly<Record<Exclude<keyof RunHistory, "metadata">, Check>> = {
  format: isText,
  formatVersion: isCount,
  run: isText,
  function: isText,
  codeVersion: isTextOrNull,
  startedAt: isCount,
  scheduledAt: isCount,
  seed: (value) => isText(value) && /^\d{1,20}$/.test(value as string),
  continuations: isCount,
  payload: isTextOrNull,
  cancellation: (value) => value === null || isCancellation(value),
  input: () => true,
  events: isList,
  responses: isList,
};

function isCancellation(value: unknown): boolean {
  if (!isRecord(value)) return false;
  const { requestedAt, cause, reason, ...others } = value;
  return (
    isCount(requestedAt) &&
    ["request", "deadline", "force", "deaths"].includes(cause as string) &&
    isTextOrNull(reason) &&
    Object.keys(others).length === 0
  );
}

function givenDocument(given: unknown): RunHistory {
  if (!isRecord(given))
    throw historyInvalid(
      "format",
      `Expected a history as written by run.history() or \`npx holdfast export\`; got ${spokenKind(given)}.`,
    );
  const { format, formatVersion: found } = given;
  if (format !== "holdfast-history")
    throw historyInvalid(
      "format",
      "This is not the history of a run: its field format is missing or different. Pass a document that run.history() or `npx holdfast export` wrote.",
    );
  if (Number.isSafeInteger(found) && (found as number) > formatVersion)
    throw historyInvalid(
      "newer",
      `This history has format ${String(found)}, and this version of Holdfast reads formats up to ${formatVersion}. Update Holdfast.`,
      { formatVersion: found },
    );
  for (const name of Object.keys(given))
    if (!Object.hasOwn(fields, name) && name !== "metadata")
      throw faulty(name, "is an unknown field");
  for (const [name, accepts] of Object.entries(fields)) {
    if (!Object.hasOwn(given, name)) throw faulty(name, "is missing");
    if (!accepts(given[name])) throw faulty(name, "has an invalid value");
  }
  const { metadata } = given;
  if (metadata !== undefined && !isMetadata(metadata))
    throw faulty("metadata", "has an invalid value");
  return given as unknown as RunHistory;
}

function readEvent(values: ExecutionCodec, given: unknown, path: string): LoggedEvent<unknown> {
  const { version, at, whole } = placed(given, path, "version", "event");
  const event = withStored(whole, payloadField(kindOf(whole, path, "event")));
  const fault = eventFault(event as unknown as ExecutionEvent);
  if (fault !== undefined) throw faulty(`${path}.event.${fault.name}`, `must be ${fault.expected}`);
  return parsed(path, () => values.readEvent({ version, at, event: event as never }));
}

const outcomes: readonly unknown[] = ["expired", "cancelled"];
const resultKinds: readonly unknown[] = ["completed", "failed", "cancelled", "timedOut"];

const responseFields: Readonly<Record<string, Readonly<Record<string, Check>>>> = {
  child: {
    joinSet: isText,
    child: isText,
    finishedVersion: isCount,
    resultKind: (value) => resultKinds.includes(value),
    result: isText,
  },
  delay: {
    joinSet: isText,
    delay: isText,
    outcome: (value) => outcomes.includes(value),
  },
  signal: { signal: isText, signalKey: isText, value: isText },
};

function readResponse(
  values: ExecutionCodec,
  given: unknown,
  path: string,
): LoggedResponse<unknown> {
  const { version, at, whole } = placed(given, path, "seq", "response");
  const kind = kindOf(whole, path, "response");
  const known = Object.hasOwn(responseFields, kind) ? responseFields[kind] : undefined;
  if (known === undefined) throw faulty(`${path}.response.kind`, "is unknown");
  const response = withStored(whole, responseField(kind));
  for (const name of Object.keys(response))
    if (name !== "kind" && !Object.hasOwn(known, name))
      throw faulty(`${path}.response.${name}`, "is an unknown field");
  for (const [name, accepts] of Object.entries(known))
    if (!accepts(response[name])) throw faulty(`${path}.response.${name}`, "has an invalid value");
  return parsed(path, () =>
    values.readResponse({
      seq: version,
      at,
      response: response as unknown as ExecutionResponse,
    }),
  );
}

/** Reads an event or a response with its place. */
function placed(
  given: unknown,
  path: string,
  number: string,
  field: string,
): {
  readonly version: number;
  readonly at: number;
  readonly whole: Readonly<Record<string, unknown>>;
} {
  if (!isRecord(given)) throw faulty(path, "is not an object");
  const { [number]: version, at, [field]: whole, ...others } = given;
  if (!isCount(version)) throw faulty(`${path}.${number}`, "is not a number");
  if (!isCount(at)) throw faulty(`${path}.at`, "is not an instant");
  if (!isRecord(whole)) throw faulty(`${path}.${field}`, "is not an object");
  const [other] = Object.keys(others);
  if (other !== undefined) throw faulty(`${path}.${other}`, "is an unknown field");
  return { version: version as number, at: at as number, whole };
}

function kindOf(whole: Readonly<Record<string, unknown>>, path: string, field: string): string {
  const { kind } = whole;
  if (typeof kind === "string") return kind;
  throw faulty(`${path}.${field}.kind`, "is not text");
}

function withStored(
  whole: Readonly<Record<string, unknown>>,
  field: string | undefined,
): Readonly<Record<string, unknown>> {
  return field === undefined || !Object.hasOwn(whole, field)
    ? whole
    : { ...whole, [field]: stored(whole[field]) };
}

function stored(value: unknown): Encoded {
  return JSON.stringify(value) as Encoded;
}

function assertGrowing(name: string, numbers: readonly number[]): void {
  const at = numbers.findIndex((number, index) => index > 0 && number <= (numbers[index - 1] ?? 0));
  if (at >= 0) throw faulty(`${name}[${at}]`, "does not come after the one before it");
}

function parsed<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw historyInvalid(
      "field",
      `The history is unreadable: ${path} contains an invalid value: ${(error as Error).message}`,
      { path },
      error,
    );
  }
}

function faulty(path: string, why: string): HoldfastError {
  return historyInvalid(
    "field",
    `The history is unreadable: ${path} ${why}. Export it again, and do not edit it by hand.`,
    { path },
  );
}

export function historyInvalid(
  reason: "format" | "newer" | "field" | "function" | "payload",
  message: string,
  details: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): HoldfastError {
  return new HoldfastError(
    "HISTORY_INVALID",
    message,
    { reason, ...details },
    cause === undefined ? undefined : { cause },
  );
}
