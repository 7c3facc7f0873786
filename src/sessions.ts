export type {} from "./kernel.ts";
export type { LeaseHolder } from "./model/lease.ts";
export { parseSessionId } from "./model/ids/session-id.ts";
export type { SessionId } from "./model/ids/session-id.ts";
export type { NewNode } from "./model/session/turn.ts";
export type {
  SessionComponent,
  SessionHandle,
  SessionMeta,
  SessionNode,
  SessionTurns,
  UsageEntry,
} from "./model/session/session.ts";
export { attachments } from "./stores/attachment/attachments.ts";
export type { Attachment, AttachmentDescription } from "./stores/attachment/attachment-row.ts";
export type { Attachments } from "./stores/attachment/attachments.ts";
export type { ByteStore } from "./stores/attachment/byte-store.ts";
export { attachmentsInDatabase } from "./stores/attachment/in-database.ts";
export type { SweepReport } from "./stores/attachment/sweep.ts";
export type { LoadedAttachment, SessionAttachments } from "./stores/attachment/transfer.ts";
export type { LeaseClaimant, LeaseKeeper, LeaseOutcome } from "./stores/lease/context.ts";
export { leases, type Leases } from "./stores/lease/leases.ts";
export type { Lease } from "./stores/lease/parts.ts";
export type { QueueBatch, QueueItem } from "./stores/queue/batch-row.ts";
export type { ClaimedWork } from "./stores/queue/claim.ts";
export type { TurnWork } from "./stores/queue/claim-turn.ts";
export type { BatchDraft } from "./stores/queue/enqueue.ts";
export type { EnqueueOutcome, QueueClaimRef } from "./stores/queue/parts.ts";
export { queue } from "./stores/queue/queue.ts";
export type { Queue } from "./stores/queue/queue.ts";
export type { CreatedSession, SessionDraft } from "./stores/session/create.ts";
export type { LockedSession } from "./stores/session/lock.ts";
export type { SessionPath } from "./stores/session/graph/graph.ts";
export type { TombstoneOutcome } from "./stores/session/graph/tombstones.ts";
export type { RemovalReport } from "./stores/session/parts.ts";
export type { LoadedSession, SessionHead } from "./stores/session/read/head.ts";
export type { SessionSummary } from "./stores/session/read/list.ts";
export type { SessionSizes } from "./stores/session/read/sizes.ts";
export type { SessionName } from "./stores/session-name.ts";
export type { StopOutcome } from "./stores/session/stop.ts";
export { sessions } from "./stores/session/sessions.ts";
export type { Sessions } from "./stores/session/sessions.ts";
export type { TurnOutcome } from "./stores/session/turn/commit.ts";
export type { TurnDraft } from "./stores/session/turn/draft.ts";
