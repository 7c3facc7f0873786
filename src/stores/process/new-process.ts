import { processInvalid } from "../../model/process-errors.ts";
import { checkedEventTypes } from "../../model/process-event-type.ts";
import type { ProcessEventType } from "../../model/process-event-type.ts";
import { parseProcessId } from "../../model/process-id.ts";
import { registrationIdentity } from "../../model/process-registration.ts";
import type { ProcessDisposition } from "../../model/process.ts";
import { checkedText, givenObject, optionalText } from "../../model/shape.ts";
import type { ProcessCodec } from "./context.ts";
import type { NewProcess } from "./register.ts";
import { namedParts, scopeNamed } from "./scope.ts";
import type { SessionScopeName } from "./scope.ts";

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
  /** What may be done when its owner is gone: `rerunnable` unless told. */
  readonly disposition?: ProcessDisposition;
  /** How often it may be begun before it is given up: any number of times unless told. */
  readonly attemptsMax?: number | null;
  /** The session that had it started. */
  readonly originator?: SessionScopeName | null;
  readonly causedBy?: string | null;
  /** The session that its wakes go to. It must exist. */
  readonly wakeTarget?: SessionScopeName | null;
}

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
  { encode, hash }: Pick<ProcessCodec, "encode" | "hash">,
  draft: ProcessDraft,
  at: number,
  execution: unknown = null,
): NewProcess {
  const id = parseProcessId(givenObject("process", draft).id);
  const { disposition = "rerunnable", originator, wakeTarget } = draft;
  if (!dispositions.includes(disposition))
    throw processInvalid(
      "$.disposition",
      `is none of ${dispositions.join(", ")}.`,
    );
  const attemptsMax = checkedAttempts(draft.attemptsMax);
  const identity = {
    kind: checkedText("The kind of a process", draft.kind),
    label: optionalText(
      "The label of a process",
      draft.label,
      nameCharactersMax,
    ),
    definition: optionalText(
      "The definition of a process",
      draft.definition,
      nameCharactersMax,
    ),
  };
  const eventTypes = checkedEventTypes(draft.eventTypes ?? []);
  const causedBy = optionalText("A cause", draft.causedBy, causeCharactersMax);
  const from = scoped(originator);
  const target = scoped(wakeTarget);
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
    input: encode(draft.input),
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
  name: SessionScopeName | null | undefined,
): ReturnType<typeof scopeNamed> | null {
  return name === undefined || name === null ? null : scopeNamed(name);
}
