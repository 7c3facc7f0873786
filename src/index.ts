export type {} from "./kernel.ts";
export { HoldfastError, isHoldfastError } from "./model/errors.ts";
export type { ErrorCode, ErrorDetails } from "./model/errors.ts";
export { isRunFailedError, RunFailedError } from "./model/run-failed-error.ts";
export { openHoldfast } from "./open/open-holdfast.ts";
export type { HoldfastOptions } from "./open/open-holdfast.ts";
export type { ActivityContext } from "./runtime/activity-context.ts";
export { activity, signal, workflow } from "./runtime/definitions.ts";
export type {
  Activity,
  ActivityOptions,
  DurableFunction,
  Signal,
  Workflow,
  WorkflowOptions,
} from "./runtime/definitions.ts";
export { NonRetryableError } from "./runtime/failures.ts";
export type {
  CloseOptions,
  Holdfast,
  WorkOptions,
} from "./runtime/holdfast.ts";
export type { Run } from "./runtime/run-handle.ts";
export type { RuntimeEvent } from "./runtime/runtime-event.ts";
export type {
  Child,
  External,
  JoinSet,
  RunLog,
  StartOptions,
  StepContext,
  StepOptions,
  WorkflowContext,
} from "./runtime/workflow-context.ts";
