export type { PayloadSchema, SchemaType } from "./model/payload-schema.ts";
export type { Cadence, CadenceDraft } from "./model/schedule-cadence.ts";
export type { CatchUp, SkippedInstants } from "./model/schedule-plan.ts";
export type { StartAt } from "./model/schedule.ts";
export type { PayloadSelector } from "./model/selector.ts";
export type {
  Registrant,
  TriggerArgument,
  TriggerSource,
} from "./model/trigger.ts";
export type { CatchUpDraft, ScheduleDraft } from "./stores/schedule/checks.ts";
export type { DueInstant, FireSchedule } from "./stores/schedule/fire.ts";
export type { PutScheduleOutcome } from "./stores/schedule/put.ts";
export type {
  Schedule,
  ScheduleName,
  ScheduleTerms,
} from "./stores/schedule/schedule-row.ts";
export type {
  FiredInstant,
  ScheduleRunOptions,
  Scheduler,
  SchedulerOptions,
} from "./stores/schedule/scheduler.ts";
export { schedules } from "./stores/schedule/schedules.ts";
export type {
  ScheduleEnvironment,
  Schedules,
} from "./stores/schedule/schedules.ts";
export type { SubscriptionName } from "./stores/trigger/checks.ts";
export type {
  KeptTriggerSource,
  SubscriptionContent,
  SubscriptionTerms,
  TriggerSourceDraft,
  TriggerTarget,
} from "./stores/trigger/content.ts";
export type { SchedulePayload } from "./stores/trigger/fire.ts";
export type {
  Occurrence,
  TriggerDelivery,
  TriggerDeliveryRefusal,
} from "./stores/trigger/occurrence-row.ts";
export { recordOccurrence } from "./stores/trigger/record.ts";
export type {
  RecordOccurrence,
  RecordOccurrenceOutcome,
} from "./stores/trigger/record.ts";
export type {
  ListOccurrencesOptions,
  OccurrenceDraft,
  OccurrenceRemovalReport,
  Occurrences,
  OccurrenceView,
  RemoveOccurrencesOptions,
} from "./stores/trigger/recording.ts";
export type {
  ReviseOutcome,
  SubscribeOutcome,
} from "./stores/trigger/subscribe.ts";
export type {
  ListSubscriptionsOptions,
  ReviseSubscriptionOptions,
  SubscriptionDraft,
  Subscriptions,
} from "./stores/trigger/subscribing.ts";
export type { Subscription } from "./stores/trigger/subscription-row.ts";
export { triggers } from "./stores/trigger/triggers.ts";
export type { Triggers } from "./stores/trigger/triggers.ts";
export type { UnstartedDelivery } from "./stores/trigger/unstarted.ts";
