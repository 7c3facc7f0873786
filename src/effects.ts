export type { AwaitEnd, AwaitOutcome } from "./model/effect/await-event.ts";
export type { AwaitEventId } from "./model/effect/await-token.ts";
export type { EffectEnvelope } from "./model/effect/envelope.ts";
export type { GroupKind } from "./model/effect/group.ts";
export type { EffectFence, EffectHolder } from "./model/effect/effect.ts";
export { awaitEvents } from "./stores/effect/await/await-events.ts";
export type { AwaitEvents } from "./stores/effect/await/await-events.ts";
export type { AwaitScope } from "./stores/effect/await/event-row.ts";
export type { ForgetAwaitEventsReport } from "./stores/effect/await/forget.ts";
export type {
  OpenAwaitEventOptions,
  OpenedAwaitEvent,
} from "./stores/effect/await/open.ts";
export type {
  AwaitEvent,
  ListAwaitEventsOptions,
} from "./stores/effect/await/read.ts";
export type {
  RevokeAwaitEventsOptions,
  RevokeAwaitEventsReport,
} from "./stores/effect/await/revoke.ts";
export type { AwaitReply } from "./stores/effect/await/settle.ts";
export type {
  ClaimedEffect,
  ClaimEffectOptions,
  EffectClaim,
  SeenEffectHolder,
} from "./stores/effect/claim.ts";
export type {
  CommandedProcess,
  ListedProcess,
  ListHeldProcessesOptions,
  ProcessCommandOptions,
  ProcessStartOptions,
} from "./stores/effect/commands/process-commands.ts";
export { processEffects } from "./stores/effect/commands/process-effects.ts";
export type { ProcessEffects } from "./stores/effect/commands/process-effects.ts";
export type { EffectOptions } from "./stores/effect/context.ts";
export type { EffectRef } from "./stores/effect/effect-row.ts";
export { effects } from "./stores/effect/effects.ts";
export type { Effects } from "./stores/effect/effects.ts";
export type {
  EffectExecuteOptions,
  EffectReplayOptions,
  EffectRetry,
} from "./stores/effect/execute.ts";
export type {
  FailEffectOptions,
  RenewEffectOptions,
} from "./stores/effect/finish.ts";
export type { ForgetEffectsReport } from "./stores/effect/forget.ts";
export { effectGroups } from "./stores/effect/groups/effect-groups.ts";
export type {
  EffectGroups,
  EndedGroupMember,
  GroupAllAnswer,
  GroupMemberOutcome,
} from "./stores/effect/groups/effect-groups.ts";
export type { GroupMemberDraft } from "./stores/effect/groups/members.ts";
export type { OpenedGroup } from "./stores/effect/groups/open.ts";
export type { EffectGroup } from "./stores/effect/groups/read.ts";
export type {
  EffectSummary,
  EffectView,
  GetEffectOptions,
} from "./stores/effect/read.ts";
export type {
  RecordedEffect,
  RecordEffectOptions,
} from "./stores/effect/record.ts";
export type { EffectCall, EffectFunction } from "./stores/effect/run.ts";
export type { EffectScope, EffectScopeRef } from "./stores/effect/scope.ts";
export type {
  EffectBody,
  EffectTransactOptions,
} from "./stores/effect/transact.ts";
