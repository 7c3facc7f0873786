export type {
  PayloadSchema,
  SchemaType,
} from "./model/trigger/payload-schema.ts";
export type {
  Cadence,
  ScheduleDraft,
} from "./model/trigger/schedule-cadence.ts";
export type {
  CatchUp,
  SkippedInstants,
} from "./model/trigger/schedule-plan.ts";
export type { StartAt } from "./model/time/instants.ts";
export type { PayloadSelector } from "./model/trigger/selector.ts";
export type {
  Registrant,
  TriggerArgument,
  TriggerSource,
} from "./model/trigger/trigger.ts";
export type { PutScheduleOutcome } from "./stores/schedule/parts.ts";
export type {
  DueInstant,
  FiredInstant,
  FireSchedule,
  Schedule,
  ScheduleName,
  Scheduler,
  SchedulerOptions,
} from "./stores/schedule/schedule-row.ts";
export { schedules } from "./stores/schedule/schedules.ts";
export type {
  ScheduleRunOptions,
  Schedules,
} from "./stores/schedule/schedules.ts";
export type {
  SubscriptionContent,
  SubscriptionTerms,
  TriggerTarget,
} from "./stores/trigger/content.ts";
export type {
  Occurrence,
  TriggerDelivery,
} from "./stores/trigger/occurrence-row.ts";
export type {
  ListOccurrencesOptions,
  OccurrenceView,
  UnstartedDelivery,
} from "./stores/trigger/read-occurrences.ts";
export type { ListSubscriptionsOptions } from "./stores/trigger/read-subscriptions.ts";
export type {
  OccurrenceDraft,
  RecordOccurrenceOutcome,
  SchedulePayload,
} from "./stores/trigger/record.ts";
export type { OccurrenceRemovalReport } from "./stores/trigger/retention.ts";
export type {
  ReviseOutcome,
  ReviseSubscriptionOptions,
  SubscribeOutcome,
  SubscriptionDraft,
} from "./stores/trigger/subscribe.ts";
export type {
  Subscription,
  SubscriptionName,
} from "./stores/trigger/subscription-row.ts";
export { triggers } from "./stores/trigger/triggers.ts";
export type { Triggers } from "./stores/trigger/triggers.ts";
