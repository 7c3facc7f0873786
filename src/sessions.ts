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
export { parseSessionId } from "./model/ids/session-id.ts";
export type { SessionId } from "./model/ids/session-id.ts";
export type {
  NewComponent,
  NewFrame,
  NewNode,
  NodeChoice,
  TurnClaim,
  TurnContent,
} from "./model/session/turn.ts";
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
} from "./model/session/session.ts";
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
export type {
  LeaseClaimant,
  LeaseKeeper,
  LeaseKeepOptions,
  LeaseOptions,
  LeaseOutcome,
} from "./stores/lease/context.ts";
export { leases, type Leases } from "./stores/lease/leases.ts";
export type { Lease } from "./stores/lease/parts.ts";
export type {
  QueueBatch,
  QueueItem,
  QueueSource,
  WakeSource,
} from "./stores/queue/batch-row.ts";
export type {
  ClaimCommandOptions,
  ClaimedWork,
  ClaimOptions,
  ClaimTurnOptions,
} from "./stores/queue/claim.ts";
export type { QueueOptions } from "./stores/queue/context.ts";
export type { BatchDraft } from "./stores/queue/enqueue.ts";
export type { EnqueueOutcome, QueueClaimRef } from "./stores/queue/parts.ts";
export type { PurgeReport } from "./stores/queue/purge.ts";
export { queue } from "./stores/queue/queue.ts";
export type { Queue } from "./stores/queue/queue.ts";
export type { ListedBatch, ListQueueOptions } from "./stores/queue/read.ts";
export type {
  CommitListener,
  SessionOptions,
} from "./stores/session/context.ts";
export type { SessionForkOptions } from "./stores/session/copy/fork.ts";
export type {
  CreatedSession,
  SessionDraft,
  StoredMeta,
} from "./stores/session/create.ts";
export type {
  SessionPath,
  SessionPathOptions,
} from "./stores/session/graph/graph.ts";
export type {
  TombstoneOptions,
  TombstoneOutcome,
  VacuumReport,
} from "./stores/session/graph/tombstones.ts";
export type { RemovalReport } from "./stores/session/parts.ts";
export type {
  LoadedSession,
  SessionComponents,
  SessionHead,
} from "./stores/session/read/head.ts";
export type {
  ListSessionsOptions,
  SessionSummary,
} from "./stores/session/read/list.ts";
export type { SessionSizes, Sized } from "./stores/session/read/sizes.ts";
export type { SessionEraseOptions } from "./stores/session/removal.ts";
export type { SessionName } from "./stores/session-name.ts";
export type { SessionRef } from "./stores/session-row.ts";
export { sessions } from "./stores/session/sessions.ts";
export type { Sessions } from "./stores/session/sessions.ts";
export type { TurnOutcome } from "./stores/session/turn/commit.ts";
export type { TurnDraft } from "./stores/session/turn/draft.ts";
