import { isFields } from "../../model/payload-schema.ts";
import type { PayloadSchema } from "../../model/payload-schema.ts";
import type { ProcessEventType } from "../../model/process-event-type.ts";
import type { ProcessDisposition } from "../../model/process.ts";
import type { TriggerArgument, TriggerSource } from "../../model/trigger.ts";
import type { ProcessHandleDraft } from "../process/handles.ts";
import type { SessionScopeName } from "../process/scope.ts";
import type { ScheduleDraft } from "../schedule/checks.ts";

/** What is to be listened to: a source that others record occurrences of, or a schedule of its own. */
export type TriggerSourceDraft =
  | {
      /** What kind of thing happens, such as `webhook`: the host's own names. */
      readonly type: string;
      /** Which one of that kind; derived from `value` unless told. */
      readonly key?: string;
      readonly value?: unknown;
    }
  | ScheduleDraft;

/** The process that is started. */
export interface TriggerTarget {
  /** What sort of work it is: the host's own names. */
  readonly kind: string;
  readonly label?: string | null;
  readonly definition?: string | null;
  readonly eventTypes?: readonly ProcessEventType[];
  /** What may be done when its owner is gone: `rerunnable` unless told. */
  readonly disposition?: ProcessDisposition;
  /** How often it may be begun, 1 at least; as often as needed unless told. */
  readonly attemptsMax?: number | null;
  /** The session that its wakes go to. */
  readonly wakeTarget?: SessionScopeName | null;
}

/** All that a subscription says, apart from its key and who made it. */
export interface SubscriptionTerms {
  readonly source: TriggerSourceDraft;
  readonly target: TriggerTarget;
  /** What people see; the label of the target unless told, and never another one. */
  readonly label?: string | null;
  /** What payloads must look like to be delivered; anything unless told. */
  readonly payloadSchema?: PayloadSchema | null;
  /** What the process gets, by name; the whole event unless told. */
  readonly arguments?: Readonly<Record<string, TriggerArgument>> | null;
  /** What a session that subscribes calls the handles it gets; null for no handle. */
  readonly grant?: ProcessHandleDraft | null;
}

/** A source as it is kept: a schedule with all of its terms. */
export type KeptTriggerSource =
  TriggerSource | { readonly schedule: Readonly<Record<string, unknown>> };

/** The same, checked and complete: what is kept. */
export interface SubscriptionContent {
  readonly source: KeptTriggerSource;
  readonly label: string | null;
  readonly payloadSchema: PayloadSchema | null;
  readonly target: Required<TriggerTarget>;
  readonly arguments: Readonly<Record<string, TriggerArgument>> | null;
  readonly grant: Required<ProcessHandleDraft> | null;
}

/** Whether a stored value is what was kept; the parts that a delivery stands on. */
export function isContent(value: unknown): value is SubscriptionContent {
  return (
    isFields(value) &&
    isFields(value["source"]) &&
    isFields(value["target"]) &&
    typeof value["target"]["kind"] === "string" &&
    Array.isArray(value["target"]["eventTypes"])
  );
}
