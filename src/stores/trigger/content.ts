import { durationMs } from "../../model/time/durations.ts";
import { isHoldfastError } from "../../model/errors.ts";
import { checkedSchema, isFields, type PayloadSchema } from "../../model/trigger/payload-schema.ts";
import type { ProcessEventType } from "../../model/process/event-type.ts";
import type { ProcessDisposition } from "../../model/process/process.ts";
import type { ScheduleDraft } from "../../model/trigger/schedule-cadence.ts";
import { checkedText, draftOf, optionalText } from "../../model/shape.ts";
import { subscriptionInvalid } from "../../model/trigger/errors.ts";
import {
  derivedSourceKey,
  scheduleSource,
  type TriggerArgument,
  type TriggerSource,
} from "../../model/trigger/trigger.ts";
import { pathText } from "../../model/values/value-path.ts";
import {
  checkedDescriptor,
  type ProcessHandleDraft,
  newProcess,
  scopeNamed,
  type SessionScopeName,
} from "../process/parts.ts";
import { newTerms as scheduleTerms, type NewTerms as ScheduleTerms } from "../schedule/parts.ts";
import type { TriggerContext } from "./context.ts";

/** The process to start. */
interface TriggerTarget {
  /** The sort of work, named by the host. */
  readonly kind: string;
  readonly label?: string | null;
  readonly definition?: string | null;
  readonly eventTypes?: readonly ProcessEventType[];
  /** The recovery that is allowed once its owner is gone; defaults to `rerunnable`. */
  readonly disposition?: ProcessDisposition;
  /** The largest number of starts, at least 1; unlimited by default. */
  readonly attemptsMax?: number | null;
  /** The session that its wakes go to. */
  readonly wakeTarget?: SessionScopeName | null;
}

/** The terms of a subscription: everything except its key and registrant. */
export interface SubscriptionTerms {
  /** The source: one that others record occurrences of, or a schedule of its own. */
  readonly source:
    | {
        /** The kind of event, such as `webhook`, named by the host. */
        readonly type: string;
        /** The source within that kind; defaults to a key derived from `value`. */
        readonly key?: string;
        readonly value?: unknown;
      }
    | ScheduleDraft;
  readonly target: TriggerTarget;
  /** A label for people. It defaults to the label of the target, and cannot differ from it. */
  readonly label?: string | null;
  /** The schema that payloads must match to be delivered; defaults to any payload. */
  readonly payloadSchema?: PayloadSchema | null;
  /** The arguments of the process, by name; defaults to the whole event. */
  readonly arguments?: Readonly<Record<string, TriggerArgument>> | null;
  /** The description of the handles that a subscribing session gets; null for no handle. */
  readonly grant?: ProcessHandleDraft | null;
}

/** The names of all terms. */
export const termNames: readonly (keyof SubscriptionTerms)[] = [
  "source",
  "target",
  "label",
  "payloadSchema",
  "arguments",
  "grant",
];

const targetNames = [
  "kind",
  "label",
  "definition",
  "eventTypes",
  "disposition",
  "attemptsMax",
  "wakeTarget",
] as const satisfies readonly (keyof TriggerTarget)[];

/** The terms as stored: checked and complete. */
export interface SubscriptionContent {
  /** A schedule has all its terms. */
  readonly source: TriggerSource | { readonly schedule: Readonly<Record<string, unknown>> };
  readonly label: string | null;
  readonly payloadSchema: PayloadSchema | null;
  readonly target: Required<TriggerTarget>;
  readonly arguments: Readonly<Record<string, TriggerArgument>> | null;
  readonly grant: Required<ProcessHandleDraft> | null;
}

/** Tests whether a stored value has the parts that a delivery needs. */
export function isContent(value: unknown): value is SubscriptionContent {
  return (
    isFields(value) &&
    isFields(value["source"]) &&
    isFields(value["target"]) &&
    typeof value["target"]["kind"] === "string" &&
    Array.isArray(value["target"]["eventTypes"])
  );
}

const sourceTypeCharactersMax = 128;
const sourceKeyCharactersMax = 512;
const labelCharactersMax = 512;
const argumentsMax = 64;

export function checkedSourceType(type: string): string {
  return checkedText("The type of a source", type, sourceTypeCharactersMax);
}

/**
 * The source of an occurrence or of a filter.
 *
 * @throws HoldfastError `SUBSCRIPTION_INVALID`, `NAME_INVALID`, `OPTION_INVALID`
 */
export function checkedSource(
  { hash }: Pick<TriggerContext, "hash">,
  given: unknown,
  of?: "occurrence",
): TriggerSource {
  if (!isFields(given))
    throw subscriptionInvalid("$.source", "is not an object with a type.", { of });
  const { type: typeDraft, key, value } = draftOf("the source", given, ["type", "key", "value"]);
  const type = checkedSourceType(typeDraft as string);
  return {
    type,
    key:
      key === undefined
        ? keyOfValue(hash, type, value ?? null)
        : checkedText("The key of a source", key as string, sourceKeyCharactersMax),
  };
}

function keyOfValue(hash: TriggerContext["hash"], type: string, value: unknown): string {
  try {
    return derivedSourceKey(hash, type, value);
  } catch (error) {
    // Names the place as its caller wrote it, if the value cannot be stored.
    hash("source", 1, { source: { value } });
    throw error;
  }
}

/** The complete terms of a subscription, and the schedule that it needs, if any. */
export interface CheckedTerms {
  readonly content: SubscriptionContent;
  readonly schedule: ScheduleTerms | null;
}

/**
 * @throws HoldfastError `SUBSCRIPTION_INVALID` naming the path, `NAME_INVALID`, `ID_MALFORMED`,
 *   `OPTION_INVALID`, and the errors of a schedule
 */
export function checkedTerms(
  context: TriggerContext,
  terms: SubscriptionTerms,
  now: number,
): CheckedTerms {
  const { source, schedule } = sourceOf(context, terms.source, now);
  const target = checkedTarget(context, terms.target, now);
  const label = optionalText("The label of a subscription", terms.label, labelCharactersMax);
  if (label !== null && target.label !== null && label !== target.label)
    throw subscriptionInvalid(
      "$.label",
      "differs from the label of the target. Give only one of them, or the same for both.",
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
  context: TriggerContext,
  given: unknown,
  now: number,
): {
  readonly source: SubscriptionContent["source"];
  readonly schedule: ScheduleTerms | null;
} {
  if (isSchedule(given)) {
    const draft = given;
    const schedule = scheduleTerms(draft, now);
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
    throw subscriptionInvalid("$.source", "has both a type and a schedule. Give only one of them.");
  const source = checkedSource(context, given);
  if (source.type === scheduleSource)
    throw subscriptionInvalid(
      "$.source.type",
      `is "${scheduleSource}", which belongs to the scheduler. Give cron or every instead of a type.`,
    );
  return { source, schedule: null };
}

function isSchedule(given: unknown): given is ScheduleDraft {
  return isFields(given) && !("type" in given) && ("cron" in given || "every" in given);
}

/** Checks the target as the registry will, with an id and an input that are always valid. */
function checkedTarget(
  context: TriggerContext,
  given: TriggerTarget,
  now: number,
): Required<TriggerTarget> {
  if (!isFields(given)) throw subscriptionInvalid("$.target", "is not an object with a kind.");
  draftOf<TriggerTarget>("the target", given, targetNames);
  const { identity, disposition, attemptsMax, eventTypes } = within("$.target", () =>
    newProcess(context.codec, { ...given, id: "trigger", input: null }, now),
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

/** Reports an error of a process as an error of the subscription that starts it. */
function within<T>(root: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!isHoldfastError(error) || error.code !== "PROCESS_INVALID") throw error;
    const { path } = error.details;
    const place = typeof path === "string" ? path.replace("$", root) : root;
    throw subscriptionInvalid(place, "is invalid (see cause).", {
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
      `is not an object with at most ${argumentsMax} arguments.`,
    );
  for (const [name, argument] of entries) {
    checkedText("The name of an argument", name);
    if (!isArgument(argument))
      throw subscriptionInvalid(
        pathText(["arguments", name]),
        'is not one of { from: "event" }, { from: "payload" } or { value: … }.',
      );
  }
  return given as Readonly<Record<string, TriggerArgument>>;
}

function isArgument(given: unknown): boolean {
  if (!isFields(given) || Object.keys(given).length !== 1) return false;
  return "value" in given || given["from"] === "event" || given["from"] === "payload";
}

function checkedGrant(given: unknown): SubscriptionContent["grant"] {
  if (given === null) return null;
  if (!isFields(given)) throw subscriptionInvalid("$.grant", "is not a description of a handle.");
  return checkedDescriptor(draftOf("the grant", given, ["kind", "label"]));
}
