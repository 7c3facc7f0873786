import type { ProcessEventType } from "./event-type.ts";
import type { ProcessDisposition, ProcessIdentity } from "./process.ts";
import type { HashValue } from "../session/turn.ts";

/** The parts in the order in which a conflict names them. */
const registrationParts = [
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
  "execution",
] as const;

export type RegistrationPart = (typeof registrationParts)[number];

/** A session as named by the caller that registered the process. */
export interface NamedScope {
  readonly session: string;
  readonly generation: number | null;
  readonly frame: string | null;
}

/** The content that a repeated registration must match. */
export interface RegistrationContent {
  readonly id: string;
  readonly identity: ProcessIdentity;
  readonly environment: string | null;
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

/** Returns a hash for each part, so that a conflict can name the part, and one over all. */
export function registrationIdentity(
  hash: HashValue,
  content: RegistrationContent,
): RegistrationIdentity {
  const { kind, label, definition } = content.identity;
  const parts = partHashes(hash, {
    kind,
    label,
    definition,
    environment: content.environment,
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
function partHashes(
  hash: HashValue,
  facts: Readonly<Partial<Record<RegistrationPart, unknown>>>,
): RegistrationPartHashes {
  const parts: Partial<Record<RegistrationPart, string>> = {};
  for (const part of registrationParts) {
    if (!Object.hasOwn(facts, part)) continue;
    // A missing input differs from the input null.
    if (part === "input" || facts[part] !== null)
      parts[part] = hash(`process-${part}`, 1, facts[part]);
  }
  return parts;
}

/** The first of some facts that is not what its hash was made of, if any. */
export function changedPart(
  agrees: (domain: string, version: number, value: unknown, hash: string) => boolean,
  facts: Readonly<Partial<Record<RegistrationPart, unknown>>>,
  recorded: RegistrationPartHashes,
): RegistrationPart | undefined {
  return registrationParts.find((part) => {
    if (!Object.hasOwn(facts, part)) return false;
    const hash = recorded[part];
    return part === "input" || facts[part] !== null
      ? hash === undefined || !agrees(`process-${part}`, 1, facts[part], hash)
      : hash !== undefined;
  });
}

/** The hash over all of them. */
function hashOfParts(hash: HashValue, id: string, parts: RegistrationPartHashes): string {
  return hash("process", 1, [id, parts]);
}

/** Returns the first part in which two registrations differ, if any. */
export function firstDifference(
  recorded: RegistrationPartHashes,
  given: RegistrationPartHashes,
): RegistrationPart | undefined {
  return registrationParts.find((part) => recorded[part] !== given[part]);
}
