export { delayId, parseDelayId } from "./model/ids/delay-id.ts";
export type { DelayId } from "./model/ids/delay-id.ts";
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
} from "./model/execution/event.ts";
export { childId, parseExecutionId } from "./model/ids/execution-id.ts";
export type { ExecutionId } from "./model/ids/execution-id.ts";
export type {
  BlockedOn,
  ExecutionState,
  Lifecycle,
  PendingState,
} from "./model/execution/state.ts";
export type { ExecutionStatus } from "./model/execution/status.ts";
export { parseFunctionName } from "./model/ids/function-name.ts";
export type { FunctionName } from "./model/ids/function-name.ts";
export type { GivenEvent } from "./model/execution/given-event.ts";
export type {
  HistoryEvent,
  HistoryFact,
} from "./model/execution/history-event.ts";
export {
  generatedJoinSet,
  namedJoinSet,
  oneOffJoinSet,
} from "./model/ids/join-set-id.ts";
export type { JoinSetId } from "./model/ids/join-set-id.ts";
export type { ExecutionResult } from "./model/execution/result.ts";
export type { RetryPolicy } from "./model/time/retry-policy.ts";
export type { Fence } from "./stores/execution/checks.ts";
export type {
  CancellingExecution,
  CancellingOptions,
} from "./stores/execution/control/cancelling.ts";
export type {
  CancellationOutcome,
  CancelOptions,
  Changed,
} from "./stores/execution/control/lifecycle.ts";
export type {
  ReceivedSignal,
  ReceiveOptions,
  SendSignalOutcome,
  SignalOptions,
} from "./stores/execution/control/signals.ts";
export type { ExecutionReads } from "./stores/execution/execution-reads.ts";
export { executions } from "./stores/execution/executions.ts";
export type { Executions } from "./stores/execution/executions.ts";
export type { ForkOptions, ForkOutcome } from "./stores/execution/fork/fork.ts";
export type {
  CreateLockedOutcome,
  Extended,
  LockOptions,
  UnlockOptions,
} from "./stores/execution/lock/lock.ts";
export type {
  LockPendingOptions,
  LockPendingOutcome,
} from "./stores/execution/lock/lock-pending.ts";
export type { LockedExecution } from "./stores/execution/lock/locked.ts";
export type {
  FunctionDraft,
  FunctionLimits,
} from "./stores/execution/lock/places.ts";
export type {
  AppendOptions,
  AppendOutcome,
  FinishOptions,
} from "./stores/execution/log/append.ts";
export type {
  CreateOutcome,
  ExecutionDraft,
} from "./stores/execution/log/create.ts";
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
export type { AnswerDelayOutcome } from "./stores/execution/timers/delays.ts";
export type {
  ExpireOptions,
  ExpireReport,
  TimerWaitOptions,
} from "./stores/execution/timers/expire.ts";
export type { ReleaseReport } from "./stores/execution/timers/release.ts";
