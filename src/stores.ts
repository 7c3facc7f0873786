export { sql } from "./sql/statement.ts";
export type { Parameter, SqlValue, Statement } from "./sql/statement.ts";
export {
  done,
  operation,
  rollbackWith,
  row,
  rows,
  run,
} from "./sql/operation.ts";
export type {
  Change,
  Done,
  Operation,
  OperationForms,
  Tx,
} from "./sql/operation.ts";
export type { Isolation, IsolationMarks } from "./sql/isolation.ts";
export {
  autoKey,
  belowHorizon,
  bytes,
  feedTransaction,
  integer,
  lockRow,
  skipLocked,
  strict,
  text,
} from "./sql/dialect.ts";
export type { Dialect } from "./sql/dialect.ts";
export type {
  AppMigration,
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Latency,
  Liveness,
  SetUpReport,
  Stats,
  WaitOptions,
  Warning,
  WriteOptions,
} from "./sql/database.ts";
export type { Page, PageOptions } from "./stores/paging.ts";
export type { Clock, Now } from "./model/clock.ts";
export type { Duration } from "./model/durations.ts";
export type {
  DeploymentId,
  OwnerId,
  ExecutorId,
  RunId,
} from "./model/prefixed-id.ts";
export { executions } from "./stores/execution/index.ts";
export type { Executions } from "./stores/execution/index.ts";
export type {
  AppendOptions,
  ExecutionCommands,
} from "./stores/execution/commands.ts";
export type {
  ExecutionControls,
  SignalTaken,
} from "./stores/execution/controls.ts";
export { executionCodec } from "./stores/execution/environment.ts";
export type { StoreEnvironment } from "./stores/execution/environment.ts";
export type { ExecutionCodec } from "./model/execution-codec.ts";
export type {
  ExecutionTimers,
  ExpireOptions,
  ExpireReport,
  ReleaseReport,
} from "./stores/execution/expiring.ts";
export type {
  ExecutionLocks,
  Locked,
  LockOptions,
  LockPendingOptions,
} from "./stores/execution/locking.ts";
export type { CreateOptions } from "./stores/execution/new-execution.ts";
export type {
  ExecutionRetention,
  RetentionOptions,
  RetentionPolicy,
  RetentionReport,
} from "./stores/execution/retaining.ts";
export type {
  ExecutionNotes,
  LogEntry,
  LogLineView,
  LogPageView,
} from "./stores/execution/noting.ts";
export type {
  EventPageView,
  ExecutionReads,
  ExecutionView,
  ResponsePageView,
} from "./stores/execution/reading.ts";
export type {
  CancellingExecution,
  CancellingPage,
} from "./stores/execution/cancelling.ts";
export type {
  CountOptions,
  CountProgress,
  ExecutionCount,
  ExecutionCounts,
} from "./stores/execution/counts.ts";
export type { ExecutionPage, ListExecutions } from "./stores/execution/list.ts";
export type { ExecutionFilter } from "./stores/execution/list-filter.ts";
export type { ExecutionSummary } from "./stores/execution/summary.ts";
export type { ExecutionStatus } from "./model/execution-status.ts";
export type { ExecutionWaits } from "./stores/execution/waiting.ts";
export { appendEvents } from "./stores/execution/append.ts";
export type { AppendEvents, AppendOutcome } from "./stores/execution/append.ts";
export { createExecution } from "./stores/execution/create.ts";
export type { CreateOutcome, NewExecution } from "./stores/execution/create.ts";
export { answerDelay } from "./stores/execution/delays.ts";
export type {
  AnswerDelay,
  AnswerDelayOutcome,
} from "./stores/execution/delays.ts";
export { forkExecution } from "./stores/execution/fork.ts";
export type { ForkExecution, ForkOutcome } from "./stores/execution/fork.ts";
export { requestCancellation } from "./stores/execution/lifecycle.ts";
export type {
  CancellationOutcome,
  Changed,
  Finished,
  RequestCancellation,
} from "./stores/execution/lifecycle.ts";
export { extendLock, lockExecution } from "./stores/execution/lock.ts";
export type {
  Extended,
  LockOne,
  LockTerms,
  LockedExecution,
} from "./stores/execution/lock.ts";
export { resolveExternal } from "./stores/execution/resolve.ts";
export type { ResolveExternal } from "./stores/execution/resolve.ts";
export { receiveSignal, sendSignal } from "./stores/execution/signals.ts";
export type {
  ReceiveSignal,
  ReceivedSignal,
  SendSignal,
  SendSignalOutcome,
} from "./stores/execution/signals.ts";
export type {
  CancellationCause,
  ControlEvent,
  Created,
  DelayOutcome,
  ExecutionEvent,
  ExecutionResponse,
  ExecutionRole,
  ForkOrigin,
  Holder,
  LoggedEvent,
  LoggedResponse,
  ResultKind,
} from "./model/execution-event.ts";
export type {
  BlockedOn,
  ExecutionState,
  Lifecycle,
  PendingState,
} from "./model/execution-state.ts";
export type { HistoryEvent, HistoryFact } from "./model/history-event.ts";
export type { ExecutionResult } from "./model/result.ts";
export type { RetryPolicy } from "./model/retry-policy.ts";
export { delayId, parseDelayId } from "./model/delay-id.ts";
export type { DelayId } from "./model/delay-id.ts";
export { childId, parseExecutionId } from "./model/execution-id.ts";
export type { ExecutionId } from "./model/execution-id.ts";
export { parseFunctionName } from "./model/function-name.ts";
export type { FunctionName } from "./model/function-name.ts";
export { idSource } from "./model/id-source.ts";
export type { IdSource } from "./model/id-source.ts";
export {
  generatedJoinSet,
  namedJoinSet,
  oneOffJoinSet,
} from "./model/join-set-id.ts";
export type { JoinSetId } from "./model/join-set-id.ts";
export type { PayloadCodec } from "./model/payload-codec.ts";
export { leases } from "./stores/lease/index.ts";
export type { LeaseEnvironment, Leases } from "./stores/lease/index.ts";
export type {
  LeaseKeepOptions,
  LeaseClaimant,
  LeaseOptions,
} from "./stores/lease/claimant.ts";
export type { LeaseKeeper } from "./stores/lease/keeper.ts";
export { acquireLease, reclaimLease } from "./stores/lease/acquire.ts";
export type {
  AcquireLease,
  Lease,
  LeaseOutcome,
  ReclaimLease,
} from "./stores/lease/acquire.ts";
export {
  readLease,
  releaseHeldLease,
  renewLease,
} from "./stores/lease/renew.ts";
export type {
  Renewal,
  RenewLease,
  ReadLease,
  ReleaseHeld,
} from "./stores/lease/renew.ts";
export type {
  LeaseFence,
  LeaseHolder,
  LeaseOwner,
  ProvenDeath,
  LeaseLoss,
} from "./model/lease.ts";
export { queue } from "./stores/queue/index.ts";
export type { Queue } from "./stores/queue/index.ts";
export type {
  ClaimKey,
  QueueClaims,
  QueueClaimOptions,
} from "./stores/queue/claiming.ts";
export type { QueueEnvironment } from "./stores/queue/environment.ts";
export type {
  BatchDraft,
  ListQueueOptions,
  PurgeQueueOptions,
  QueueContents,
} from "./stores/queue/queuing.ts";
export { abandonClaim, claimWork } from "./stores/queue/claim.ts";
export type {
  ClaimedWork,
  ClaimWork,
  QueueClaimRef,
  WantedWork,
  AbandonClaim,
} from "./stores/queue/claim.ts";
export { cancelBatch } from "./stores/queue/cancel.ts";
export type { CancelBatch } from "./stores/queue/cancel.ts";
export { completeWithoutCommit } from "./stores/queue/complete.ts";
export type { CompleteWithoutCommit } from "./stores/queue/complete.ts";
export { enqueueBatch } from "./stores/queue/enqueue.ts";
export type { EnqueueBatch, EnqueueOutcome } from "./stores/queue/enqueue.ts";
export { listQueue } from "./stores/queue/read.ts";
export type { ListedBatch, QueuePage, ListQueue } from "./stores/queue/read.ts";
export type {
  QueueBatch,
  QueueItem,
  QueueSource,
  WakeSource,
} from "./stores/queue/batch-row.ts";
export type {
  Boundary,
  Delivery,
  QueueItemDraft,
  QueuePolicy,
  Slot,
  WorkClass,
} from "./model/queue.ts";
export type { SessionName } from "./stores/session/session-name.ts";
export { blobs } from "./stores/blob/index.ts";
export type {
  BlobKeepsOptions,
  Blobs,
  LoadedBlob,
} from "./stores/blob/index.ts";
export { keepBlob, releaseBlob } from "./stores/blob/keep.ts";
export type { BlobKeep, BlobKeepRef, NewBlobKeep } from "./stores/blob/keep.ts";
export type {
  BlobEnvironment,
  BlobPutOptions,
} from "./stores/blob/environment.ts";
export { putBlob, putBlobs } from "./stores/blob/put.ts";
export { readBlob, readBlobs } from "./stores/blob/read.ts";
export { blobKinds, prepareBlob, verifiedBlob } from "./model/blob.ts";
export type {
  BlobEncoding,
  BlobKind,
  BlobProfile,
  NewBlob,
  StoredBlob,
} from "./model/blob.ts";
export type { ByteTools, ByteHash } from "./model/byte-tools.ts";
export { artifacts } from "./stores/artifact/index.ts";
export type {
  Artifacts,
  ListArtifactsOptions,
} from "./stores/artifact/index.ts";
export { putArtifact, removeArtifact } from "./stores/artifact/pointer.ts";
export type {
  ArtifactName,
  ArtifactPage,
  ListedArtifact,
  NewArtifact,
} from "./stores/artifact/pointer.ts";
export { attachments } from "./stores/attachment/index.ts";
export type {
  Attachments,
  ListAttachmentsOptions,
  AttachmentPage,
} from "./stores/attachment/index.ts";
export type { ByteStore } from "./stores/attachment/byte-store.ts";
export type { AttachmentEnvironment } from "./stores/attachment/environment.ts";
export { attachmentsInDatabase } from "./stores/attachment/in-database.ts";
export type {
  Attachment,
  AttachmentDescription,
} from "./stores/attachment/manifest.ts";
export type { SessionAttachments } from "./stores/attachment/session-attachments.ts";
export type {
  SweepAttachmentsOptions,
  SweepReport,
} from "./stores/attachment/sweep.ts";
export type { LoadedAttachment } from "./stores/attachment/transfer.ts";
export { maintenance } from "./stores/maintenance/index.ts";
export type {
  CheckedTable,
  MaintenanceCheckReport,
  MaintenanceCheckOptions,
} from "./stores/maintenance/check.ts";
export type { DamagedRow } from "./stores/table-check.ts";
export type {
  Maintenance,
  MaintenanceEnvironment,
} from "./stores/maintenance/index.ts";
export type {
  CollectReport,
  MaintenanceCollectOptions,
} from "./stores/maintenance/collect.ts";
export type {
  SizeReport,
  MaintenanceSizesOptions,
} from "./stores/maintenance/sizes.ts";
export { sessions } from "./stores/session/index.ts";
export type { Sessions } from "./stores/session/index.ts";
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
} from "./stores/session/environment.ts";
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
export type { SessionTurns } from "./stores/session/turns.ts";
export { createSession, openSession } from "./stores/session/create.ts";
export type {
  CreatedSession,
  NewSession,
  StoredMeta,
} from "./stores/session/create.ts";
export { commitTurn } from "./stores/session/commit-turn.ts";
export type {
  CommitTurn,
  TurnOutcome,
  TurnResult,
} from "./stores/session/commit-turn.ts";
export { deleteSession } from "./stores/session/delete.ts";
export type { DeleteSession, DeletedSession } from "./stores/session/delete.ts";
export { forkSession } from "./stores/session/fork.ts";
export type { ForkSession } from "./stores/session/fork.ts";
export { lockedSession } from "./stores/session/session-row.ts";
export type { SessionRef, SessionRoot } from "./stores/session/session-row.ts";
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
export type { Entropy } from "./model/entropy.ts";
export type { GivenEvent } from "./model/given-event.ts";
export type { ValueLimits } from "./model/value-limits.ts";
export type { Damaged, Sifted } from "./stores/damage.ts";
export type {
  FunctionLimits,
  LimitedFunction,
} from "./stores/execution/places.ts";
export type { StartAt } from "./model/schedule.ts";
export type {
  ListLogs,
  LogLine,
  LogPage,
} from "./stores/execution/read-logs.ts";
export type {
  BacktraceRange,
  ReadBacktrace,
} from "./stores/execution/backtraces.ts";
export type { LogLevel } from "./stores/execution/logs.ts";
export type {
  EventPage,
  ListEvents,
  ListedEvent,
} from "./stores/execution/read-events.ts";
export type {
  ListResponses,
  ResponsePage,
} from "./stores/execution/read-responses.ts";
export type { TreePage } from "./stores/execution/tree.ts";
export type { ExecutionDetails } from "./stores/execution/read.ts";
export type { Encoded } from "./model/encoded.ts";
export type { StoredError } from "./model/stored-error.ts";
export type { BlobRoot } from "./stores/blob/roots.ts";
export type { BlobSizes } from "./stores/blob/scan.ts";
export type { AttachmentSizes } from "./stores/attachment/sizes.ts";
export type { SmallParts, Sized } from "./stores/session/sizes.ts";
export type { PreparedNode } from "./stores/session/turn-nodes.ts";
export type {
  PreparedComponent,
  Manifest,
} from "./stores/session/turn-components.ts";
export type { PreparedFrame } from "./stores/session/turn-frames.ts";
export { processes } from "./stores/process/index.ts";
export type { Processes } from "./stores/process/index.ts";
export type { ProcessCodec } from "./stores/process/environment.ts";
export type {
  AppendedProcessEventView,
  ProcessCancelOptions,
  ProcessCommands,
  ProcessEventDraft,
  ProcessFenceOptions,
  ProcessSignalOptions,
} from "./stores/process/commands.ts";
export type {
  ProcessExternalRef,
  ProcessNotes,
} from "./stores/process/noting.ts";
export type {
  ListHandlesOptions,
  ProcessHandleDraft,
  ProcessHandles,
} from "./stores/process/handles.ts";
export type {
  ListProcessesOptions,
  ListProcessEventsOptions,
  ProcessEventPage,
  ProcessReads,
} from "./stores/process/reading.ts";
export type {
  AwaitedProcessEvent,
  ProcessWaits,
} from "./stores/process/waiting.ts";
export type {
  ProcessLeases,
  ProcessWorklistOptions,
  RecoverableProcess,
} from "./stores/process/leasing.ts";
export type {
  ProcessChange,
  ProcessChangePage,
  ProcessFeed,
} from "./stores/process/feed.ts";
export type {
  ProcessPruneOptions,
  ProcessPruneReport,
  ProcessPruning,
} from "./stores/process/pruning.ts";
export type {
  ProcessGrantDraft,
  ProcessSpawning,
  SpawnDraft,
  SpawnedProcessView,
} from "./stores/process/spawning.ts";
export type { ProcessDraft } from "./stores/process/new-process.ts";
export { registerProcess } from "./stores/process/register.ts";
export type {
  NewProcess,
  RegisteredProcess,
} from "./stores/process/register.ts";
export { appendProcessEvent } from "./stores/process/append-event.ts";
export type {
  AppendedProcessEvent,
  AppendProcessEvent,
  MaterialisedWake,
  ProcessEventPayload,
  WakePayload,
} from "./stores/process/append-event.ts";
export type { StoredProcessEvent } from "./stores/process/event-row.ts";
export {
  grantHandle,
  revokeHandle,
  transferHandles,
} from "./stores/process/grant.ts";
export type {
  GrantHandle,
  ProcessHandleDescriptor,
  RevokeHandle,
  TransferHandles,
} from "./stores/process/grant.ts";
export type {
  ProcessGrant,
  ProcessHandle,
} from "./stores/process/read-grants.ts";
export type {
  ProcessLease,
  ProcessLeaseOutcome,
} from "./stores/process/lease.ts";
export type { ProcessFilter } from "./stores/process/list.ts";
export type {
  SessionScopeName,
  SessionScopeRef,
} from "./stores/process/scope.ts";
export type { SessionProcesses } from "./stores/process/end-report.ts";
export { spawnProcess } from "./stores/process/spawn.ts";
export type { SpawnedProcess, SpawnProcess } from "./stores/process/spawn.ts";
export type { EndWakes } from "./stores/process/execution-end.ts";
export type { ProcessEventView, ProcessView } from "./stores/process/views.ts";
export { parseProcessId } from "./model/process-id.ts";
export type { ProcessId } from "./model/process-id.ts";
export { effects } from "./stores/effect/index.ts";
export type { Effects } from "./stores/effect/index.ts";
export type { EffectEnvironment } from "./stores/effect/environment.ts";
export type {
  EffectExecuteOptions,
  EffectExecution,
  EffectReplayOptions,
  EffectTransactOptions,
} from "./stores/effect/executing.ts";
export type { EffectBody } from "./stores/effect/transact.ts";
export type { EffectRetry, SeenEffectHolder } from "./stores/effect/checks.ts";
export type { EffectContext, EffectFunction } from "./stores/effect/running.ts";
export type {
  ClaimedEffect,
  ClaimEffectOptions,
  EffectClaims,
} from "./stores/effect/claiming.ts";
export type { EffectClaim } from "./stores/effect/claim.ts";
export type {
  EffectReads,
  EffectView,
  ForgetEffectsOptions,
} from "./stores/effect/reading.ts";
export type { EffectScope, EffectScopeRef } from "./stores/effect/scope.ts";
export type { EffectEnvelope } from "./model/effect-envelope.ts";
export { processEffects } from "./stores/effect/process-effects.ts";
export type { ProcessEffects } from "./stores/effect/process-effects.ts";
export type {
  CommandedProcess,
  ListedProcess,
  ListHeldProcessesOptions,
  ProcessCommandOptions,
  ProcessStartOptions,
} from "./stores/effect/process-commands.ts";
export { awaitEvents } from "./stores/await-event/index.ts";
export type { AwaitEvents } from "./stores/await-event/index.ts";
export type {
  AwaitAnswers,
  AwaitReply,
} from "./stores/await-event/answering.ts";
export type {
  Awaiting,
  OpenAwaitEventOptions,
} from "./stores/await-event/awaiting.ts";
export type {
  AwaitEvent,
  AwaitOverview,
  ForgetAwaitEventsOptions,
  ListAwaitEventsOptions,
  RevokeAwaitEventsOptions,
} from "./stores/await-event/overview.ts";
export { openAwaitEvent } from "./stores/await-event/open.ts";
export type {
  OpenAwaitEvent,
  OpenedAwaitEvent,
} from "./stores/await-event/open.ts";
export { effectGroups } from "./stores/effect-group/index.ts";
export type {
  EffectGroup,
  EffectGroups,
  EndedGroupMember,
  GroupAllAnswer,
  GroupMemberOutcome,
} from "./stores/effect-group/index.ts";
export type { GroupMemberDraft } from "./stores/effect-group/checks.ts";
export { schedules } from "./stores/schedule/index.ts";
export type {
  ScheduleEnvironment,
  Schedules,
} from "./stores/schedule/index.ts";
export type { CatchUpDraft, ScheduleDraft } from "./stores/schedule/checks.ts";
export type { DueInstant, FireSchedule } from "./stores/schedule/fire.ts";
export type { PutScheduleOutcome } from "./stores/schedule/put.ts";
export type {
  FiredInstant,
  ScheduleRunOptions,
  Scheduler,
  SchedulerOptions,
} from "./stores/schedule/scheduler.ts";
export { triggers } from "./stores/trigger/index.ts";
export type { Triggers } from "./stores/trigger/index.ts";
export type { SchedulePayload } from "./stores/trigger/fire.ts";
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
  ListSubscriptionsOptions,
  ReviseSubscriptionOptions,
  SubscriptionDraft,
  Subscriptions,
} from "./stores/trigger/subscribing.ts";
export type { AwaitEnd, AwaitOutcome } from "./model/await-event.ts";
export type { AwaitEventId, SignedEvent } from "./model/await-token.ts";
export type { AwaitPlace, AwaitScope } from "./stores/await-event/event-row.ts";
export type { Cadence, CadenceDraft } from "./model/schedule-cadence.ts";
export type { CatchUp, SkippedInstants } from "./model/schedule-plan.ts";
export type { EffectFence, EffectHolder } from "./model/effect.ts";
export type { EffectSummary } from "./stores/effect/read.ts";
export type { EffectRef } from "./stores/effect/effect-row.ts";
export type { GroupKind } from "./model/effect-group.ts";
export type {
  NamedScope,
  RegistrationIdentity,
  RegistrationPart,
  RegistrationPartHashes,
} from "./model/process-registration.ts";
export type {
  Occurrence,
  TriggerDelivery,
  TriggerDeliveryRefusal,
} from "./stores/trigger/occurrence-row.ts";
export type {
  ProcessDisposition,
  ProcessEventFacts,
  ProcessIdentity,
  ProcessOrigin,
  ProcessRecord,
  ProcessRecovery,
  ProcessState,
  ProcessStatus,
  ProcessSummary,
  ProcessWait,
  ProcessWake,
  ProcessRegistration,
  SessionScope,
  WakeDelivery,
} from "./model/process.ts";
export type { ProcessEnd, ProcessOutput } from "./model/process-output.ts";
export type {
  ProcessEventType,
  TerminalSpec,
  WakeSpec,
} from "./model/process-event-type.ts";
export type {
  ReviseOutcome,
  SubscribeOutcome,
} from "./stores/trigger/subscribe.ts";
export type {
  Schedule,
  ScheduleName,
  ScheduleTerms,
} from "./stores/schedule/schedule-row.ts";
export type { Subscription } from "./stores/trigger/subscription-row.ts";
export type {
  KeptTriggerSource,
  SubscriptionContent,
  SubscriptionTerms,
  TriggerSourceDraft,
  TriggerTarget,
} from "./stores/trigger/content.ts";
export type { SubscriptionName } from "./stores/trigger/checks.ts";
export type {
  Registrant,
  TriggerArgument,
  TriggerSource,
} from "./model/trigger.ts";
export type { UnstartedDelivery } from "./stores/trigger/unstarted.ts";
export type { PayloadSchema, SchemaType } from "./model/payload-schema.ts";
export type { PayloadSelector } from "./model/selector.ts";
export { sessionCodec } from "./stores/session/session-codec.ts";
export type { SessionCodec } from "./stores/session/session-codec.ts";
export type { Turn } from "./stores/session/turn-prepared.ts";
