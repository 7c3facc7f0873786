export { delayId, parseDelayId } from "./model/delay-id.ts";
export type { DelayId } from "./model/delay-id.ts";
export type { ExecutionCodec } from "./model/execution-codec.ts";
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
export { childId, parseExecutionId } from "./model/execution-id.ts";
export type { ExecutionId } from "./model/execution-id.ts";
export type {
  BlockedOn,
  ExecutionState,
  Lifecycle,
  PendingState,
} from "./model/execution-state.ts";
export type { ExecutionStatus } from "./model/execution-status.ts";
export { parseFunctionName } from "./model/function-name.ts";
export type { FunctionName } from "./model/function-name.ts";
export type { GivenEvent } from "./model/given-event.ts";
export type { HistoryEvent, HistoryFact } from "./model/history-event.ts";
export {
  generatedJoinSet,
  namedJoinSet,
  oneOffJoinSet,
} from "./model/join-set-id.ts";
export type { JoinSetId } from "./model/join-set-id.ts";
export type { ExecutionResult } from "./model/result.ts";
export type { RetryPolicy } from "./model/retry-policy.ts";
export { executionCodec } from "./stores/execution/context.ts";
export type { Finished, StoreEnvironment } from "./stores/execution/context.ts";
export type {
  CancellingExecution,
  CancellingOptions,
} from "./stores/execution/control/cancelling.ts";
export type {
  ExecutionControls,
  SignalTaken,
} from "./stores/execution/control/controls.ts";
export { requestCancellation } from "./stores/execution/control/lifecycle.ts";
export type {
  CancellationOutcome,
  Changed,
  RequestCancellation,
} from "./stores/execution/control/lifecycle.ts";
export { resolveExternal } from "./stores/execution/control/resolve.ts";
export type { ResolveExternal } from "./stores/execution/control/resolve.ts";
export {
  receiveSignal,
  sendSignal,
} from "./stores/execution/control/signals.ts";
export type {
  ReceiveSignal,
  ReceivedSignal,
  SendSignal,
  SendSignalOutcome,
} from "./stores/execution/control/signals.ts";
export { executions } from "./stores/execution/executions.ts";
export type { Executions } from "./stores/execution/executions.ts";
export { forkExecution } from "./stores/execution/fork/fork.ts";
export type {
  ForkExecution,
  ForkOutcome,
} from "./stores/execution/fork/fork.ts";
export { extendLock, lockExecution } from "./stores/execution/lock/lock.ts";
export type {
  Extended,
  LockOne,
  LockTerms,
  LockedExecution,
} from "./stores/execution/lock/lock.ts";
export type {
  ExecutionLocks,
  Locked,
  LockOptions,
  LockPendingOptions,
} from "./stores/execution/lock/locking.ts";
export type {
  FunctionLimits,
  LimitedFunction,
} from "./stores/execution/lock/places.ts";
export { appendEvents } from "./stores/execution/log/append.ts";
export type {
  AppendEvents,
  AppendOutcome,
} from "./stores/execution/log/append.ts";
export type {
  AppendOptions,
  ExecutionCommands,
} from "./stores/execution/log/commands.ts";
export { createExecution } from "./stores/execution/log/create.ts";
export type {
  CreateOutcome,
  NewExecution,
} from "./stores/execution/log/create.ts";
export type { CreateOptions } from "./stores/execution/log/new-execution.ts";
export type {
  BacktraceDraft,
  BacktraceView,
  WhichBacktrace,
} from "./stores/execution/read/backtraces.ts";
export type {
  CountOptions,
  CountProgress,
  ExecutionCount,
  ExecutionCounts,
} from "./stores/execution/read/counts.ts";
export type {
  ListedEvent,
  ListEventsOptions,
} from "./stores/execution/read/events.ts";
export type {
  ListExecutionsOptions,
  ListPlace,
} from "./stores/execution/read/list-filter.ts";
export type {
  ListLogsOptions,
  LogEntry,
  LogLevel,
  LogLine,
} from "./stores/execution/read/logs.ts";
export type { ExecutionView } from "./stores/execution/read/read.ts";
export type { ListResponsesOptions } from "./stores/execution/read/responses.ts";
export type { ExecutionSummary } from "./stores/execution/read/summary.ts";
export type {
  RetentionPolicy,
  RetentionReport,
} from "./stores/execution/retention.ts";
export { answerDelay } from "./stores/execution/timers/delays.ts";
export type {
  AnswerDelay,
  AnswerDelayOutcome,
} from "./stores/execution/timers/delays.ts";
export type {
  ExecutionTimers,
  ExpireOptions,
  ExpireReport,
  ReleaseReport,
} from "./stores/execution/timers/expiring.ts";
