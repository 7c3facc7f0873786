import { durationMs } from "../../model/durations.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { checkedSchema, isFields } from "../../model/payload-schema.ts";
import {
  derivedSourceKey,
  scheduledPrefix,
  scheduleSource,
} from "../../model/trigger.ts";
import type { TriggerArgument, TriggerSource } from "../../model/trigger.ts";
import { subscriptionInvalid } from "../../model/trigger-errors.ts";
import { pathText } from "../../model/value-path.ts";
import { checkedText } from "../../model/shape.ts";
import type { ProcessCodec } from "../process/context.ts";
import { checkedDescriptor } from "../process/handles.ts";
import { newProcess } from "../process/new-process.ts";
import { scopeNamed } from "../process/scope.ts";
import type { SessionScopeName } from "../process/scope.ts";
import { checkedTerms } from "../schedule/checks.ts";
import type { ScheduleDraft } from "../schedule/checks.ts";
import type { PutSchedule } from "../schedule/put.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import type { SessionRef } from "../session/session-row.ts";
import type {
  KeptTriggerSource,
  SubscriptionContent,
  SubscriptionTerms,
  TriggerTarget,
} from "./content.ts";

/** What callers may give, checked where it enters. */

/** How callers name a subscription: its key, and the session that made it. Without one it is the host's. */
export type SubscriptionName =
  string | { readonly key: string; readonly registrant?: SessionName | null };

export interface SubscriptionRef {
  readonly key: string;
  readonly registrant: SessionRef | null;
}

const keyCharactersMax = 256;
const sourceTypeCharactersMax = 128;
const sourceKeyCharactersMax = 512;
const labelCharactersMax = 512;
const argumentsMax = 64;

/** @throws HoldfastError `NAME_INVALID`, `ID_MALFORMED`, `OPTION_INVALID` */
export function subscriptionNamed(name: SubscriptionName): SubscriptionRef {
  const { key, registrant } = isFields(name)
    ? name
    : { key: name, registrant: null };
  return {
    key: checkedText("The key of a subscription", key, keyCharactersMax),
    registrant:
      registrant === undefined || registrant === null
        ? null
        : sessionNamed(registrant),
  };
}

export function checkedOccurrenceKey(key: string): string {
  return checkedText("The key of an occurrence", key, sourceKeyCharactersMax);
}

/** The key of an occurrence that a caller records. @throws HoldfastError `NAME_INVALID` */
export function checkedNewKey(given: string): string {
  const key = checkedOccurrenceKey(given);
  if (!key.startsWith(scheduledPrefix)) return key;
  const what = "The key of an occurrence";
  throw new HoldfastError(
    "NAME_INVALID",
    `${what} that is recorded does not begin with "${scheduledPrefix}": the scheduler names the instants of schedules so. ` +
      "Begin it with the name of your source.",
    { what, prefix: scheduledPrefix },
  );
}

export function checkedSourceType(type: string): string {
  return checkedText("The type of a source", type, sourceTypeCharactersMax);
}

/**
 * The source of an occurrence, or in a filter.
 *
 * @throws HoldfastError `SUBSCRIPTION_INVALID`, `NAME_INVALID`
 */
export function checkedSource(
  { hash }: Pick<ProcessCodec, "hash">,
  given: unknown,
  of?: "occurrence",
): TriggerSource {
  if (!isFields(given))
    throw subscriptionInvalid("$.source", "is no object with a type.", { of });
  const type = checkedSourceType(given["type"] as string);
  const { key } = given;
  return {
    type,
    key:
      key === undefined
        ? keyOfValue(hash, type, given["value"] ?? null)
        : checkedText(
            "The key of a source",
            key as string,
            sourceKeyCharactersMax,
          ),
  };
}

function keyOfValue(
  hash: ProcessCodec["hash"],
  type: string,
  value: unknown,
): string {
  try {
    return derivedSourceKey(hash, type, value);
  } catch (error) {
    // Names the place as its caller wrote it, if it is the value that cannot be stored.
    hash("source", 1, { source: { value } });
    throw error;
  }
}

/** What a subscription says, complete, and the schedule it needs, if any. */
export interface CheckedTerms {
  readonly content: SubscriptionContent;
  readonly schedule: Omit<PutSchedule, "kind" | "name" | "now"> | null;
}

/**
 * @throws HoldfastError `SUBSCRIPTION_INVALID` naming the path, `NAME_INVALID`,
 *   `ID_MALFORMED`, and those of a schedule
 */
export function checkedSubscription(
  codec: ProcessCodec,
  terms: SubscriptionTerms,
  now: number,
): CheckedTerms {
  if (!isFields(terms))
    throw subscriptionInvalid("$", "is no object with a source and a target.");
  const { source, schedule } = sourceOf(codec, terms.source, now);
  const target = checkedTarget(codec, terms.target, now);
  const label = optional("The label of a subscription", terms.label);
  if (label !== null && target.label !== null && label !== target.label)
    throw subscriptionInvalid(
      "$.label",
      "is not the label of the target. Give one of them, or both the same.",
    );
  const { payloadSchema = null, grant = {} } = terms;
  return {
    content: {
      source,
      label: label ?? target.label,
      payloadSchema:
        payloadSchema === null
          ? null
          : within("$", () => checkedSchema(payloadSchema, ["payloadSchema"])),
      target,
      arguments: checkedArguments(terms.arguments ?? null),
      grant: checkedGrant(grant),
    },
    schedule,
  };
}

function sourceOf(
  codec: ProcessCodec,
  given: unknown,
  now: number,
): {
  readonly source: KeptTriggerSource;
  readonly schedule: CheckedTerms["schedule"];
} {
  if (isSchedule(given)) {
    const draft = given;
    const schedule = checkedTerms(draft, now);
    const { catchUp, catchUpMax } = schedule;
    const cadence =
      "cron" in draft
        ? { cron: draft.cron, timeZone: draft.timeZone ?? "UTC" }
        : { everyMs: durationMs(draft.every), from: draft.from ?? null };
    return {
      source: { schedule: { ...cadence, catchUp, catchUpMax } },
      schedule,
    };
  }
  if (isFields(given) && ("cron" in given || "every" in given))
    throw subscriptionInvalid(
      "$.source",
      "has a type and a schedule. Give one of them.",
    );
  const source = checkedSource(codec, given);
  if (source.type === scheduleSource)
    throw subscriptionInvalid(
      "$.source.type",
      `is "${scheduleSource}", which belongs to the scheduler. Give cron or every instead of a type.`,
    );
  return { source, schedule: null };
}

function isSchedule(given: unknown): given is ScheduleDraft {
  return (
    isFields(given) &&
    !("type" in given) &&
    ("cron" in given || "every" in given)
  );
}

/** As the registry will see it, tried with an id and an input that always do. */
function checkedTarget(
  codec: ProcessCodec,
  given: TriggerTarget,
  now: number,
): Required<TriggerTarget> {
  if (!isFields(given))
    throw subscriptionInvalid("$.target", "is no object with a kind.");
  const { identity, disposition, attemptsMax, eventTypes } = within(
    "$.target",
    () => newProcess(codec, { ...given, id: "trigger", input: null }, now),
  );
  const { wakeTarget } = given;
  return {
    ...identity,
    disposition,
    attemptsMax,
    eventTypes,
    wakeTarget:
      wakeTarget === undefined || wakeTarget === null
        ? null
        : (scopeNamed(wakeTarget) satisfies SessionScopeName),
  };
}

/** What is wrong with a process is wrong with the subscription that starts it. */
function within<T>(root: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "PROCESS_INVALID")
      throw error;
    const { path } = error.details;
    const place = typeof path === "string" ? path.replace("$", root) : root;
    throw subscriptionInvalid(place, "is not what it has to be (see cause).", {
      cause: error,
    });
  }
}

function checkedArguments(given: unknown): SubscriptionContent["arguments"] {
  if (given === null) return null;
  const entries = isFields(given) ? Object.entries(given) : undefined;
  if (entries === undefined || entries.length > argumentsMax)
    throw subscriptionInvalid(
      "$.arguments",
      `is no object with at most ${argumentsMax} arguments.`,
    );
  for (const [name, argument] of entries) {
    checkedText("The name of an argument", name);
    if (!isArgument(argument))
      throw subscriptionInvalid(
        pathText(["arguments", name]),
        'is none of { from: "event" }, { from: "payload" } and { value: … }.',
      );
  }
  return given as Readonly<Record<string, TriggerArgument>>;
}

function isArgument(given: unknown): boolean {
  if (!isFields(given) || Object.keys(given).length !== 1) return false;
  return (
    "value" in given || given["from"] === "event" || given["from"] === "payload"
  );
}

function checkedGrant(given: unknown): SubscriptionContent["grant"] {
  if (given === null) return null;
  if (!isFields(given))
    throw subscriptionInvalid("$.grant", "is no description of a handle.");
  return checkedDescriptor(given);
}

function optional(
  what: string,
  text: string | null | undefined,
): string | null {
  return text === null || text === undefined
    ? null
    : checkedText(what, text, labelCharactersMax);
}
