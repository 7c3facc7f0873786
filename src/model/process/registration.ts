import type { ProcessEventType } from "./event-type.ts";
import type { ProcessDisposition, ProcessIdentity } from "./process.ts";
import type { HashValue } from "../session/turn.ts";

/** In the order in which a conflict names them. */
const registrationParts = [
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
  "execution",
] as const;

export type RegistrationPart = (typeof registrationParts)[number];

/** A session as the caller that registered the process named it. */
export interface NamedScope {
  readonly session: string;
  readonly generation: number | null;
  readonly frame: string | null;
}

/** What makes a registration the same when it is made again. */
export interface RegistrationContent {
  readonly id: string;
  readonly identity: ProcessIdentity;
  readonly input: unknown;
  readonly eventTypes: readonly ProcessEventType[];
  readonly disposition: ProcessDisposition;
  readonly attemptsMax: number | null;
  readonly originator: NamedScope | null;
  readonly causedBy: string | null;
  readonly wakeTarget: NamedScope | null;
  /** The execution it was spawned with: its id, function and a hash of its input. */
  readonly execution: unknown;
}

export type RegistrationPartHashes = Readonly<Partial<Record<RegistrationPart, string>>>;

export interface RegistrationIdentity {
  readonly hash: string;
  readonly parts: RegistrationPartHashes;
}

/** A hash for each part, so that a difference can be named, and one over all. */
export function registrationIdentity(
  hash: HashValue,
  content: RegistrationContent,
): RegistrationIdentity {
  const { kind, label, definition } = content.identity;
  const parts = partHashes(hash, {
    kind,
    label,
    definition,
    input: content.input,
    eventTypes: content.eventTypes,
    disposition: content.disposition,
    attemptsMax: content.attemptsMax,
    originator: content.originator,
    causedBy: content.causedBy,
    wakeTarget: content.wakeTarget,
    execution: content.execution,
  });
  return { hash: hashOfParts(hash, content.id, parts), parts };
}

/** A hash for each part that is known and says something. */
export function partHashes(
  hash: HashValue,
  facts: Readonly<Partial<Record<RegistrationPart, unknown>>>,
): RegistrationPartHashes {
  const parts: Partial<Record<RegistrationPart, string>> = {};
  for (const part of registrationParts) {
    if (!Object.hasOwn(facts, part)) continue;
    // No input is something else than the input null.
    if (part === "input" || facts[part] !== null)
      parts[part] = hash(`process-${part}`, 1, facts[part]);
  }
  return parts;
}

/** The hash over all of them. */
export function hashOfParts(hash: HashValue, id: string, parts: RegistrationPartHashes): string {
  return hash("process", 1, [id, parts]);
}

/** The first part in which two registrations differ, if any. */
export function firstDifference(
  recorded: RegistrationPartHashes,
  given: RegistrationPartHashes,
): RegistrationPart | undefined {
  return registrationParts.find((part) => recorded[part] !== given[part]);
}
