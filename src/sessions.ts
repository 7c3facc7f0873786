export type {
  LeaseFence,
  LeaseHolder,
  LeaseOwner,
  ProvenDeath,
  LeaseLoss,
} from "./model/lease.ts";
export type {
  Boundary,
  Delivery,
  QueueItemDraft,
  QueuePolicy,
  Slot,
  WorkClass,
} from "./model/queue.ts";
export { parseSessionId } from "./model/session-id.ts";
export type { SessionId } from "./model/session-id.ts";
export type {
  HashValue,
  NewComponent,
  NewFrame,
  NewNode,
  NodeChoice,
  TurnClaim,
  TurnContent,
  NodePlace,
  TurnIdentity,
  TurnPart,
  TurnPartHashes,
} from "./model/session-turn.ts";
export type {
  SessionComponent,
  SessionFrame,
  SessionHandle,
  SessionMeta,
  SessionNode,
  SessionRelation,
  TokenUsage,
  UsageEntry,
  NewUsage,
} from "./model/session.ts";
export { attachments } from "./stores/attachment/attachments.ts";
export type {
  Attachment,
  AttachmentDescription,
} from "./stores/attachment/attachment-row.ts";
export type { Attachments } from "./stores/attachment/attachments.ts";
export type { ByteStore } from "./stores/attachment/byte-store.ts";
export type { AttachmentOptions } from "./stores/attachment/context.ts";
export { attachmentsInDatabase } from "./stores/attachment/in-database.ts";
export type {
  SweepAttachmentsOptions,
  SweepReport,
} from "./stores/attachment/sweep.ts";
export type {
  LoadedAttachment,
  SessionAttachments,
} from "./stores/attachment/transfer.ts";
export type { Lease, LeaseOutcome } from "./stores/lease/acquire.ts";
export type {
  LeaseClaimant,
  LeaseKeepOptions,
  LeaseOptions,
} from "./stores/lease/given.ts";
export type { LeaseKeeper } from "./stores/lease/keeper.ts";
export { leases, type Leases } from "./stores/lease/leases.ts";
export type {
  QueueBatch,
  QueueItem,
  QueueSource,
  WakeSource,
} from "./stores/queue/batch-row.ts";
export { abandonClaim, claimWork } from "./stores/queue/claim.ts";
export type {
  ClaimedWork,
  ClaimWork,
  QueueClaimRef,
  WantedWork,
  AbandonClaim,
} from "./stores/queue/claim.ts";
export type {
  ClaimKey,
  QueueClaims,
  QueueClaimOptions,
} from "./stores/queue/claiming.ts";
export { completeWithoutCommit } from "./stores/queue/complete.ts";
export type { CompleteWithoutCommit } from "./stores/queue/complete.ts";
export type { QueueOptions } from "./stores/queue/context.ts";
export type { EnqueueOutcome, BatchDraft } from "./stores/queue/enqueue.ts";
export type { PurgeReport } from "./stores/queue/purge.ts";
export { queue } from "./stores/queue/queue.ts";
export type { Queue } from "./stores/queue/queue.ts";
export type { ListedBatch, ListQueueOptions } from "./stores/queue/read.ts";
export type {
  NewSessionMeta,
  SessionCommands,
  SessionPage,
  ListSessionsOptions,
  SessionForkOptions,
} from "./stores/session/commands.ts";
export type {
  CommitListener,
  SessionEnvironment,
} from "./stores/session/context.ts";
export { forkSession } from "./stores/session/copy/fork.ts";
export type { ForkSession } from "./stores/session/copy/fork.ts";
export { createSession, openSession } from "./stores/session/create.ts";
export type {
  CreatedSession,
  NewSession,
  StoredMeta,
} from "./stores/session/create.ts";
export { deleteSession } from "./stores/session/delete.ts";
export type { DeleteSession, DeletedSession } from "./stores/session/delete.ts";
export type { SessionSummary } from "./stores/session/list.ts";
export type {
  LoadedSession,
  SessionComponents,
  SessionGraphPage,
  SessionHead,
  SessionPath,
  SessionReads,
  SessionGraphOptions,
  SessionPathOptions,
} from "./stores/session/reading.ts";
export type {
  RemovalReport,
  SessionRemovals,
  SessionSizes,
  VacuumReport,
  SessionEraseOptions,
  SessionRemovalOptions,
} from "./stores/session/removing.ts";
export { sessionCodec } from "./stores/session/session-codec.ts";
export type { SessionCodec } from "./stores/session/session-codec.ts";
export type { SessionName } from "./stores/session/session-name.ts";
export { lockedSession } from "./stores/session/session-row.ts";
export type { SessionRef, SessionRoot } from "./stores/session/session-row.ts";
export { sessions } from "./stores/session/sessions.ts";
export type { Sessions } from "./stores/session/sessions.ts";
export type { SmallParts, Sized } from "./stores/session/sizes.ts";
export { commitTurn } from "./stores/session/turn/commit-turn.ts";
export type {
  CommitTurn,
  TurnOutcome,
  TurnResult,
} from "./stores/session/turn/commit-turn.ts";
export type {
  PreparedComponent,
  Manifest,
} from "./stores/session/turn/turn-components.ts";
export type { PreparedFrame } from "./stores/session/turn/turn-frames.ts";
export type { PreparedNode } from "./stores/session/turn/turn-nodes.ts";
export type { Turn } from "./stores/session/turn/turn-prepared.ts";
export type { SessionTurns } from "./stores/session/turn/turns.ts";
