export type {} from "./kernel.ts";
export type { PayloadSchema } from "./model/trigger/payload-schema.ts";
export type { ScheduleDraft } from "./model/trigger/schedule-cadence.ts";
export type { PayloadSelector } from "./model/trigger/selector.ts";
export type { TriggerSource } from "./model/trigger/trigger.ts";
export type {
  DueInstant,
  FiredInstant,
  Schedule,
  Scheduler,
} from "./stores/schedule/schedule-row.ts";
export { schedules } from "./stores/schedule/schedules.ts";
export type { Schedules } from "./stores/schedule/schedules.ts";
export type { SubscriptionTerms } from "./stores/trigger/content.ts";
export type { Occurrence, TriggerDelivery } from "./stores/trigger/occurrence-row.ts";
export type { OccurrenceView, UnstartedDelivery } from "./stores/trigger/read-occurrences.ts";
export type {
  OccurrenceDraft,
  RecordOccurrenceOutcome,
  SchedulePayload,
} from "./stores/trigger/record.ts";
export type { SubscriptionDraft } from "./stores/trigger/subscribe.ts";
export type { Subscription } from "./stores/trigger/subscription-row.ts";
export { triggers } from "./stores/trigger/triggers.ts";
export type { Triggers } from "./stores/trigger/triggers.ts";
