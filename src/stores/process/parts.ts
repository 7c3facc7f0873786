import { corruptRow } from "../../model/corrupt-row.ts";
import type { Encoded } from "../../model/values/encoded.ts";
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

/** What other stores use of processes besides their rows. */

/** How callers name a session, or one frame of it. */
export type SessionScopeName =
  SessionName | { readonly session: SessionName; readonly frame?: string | null };

export interface SessionScopeRef {
  readonly session: SessionRef;
  readonly frame: string | null;
}

const frameCharactersMax = 256;

/** An empty frame counts as none. @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `OPTION_INVALID` */
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

/** The parts of a scope as its caller named them: what a registration is compared by. */
export function namedParts({ session, frame }: SessionScopeRef): NamedScope {
  return {
    session: session.id,
    generation: session.generation ?? null,
    frame,
  };
}

/** A scope of the living session. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
export function* livingScope({ session, frame }: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* livingSession(session);
  return { session: id, generation, frame };
}

/** The same, with the session kept: it cannot be deleted before the transaction ends. */
export function* keptScope({ session, frame }: SessionScopeRef): Tx<SessionScope> {
  const { id, generation } = yield* keptSession(session);
  return { session: id, generation, frame };
}

/** What the holder of a handle calls it, checked. */
export interface ProcessHandleDescriptor {
  readonly kind: string | null;
  readonly label: string | null;
}

/** What the holder of a handle calls it. */
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

/** What is registered as a process. */
export interface ProcessDraft {
  /** Chosen by the caller, so that registering twice is registering once. */
  readonly id: string;
  /** What sort of work it is, such as `tool` or `session_turn`: the host's own names. */
  readonly kind: string;
  /** What people see. */
  readonly label?: string | null;
  /** What defines the work, such as the name of a tool: for filters. */
  readonly definition?: string | null;
  readonly input?: unknown;
  readonly eventTypes?: readonly ProcessEventType[];
  /** What may be done when its owner is gone; defaults to `rerunnable`. */
  readonly disposition?: ProcessDisposition;
  /** How often it may be begun before it is given up; defaults to any number of times. */
  readonly attemptsMax?: number | null;
  /** The session that had it started. */
  readonly originator?: SessionScopeName | null;
  readonly causedBy?: string | null;
  /** The session that its wakes go to. It must exist. */
  readonly wakeTarget?: SessionScopeName | null;
}

/** A process to be registered; `newProcess` makes one of a draft. */
export interface NewProcess {
  readonly id: ProcessId;
  readonly at: number;
  readonly identity: ProcessIdentity;
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
 * A process as it is stored, from what a caller said of it.
 *
 * @throws HoldfastError `PROCESS_INVALID`, `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE`
 */
export function newProcess(
  codec: Pick<ValueCodec, "encode" | "hash">,
  given: ProcessDraft,
  at: number,
  execution: unknown = null,
): NewProcess {
  const draft = draftOf("the process", given, draftNames);
  const hash: ValueCodec["hash"] = (...parts) => codec.hash(...parts);
  const id = parseProcessId(draft.id);
  const { disposition = "rerunnable", originator, wakeTarget } = draft;
  if (!dispositions.includes(disposition))
    throw processInvalid("$.disposition", `is none of ${dispositions.join(", ")}.`);
  const attemptsMax = checkedAttempts(draft.attemptsMax);
  const identity = {
    kind: checkedText("The kind of a process", draft.kind),
    label: optionalText("The label of a process", draft.label, nameCharactersMax),
    definition: optionalText("The definition of a process", draft.definition, nameCharactersMax),
  };
  const eventTypes = checkedEventTypes(draft.eventTypes ?? []);
  const causedBy = optionalText("A cause", draft.causedBy, causeCharactersMax);
  const from = scoped("originator", originator);
  const target = scoped("wakeTarget", wakeTarget);
  return {
    id,
    at,
    identity,
    disposition,
    attemptsMax,
    eventTypes,
    causedBy,
    originator: from === null ? null : namedParts(from),
    wakeTarget: target,
    input: codec.encode(draft.input) as Encoded,
    identified: registrationIdentity(hash, {
      id,
      identity,
      input: draft.input,
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
  throw processInvalid("$.attemptsMax", "is no whole number from 1 on.");
}

function scoped(
  place: string,
  name: SessionScopeName | null | undefined,
): ReturnType<typeof scopeNamed> | null {
  return name === undefined || name === null ? null : scopeNamed(name, place);
}

/** How an execution ended, and where its log says so. */
export interface EndedExecution {
  readonly at: number;
  readonly version: number;
  readonly resultKind: ResultKind;
  readonly resultHash: string;
}

/** What a session is told when an execution ends: encoded when it was spawned, since nobody can encode at the end. */
export type EndWakes = Readonly<
  Record<string, { readonly payload: Encoded; readonly dedupeKey: string | null }>
>;

/**
 * Ends a process with its execution, and wakes its session. The result is not
 * copied: it stays in the log of the execution, which retention keeps as long
 * as the process was not pruned.
 */
export function* endProcessOf(
  process: number,
  { at, version, resultKind, resultHash }: EndedExecution,
): Tx<void> {
  const root = yield* lockedProcessByKey(process);
  // What is not running has ended before, and stays so.
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
    wake: wakeOf(root, type),
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

function wakeOf({ row, state, id }: ProcessRoot, type: string): WakeDraft | null {
  if (row.end_wakes === null) return null;
  try {
    const wakes = JSON.parse(row.end_wakes) as EndWakes;
    const wake = Object.hasOwn(wakes, type) ? wakes[type] : undefined;
    return wake === undefined ? null : { ...wake, target: state.wakeTarget };
  } catch {
    throw corruptRow("holdfast_process", id, "has end_wakes that are no JSON");
  }
}
