import { parseBlobHash } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import type { CheckedText, Encoded } from "../../model/values/encoded.ts";
import { unreachable } from "../../model/errors.ts";
import type { ResultKind } from "../../model/execution/event.ts";
import { processInvalid } from "../../model/process/errors.ts";
import {
  checkedEventTypes,
  endTypes,
  type ProcessEventType,
} from "../../model/process/event-type.ts";
import { parseProcessId, type ProcessId } from "../../model/ids/process-id.ts";
import type { ProcessEnd } from "../../model/process/output.ts";
import {
  registrationIdentity,
  type NamedScope,
  type RegistrationIdentity,
} from "../../model/process/registration.ts";
import { registryKeys } from "../../model/process/replay-key.ts";
import type {
  ProcessDisposition,
  ProcessIdentity,
  SessionScope,
} from "../../model/process/process.ts";
import { checkedText, draftOf, givenInvalid, optionalText } from "../../model/shape.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import type { ValueCodec } from "../../model/values/value-codec.ts";
import type { Tx } from "../../sql/operation.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { keptSession, livingSession, type SessionRef } from "../session-row.ts";
import { appendToProcess, type WakeDraft } from "./event-row.ts";
import { lockedProcessByKey, type ProcessRoot } from "./process-row.ts";
import type { TurnContext } from "../turn/parts.ts";

/** The parts of processes that other stores use besides their rows. */

/** The name of a session, or of one frame of it, as callers pass it. */
export type SessionScopeName =
  SessionName | { readonly session: SessionName; readonly frame?: string | null };

export interface SessionScopeRef {
  readonly session: SessionRef;
  readonly frame: string | null;
}

const frameCharactersMax = 256;

/**
 * Validates a scope. An empty frame counts as none.
 * @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID`
 */
export function scopeNamed(name: SessionScopeName, place: string = "scope"): SessionScopeRef {
  if (typeof name === "string") return { session: sessionNamed(name), frame: null };
  if (!isRecord(name)) throw givenInvalid(place, "a session, or { session, frame }", name);
  if (!("session" in name)) return { session: sessionNamed(name), frame: null };
  const { session, frame } = draftOf(place, name, ["session", "frame"]);
  return {
    session: sessionNamed(session),
    frame:
      frame === undefined || frame === null || frame === ""
        ? null
        : checkedText("A frame", frame, frameCharactersMax),
  };
}

/** The parts of a scope as its caller named them, for comparing registrations. */
export function namedParts({ session, frame }: SessionScopeRef): NamedScope {
  return {
    session: session.id,
    generation: session.generation ?? null,
    frame,
  };
}

/** A scope of the live session. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export function* livingScope({ session, frame }: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* livingSession(session);
  return { session: id, generation, frame };
}

/** A scope of the live session, which is kept: it cannot be deleted before the transaction ends. */
export function* keptScope({ session, frame }: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* keptSession(session);
  return { session: id, generation, frame };
}

/** The holder's description of a handle, checked. */
export interface ProcessHandleDescriptor {
  readonly kind: string | null;
  readonly label: string | null;
}

/** The holder's description of a handle. */
export interface ProcessHandleDraft {
  readonly kind?: string | null;
  readonly label?: string | null;
}

const labelCharactersMax = 512;

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID` */
export function checkedDescriptor(draft: ProcessHandleDraft): ProcessHandleDescriptor {
  const { kind = null, label = null } = draftOf("descriptor", draft, ["kind", "label"]);
  return {
    kind: kind === null ? null : checkedText("The kind of a handle", kind),
    label: label === null ? null : checkedText("The label of a handle", label, labelCharactersMax),
  };
}

/** The caller's description of a new process. */
export interface ProcessDraft {
  /** Chosen by the caller. Registering twice under one id registers once. */
  readonly id: string;
  /** The sort of work, such as `tool` or `session_turn`, named by the host. */
  readonly kind: string;
  /** A label for people. */
  readonly label?: string | null;
  /** The definition of the work, such as the name of a tool: for filters. */
  readonly definition?: string | null;
  /**
   * The environment of the work: the hash of a blob that was stored as
   * `blobKinds.processEnvironment`. The process keeps the blob until it is pruned.
   */
  readonly environment?: string | null;
  readonly input?: unknown;
  readonly eventTypes?: readonly ProcessEventType[];
  /** The recovery that is allowed once its owner is gone; defaults to `rerunnable`. */
  readonly disposition?: ProcessDisposition;
  /** The number of starts after which it is abandoned; unlimited by default. */
  readonly attemptsMax?: number | null;
  /** The session that caused its start. */
  readonly originator?: SessionScopeName | null;
  readonly causedBy?: string | null;
  /** The session that its wakes go to. It must exist. */
  readonly wakeTarget?: SessionScopeName | null;
}

/** A process to register; `newProcess` makes it from a draft. */
export interface NewProcess {
  readonly id: ProcessId;
  readonly at: number;
  readonly identity: ProcessIdentity;
  readonly environment: string | null;
  readonly disposition: ProcessDisposition;
  readonly attemptsMax: number | null;
  readonly eventTypes: readonly ProcessEventType[];
  readonly causedBy: string | null;
  readonly originator: NamedScope | null;
  readonly wakeTarget: SessionScopeRef | null;
  readonly input: Encoded;
  readonly identified: RegistrationIdentity;
}

const draftNames = [
  "id",
  "kind",
  "label",
  "definition",
  "environment",
  "input",
  "eventTypes",
  "disposition",
  "attemptsMax",
  "originator",
  "causedBy",
  "wakeTarget",
] as const satisfies readonly (keyof ProcessDraft)[];

const dispositions: readonly string[] = [
  "rerunnable",
  "ownerBound",
  "external",
] satisfies ProcessDisposition[];

const nameCharactersMax = 512;
const causeCharactersMax = 4_096;

/**
 * Makes a process, ready to be stored, from a caller's description.
 *
 * @throws HoldfastError `PROCESS_INVALID`, `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE`
 */
export function newProcess(
  codec: Pick<ValueCodec, "encodeOnce" | "hash">,
  given: ProcessDraft,
  at: number,
  execution: unknown = null,
): NewProcess {
  const draft = draftOf("the process", given, draftNames);
  const hash: ValueCodec["hash"] = (...parts) => codec.hash(...parts);
  const id = parseProcessId(draft.id);
  const { disposition = "rerunnable", originator, wakeTarget } = draft;
  if (!dispositions.includes(disposition))
    throw processInvalid("$.disposition", `is not one of ${dispositions.join(", ")}.`);
  const attemptsMax = checkedAttempts(draft.attemptsMax);
  const identity = {
    kind: checkedText("The kind of a process", draft.kind),
    label: optionalText("The label of a process", draft.label, nameCharactersMax),
    definition: optionalText("The definition of a process", draft.definition, nameCharactersMax),
  };
  const environment = draft.environment ?? null;
  const eventTypes = checkedEventTypes(draft.eventTypes ?? []);
  const causedBy = optionalText("A cause", draft.causedBy, causeCharactersMax);
  const from = scoped("originator", originator);
  const target = scoped("wakeTarget", wakeTarget);
  const input = codec.encodeOnce(draft.input);
  return {
    id,
    at,
    identity,
    environment: environment === null ? null : parseBlobHash(environment),
    disposition,
    attemptsMax,
    eventTypes,
    causedBy,
    originator: from === null ? null : namedParts(from),
    wakeTarget: target,
    input: input.stored as Encoded,
    identified: registrationIdentity(hash, {
      id,
      identity,
      environment,
      input: input.read,
      eventTypes,
      disposition,
      attemptsMax,
      originator: from && namedParts(from),
      causedBy,
      wakeTarget: target && namedParts(target),
      execution,
    }),
  };
}

function checkedAttempts(given: number | null | undefined): number | null {
  if (given === undefined || given === null) return null;
  if (Number.isSafeInteger(given) && given >= 1) return given;
  throw processInvalid("$.attemptsMax", "is not a whole number of at least 1.");
}

function scoped(
  place: string,
  name: SessionScopeName | null | undefined,
): ReturnType<typeof scopeNamed> | null {
  return name === undefined || name === null ? null : scopeNamed(name, place);
}

/** The end of an execution, and its place in the log. */
export interface EndedExecution {
  readonly at: number;
  readonly version: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
}

/**
 * The wake of a session when an execution ends. It is encoded when the execution is spawned, since
 * nothing can encode at the end.
 */
export type EndWakes = Readonly<
  Record<
    string,
    {
      readonly payload: CheckedText;
      readonly dedupeKey: string | null;
      readonly mergeKey?: string;
    }
  >
>;

/**
 * Ends a process with its execution, and wakes its session. The result is not copied. It stays in
 * the log of the execution, which retention keeps until the process is pruned.
 */
export function* endProcessOf(
  context: TurnContext,
  process: number,
  { at, version, resultKind, resultHash }: EndedExecution,
): Tx<void> {
  const root = yield* lockedProcessByKey(process);
  // A process that is not running ended earlier and stays unchanged.
  if (root === undefined || root.state.status !== "running") return;
  const end = endOf(resultKind);
  const type = endTypes[end];
  yield* appendToProcess(root, {
    type,
    at,
    hash: resultHash,
    replayKey: registryKeys.end(type),
    end,
    executionVersion: version,
    wake: wakeOf(context, root, type),
  });
}

function endOf(resultKind: ResultKind): ProcessEnd {
  switch (resultKind) {
    case "completed":
    case "failed":
    case "cancelled":
      return resultKind;
    case "timedOut":
      return "failed";
    default:
      return unreachable(resultKind);
  }
}

function wakeOf(
  context: TurnContext,
  { row, state, id }: ProcessRoot,
  type: string,
): WakeDraft | null {
  if (row.end_wakes === null) return null;
  try {
    const wakes = JSON.parse(row.end_wakes) as EndWakes;
    const wake = Object.hasOwn(wakes, type) ? wakes[type] : undefined;
    return wake === undefined ? null : { ...wake, target: state.wakeTarget, context };
  } catch {
    throw corruptRow("holdfast_process", id, "has end_wakes that are not JSON");
  }
}
