export type {} from "./kernel.ts";
export type {} from "./processes.ts";
export type {} from "./sessions.ts";
export type { AwaitOutcome } from "./model/effect/await-event.ts";
export type { EffectEnvelope } from "./model/effect/envelope.ts";
export { awaitEvents } from "./stores/effect/await/await-events.ts";
export type { AwaitEvents } from "./stores/effect/await/await-events.ts";
export type { OpenedAwaitEvent } from "./stores/effect/await/open.ts";
export type { AwaitEvent } from "./stores/effect/await/read.ts";
export type { AwaitReply } from "./stores/effect/await/settle.ts";
export type { ClaimedEffect, EffectClaim } from "./stores/effect/claim.ts";
export type { CommandedProcess, ListedProcess } from "./stores/effect/commands/process-commands.ts";
export { processEffects } from "./stores/effect/commands/process-effects.ts";
export type { ProcessEffects } from "./stores/effect/commands/process-effects.ts";
export { effects } from "./stores/effect/effects.ts";
export type { Effects } from "./stores/effect/effects.ts";
export type { EffectExecuteOptions } from "./stores/effect/execute.ts";
export { effectGroups } from "./stores/effect/groups/effect-groups.ts";
export type {
  EffectGroups,
  EndedGroupMember,
  GroupAllAnswer,
} from "./stores/effect/groups/effect-groups.ts";
export type { GroupMemberDraft } from "./stores/effect/groups/members.ts";
export type { EffectGroup } from "./stores/effect/groups/read.ts";
export type { EffectSummary, EffectView } from "./stores/effect/read.ts";
export type { RecordedEffect } from "./stores/effect/record.ts";
export type { EffectCall } from "./stores/effect/run.ts";
export type { EffectScope } from "./stores/effect/scope.ts";
export type { EffectHolder } from "./model/effect/effect.ts";
