import type { HashValue } from "../session/turn.ts";

/** What kind of thing happens, and which one of that kind. */
export interface TriggerSource {
  readonly type: string;
  readonly key: string;
}

/** The type of sources that are schedules. Only the scheduler records their occurrences. */
export const scheduleSource = "schedule";

/** The kind of schedules that belong to subscriptions, which alone change them. */
export const triggerSchedules = "trigger";

/** What the process of a subscription is told of an occurrence. */
export interface TriggerEvent {
  readonly source: TriggerSource;
  readonly occurrence: string;
  readonly occurredAt: number;
  readonly payload: unknown;
}

/** Where an argument of a process comes from: the event, its payload, or a value that is always the same. */
export type TriggerArgument =
  { readonly from: "event" } | { readonly from: "payload" } | { readonly value: unknown };

/** The input of a process: its arguments by name, or the event when none are named. */
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

/** In the order in which a conflict names them. */
const parts = ["source", "label", "payloadSchema", "target", "arguments", "grant"] as const;

export type SubscriptionPart = (typeof parts)[number];

export type SubscriptionPartHashes = Readonly<Partial<Record<SubscriptionPart, string>>>;

/** A hash for each part of a subscription that says something, so that a difference can be named. */
export function subscriptionParts(
  hash: HashValue,
  content: Readonly<Record<SubscriptionPart, unknown>>,
): SubscriptionPartHashes {
  const hashes: Partial<Record<SubscriptionPart, string>> = {};
  for (const part of parts)
    if (content[part] !== null) hashes[part] = hash(`subscription-${part}`, 1, content[part]);
  return hashes;
}

/** The first part in which two subscriptions differ, if any. */
export function firstDifference(
  a: SubscriptionPartHashes,
  b: SubscriptionPartHashes,
): SubscriptionPart | undefined {
  return parts.find((part) => a[part] !== b[part]);
}

/** What there is under the key of a subscription. */
export interface KnownSubscription {
  readonly revision: number;
  readonly isDeleted: boolean;
  readonly isEnabled: boolean;
  readonly parts: SubscriptionPartHashes;
}

export type SubscribeDecision =
  | { readonly kind: "create"; readonly revision: number }
  /** The same was said before. */
  | { readonly kind: "existing" }
  | {
      readonly kind: "conflict";
      readonly part: SubscriptionPart | "isEnabled";
    };

/** A deleted subscription may be made again; its revisions go on. */
export function decideSubscribe(
  known: KnownSubscription | undefined,
  given: SubscriptionPartHashes,
  isEnabled?: boolean,
): SubscribeDecision {
  if (known === undefined) return { kind: "create", revision: 1 };
  if (known.isDeleted) return { kind: "create", revision: known.revision + 1 };
  const part = firstDifference(known.parts, given);
  if (part !== undefined) return { kind: "conflict", part };
  // A caller that says so expects it; one that asks again may have been overtaken by another that changed it.
  return isEnabled === undefined || isEnabled === known.isEnabled
    ? { kind: "existing" }
    : { kind: "conflict", part: "isEnabled" };
}

export type ReviseDecision =
  | { readonly kind: "missing" }
  /** It says so already, perhaps because of the same call before. */
  | { readonly kind: "unchanged" }
  /** Somebody else has changed it since. */
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

/** What makes an occurrence the same when it is recorded again. */
export interface OccurrenceContent {
  readonly source: TriggerSource;
  readonly payloadHash: string;
}

/** The first part in which two occurrences of one key differ, if any. Not the time: that is the first one's. */
export function occurrenceDifference(
  recorded: OccurrenceContent,
  given: OccurrenceContent,
): OccurrencePart | undefined {
  if (recorded.source.type !== given.source.type) return "source.type";
  if (recorded.source.key !== given.source.key) return "source.key";
  return recorded.payloadHash === given.payloadHash ? undefined : "payload";
}

/** The key of a source that is known by its value. */
export function derivedSourceKey(hash: HashValue, type: string, value: unknown): string {
  return `source:${hash("trigger-source", 1, [type, value])}`;
}

/** Who made a subscription: a session of a generation, or the host. */
export interface Registrant {
  readonly id: string;
  readonly generation: number;
}

/** How the ids of processes begin that triggers have registered. */
export const processPrefix = "trigger:";

/**
 * The process that an occurrence starts for a subscription: the same whichever process
 * computes it, also when the occurrence was removed since. One that says
 * something else under the same key is another.
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

/** How the keys of occurrences begin that schedules make. No other has one, so that none is in a schedule's way. */
export const scheduledPrefix = "schedule:";

/** The key of the occurrence that a schedule makes at an instant. */
export function scheduledOccurrence(schedule: string, instant: number): string {
  return `${scheduledPrefix}${schedule}@${instant}`;
}
