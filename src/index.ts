export type {} from "./kernel.ts";
export { HoldfastError, isHoldfastError } from "./model/errors.ts";
export type { ErrorCode, ErrorDetails } from "./model/errors.ts";
export { isRunFailedError, RunFailedError } from "./model/run-failed-error.ts";
export { openHoldfast } from "./open/open-holdfast.ts";
export type { HoldfastOptions } from "./open/open-holdfast.ts";
export type { ActivityContext } from "./runtime/definition/activity-context.ts";
export { activity, signal, workflow } from "./runtime/definition/definitions.ts";
export type {
  Activity,
  ActivityOptions,
  DurableFunction,
  Signal,
  Workflow,
  WorkflowOptions,
} from "./runtime/definition/definitions.ts";
export { NonRetryableError } from "./runtime/failures.ts";
export type { CloseOptions, Holdfast, WorkOptions } from "./runtime/client/holdfast.ts";
export type { RunHistory } from "./runtime/history/run-history.ts";
export type { Run } from "./runtime/client/run-handle.ts";
export type { RuntimeEvent } from "./runtime/runtime-event.ts";
export type { RunSchedules } from "./runtime/schedules/run-schedules.ts";
export { schedule } from "./runtime/schedules/schedule.ts";
export type { ScheduledFunction, ScheduleOptions } from "./runtime/schedules/schedule.ts";
export type {
  Child,
  External,
  ExternalOptions,
  JoinSet,
  RunLog,
  StartOptions,
  StepContext,
  StepOptions,
  TransactionOptions,
  WorkflowContext,
} from "./runtime/definition/workflow-context.ts";
export type { AnswerReply } from "./stores/execution/control/resolve.ts";
export type { Question } from "./stores/execution/read/questions.ts";
export type { RunSchedule } from "./stores/schedule/runs/list.ts";
