export type {} from "./kernel.ts";
export { delayId } from "./model/ids/delay-id.ts";
export type { DelayId } from "./model/ids/delay-id.ts";
export type {
  Created,
  ExecutionEvent,
  ExecutionResponse,
  ExecutionRole,
  Holder,
  LoggedEvent,
  LoggedResponse,
} from "./model/execution/event.ts";
export { childId, parseExecutionId } from "./model/ids/execution-id.ts";
export type { ExecutionId } from "./model/ids/execution-id.ts";
export type { ExecutionState, Lifecycle, PendingState } from "./model/execution/state.ts";
export type { ExecutionStatus } from "./model/execution/status.ts";
export { parseFunctionName } from "./model/ids/function-name.ts";
export type { FunctionName } from "./model/ids/function-name.ts";
export type { ComparedCall, Mismatch } from "./model/execution/mismatch.ts";
export type { GivenEvent } from "./model/execution/given-event.ts";
export { generatedJoinSet, namedJoinSet, oneOffJoinSet } from "./model/ids/join-set-id.ts";
export type { JoinSetId } from "./model/ids/join-set-id.ts";
export type { ExecutionResult, RecordedResult } from "./model/execution/result.ts";
export type { RetryPolicy } from "./model/time/retry-policy.ts";
export type { Fence } from "./stores/execution/checks.ts";
export type { CancellingExecution } from "./stores/execution/control/cancelling.ts";
export type { AnswerReply } from "./stores/execution/control/resolve.ts";
export { executions } from "./stores/execution/executions.ts";
export type { Executions } from "./stores/execution/executions.ts";
export type { LockOptions } from "./stores/execution/lock/terms.ts";
export type {
  LockPendingOptions,
  LockPendingOutcome,
} from "./stores/execution/lock/lock-pending.ts";
export type { LoadedExecution, LockedExecution } from "./stores/execution/lock/locked.ts";
export type { FunctionDraft } from "./stores/execution/lock/limits.ts";
export type { AppendOptions } from "./stores/execution/log/append.ts";
export type { AppendOutcome } from "./stores/execution/log/append-to.ts";
export type { CreatedExecution, ExecutionDraft } from "./stores/execution/log/create.ts";
export type { BacktraceView } from "./stores/execution/read/backtraces.ts";
export type { ExecutionCounts } from "./stores/execution/read/counts.ts";
export type { ListExecutionsOptions } from "./stores/execution/read/list-filter.ts";
export type { LogEntry, LogLine } from "./stores/execution/read/logs.ts";
export type { Question } from "./stores/execution/read/questions.ts";
export type { ExecutionView } from "./stores/execution/read/read.ts";
export type { ExecutionSummary } from "./stores/execution/read/summary.ts";
export type { RetentionPolicy, RetentionReport } from "./stores/execution/removal/retention.ts";
export type { ExpireReport } from "./stores/execution/timers/expire-timers.ts";
export type { ReleaseReport } from "./stores/execution/timers/release.ts";
