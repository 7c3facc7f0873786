import type { HashValue } from "../session/turn.ts";

/** The source of an occurrence: its type, and the key of one source of that type. */
export interface TriggerSource {
  readonly type: string;
  readonly key: string;
}

/** The type of sources that are schedules. Only the scheduler records their occurrences. */
export const scheduleSource = "schedule";

/** The kind of schedules that belong to subscriptions. Only subscriptions change them. */
export const triggerSchedules = "trigger";

/** The event that the process of a subscription receives for an occurrence. */
export interface TriggerEvent {
  readonly source: TriggerSource;
  readonly occurrence: string;
  readonly occurredAt: number;
  readonly payload: unknown;
}

/** The origin of a process argument: the event, its payload, or a constant value. */
export type TriggerArgument =
  { readonly from: "event" } | { readonly from: "payload" } | { readonly value: unknown };

/** Returns the input of a process: its arguments by name, or the event when none are named. */
export function inputOf(
  named: Readonly<Record<string, TriggerArgument>> | null,
  event: TriggerEvent,
): unknown {
  if (named === null) return event;
  return Object.fromEntries(
    Object.entries(named).map(([name, argument]) => [name, argumentValue(argument, event)]),
  );
}

function argumentValue(argument: TriggerArgument, event: TriggerEvent): unknown {
  if ("value" in argument) return argument.value;
  return argument.from === "event" ? event : event.payload;
}

/** The parts in the order in which a conflict names them. */
const parts = ["source", "label", "payloadSchema", "target", "arguments", "grant"] as const;

export type SubscriptionPart = (typeof parts)[number];

export type SubscriptionPartHashes = Readonly<Partial<Record<SubscriptionPart, string>>>;

/**
 * Returns a hash for each part of a subscription that has a value, so that a conflict can name the
 * part.
 */
export function subscriptionParts(
  hash: HashValue,
  content: Readonly<Record<SubscriptionPart, unknown>>,
): SubscriptionPartHashes {
  const hashes: Partial<Record<SubscriptionPart, string>> = {};
  for (const part of parts)
    if (content[part] !== null) hashes[part] = hash(`subscription-${part}`, 1, content[part]);
  return hashes;
}

/** Returns the first part of a subscription that does not match its recorded hash, if any. */
export function changedPart(
  agrees: (domain: string, version: number, value: unknown, hash: string) => boolean,
  content: Readonly<Record<SubscriptionPart, unknown>>,
  recorded: SubscriptionPartHashes,
): SubscriptionPart | undefined {
  return parts.find((part) => {
    const hash = recorded[part];
    if (hash === undefined || content[part] === null)
      return (hash === undefined) !== (content[part] === null);
    return !agrees(`subscription-${part}`, 1, content[part], hash);
  });
}

/** Returns the first part in which two subscriptions differ, if any. */
export function firstDifference(
  a: SubscriptionPartHashes,
  b: SubscriptionPartHashes,
): SubscriptionPart | undefined {
  return parts.find((part) => a[part] !== b[part]);
}

/** The existing subscription under a key. */
export interface KnownSubscription {
  readonly revision: number;
  readonly isDeleted: boolean;
  readonly isEnabled: boolean;
  readonly parts: SubscriptionPartHashes;
}

export type SubscribeDecision =
  | { readonly kind: "create"; readonly revision: number }
  /** An equal subscription exists. */
  | { readonly kind: "existing" }
  | {
      readonly kind: "conflict";
      readonly part: SubscriptionPart | "isEnabled";
    };

/** Decides a subscription. A deleted one may be created again, and its revisions continue. */
export function decideSubscribe(
  known: KnownSubscription | undefined,
  given: SubscriptionPartHashes,
  isEnabled?: boolean,
): SubscribeDecision {
  if (known === undefined) return { kind: "create", revision: 1 };
  if (known.isDeleted) return { kind: "create", revision: known.revision + 1 };
  const part = firstDifference(known.parts, given);
  if (part !== undefined) return { kind: "conflict", part };
  // A caller that passes isEnabled expects that state. A caller that omits it may repeat an earlier
  // call, after which another caller changed the state.
  return isEnabled === undefined || isEnabled === known.isEnabled
    ? { kind: "existing" }
    : { kind: "conflict", part: "isEnabled" };
}

export type ReviseDecision =
  | { readonly kind: "missing" }
  /** The content is already the same, perhaps because of the same earlier call. */
  | { readonly kind: "unchanged" }
  /** Another caller has changed it since. */
  | { readonly kind: "overtaken"; readonly actual: number }
  | { readonly kind: "revise"; readonly revision: number };

export function decideRevise(
  known: KnownSubscription | undefined,
  given: SubscriptionPartHashes,
  expected: number | undefined,
): ReviseDecision {
  if (known === undefined || known.isDeleted) return { kind: "missing" };
  if (firstDifference(known.parts, given) === undefined) return { kind: "unchanged" };
  if (expected !== undefined && expected !== known.revision)
    return { kind: "overtaken", actual: known.revision };
  return { kind: "revise", revision: known.revision + 1 };
}

export type OccurrencePart = "source.type" | "source.key" | "payload";

/** The content that a repeated occurrence must match. */
export interface OccurrenceContent {
  readonly source: TriggerSource;
  readonly payloadHash: string;
}

/**
 * Returns the first part in which two occurrences of one key differ, if any. The time is not
 * compared: the first one counts.
 */
export function occurrenceDifference(
  recorded: OccurrenceContent,
  given: OccurrenceContent,
): OccurrencePart | undefined {
  if (recorded.source.type !== given.source.type) return "source.type";
  if (recorded.source.key !== given.source.key) return "source.key";
  return recorded.payloadHash === given.payloadHash ? undefined : "payload";
}

/** Returns the key of a source that is identified by its value. */
export function derivedSourceKey(hash: HashValue, type: string, value: unknown): string {
  return `source:${hash("trigger-source", 1, [type, value])}`;
}

/** The registrant of a subscription: a session of a generation, or the host. */
export interface Registrant {
  readonly id: string;
  readonly generation: number;
}

/** The prefix of process ids that triggers register. */
export const processPrefix = "trigger:";

/**
 * Returns the id of the process that an occurrence starts for a subscription. Every process
 * computes the same id, even after the occurrence was removed. An occurrence with other content
 * under the same key gives another id.
 */
export function triggeredProcess(
  hash: HashValue,
  occurrence: OccurrenceContent & { readonly key: string },
  registrant: Registrant | null,
  key: string,
): string {
  const { source, payloadHash } = occurrence;
  const { id, generation } = registrant ?? { id: null, generation: null };
  const told = [occurrence.key, source.type, source.key, payloadHash];
  return `${processPrefix}${hash("trigger-process", 1, [...told, id, generation, key])}`;
}

/**
 * The prefix of occurrence keys that schedules make. It is reserved, so no other occurrence can
 * block a schedule.
 */
export const scheduledPrefix = "schedule:";

/** Returns the key of the occurrence that a schedule makes at an instant. */
export function scheduledOccurrence(schedule: string, instant: number): string {
  return `${scheduledPrefix}${schedule}@${instant}`;
}
