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
  CallInput,
  CallOutput,
  Callee,
  ChangeHint,
  Database,
  Durability,
  Latency,
  Liveness,
  Stats,
  WaitOptions,
  Warning,
} from "./stores/database.ts";
export type { Clock } from "./model/clock.ts";
export type { Duration } from "./model/durations.ts";
export type { DeploymentId, OwnerId } from "./model/prefixed-id.ts";
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
export { extendLock, lockExecution } from "./stores/execution/lock.ts";
export type {
  CancellationOutcome,
  Changed,
  Finished,
  RequestCancellation,
} from "./stores/execution/lifecycle.ts";
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
export type { ExecutorId, RunId } from "./model/prefixed-id.ts";
export type { Entropy } from "./model/entropy.ts";
export type { GivenEvent } from "./model/given-event.ts";
export type { ValueLimits } from "./model/value-limits.ts";
export type { Damaged, Sifted } from "./stores/execution/damaged.ts";
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
