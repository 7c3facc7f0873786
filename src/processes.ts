export type {} from "./executions.ts";
export type {} from "./kernel.ts";
export type {} from "./sessions.ts";
export type { ProcessEventType } from "./model/process/event-type.ts";
export type { ProcessId } from "./model/ids/process-id.ts";
export type { ProcessOutput } from "./model/process/output.ts";
export type { ProcessStatus, ProcessSummary, ProcessWait } from "./model/process/process.ts";
export type { ProcessEventDraft } from "./stores/process/append.ts";
export type {
  AppendedProcessEvent,
  ProcessEventView,
  ProcessView,
} from "./stores/process/context.ts";
export type { WakePayload } from "./stores/process/declared.ts";
export type { ProcessGrant, ProcessHandle } from "./stores/process/grant-row.ts";
export type { ProcessLease } from "./stores/process/lease.ts";
export type { ProcessChange, RecoverableProcess } from "./stores/process/list.ts";
export type { ProcessExternalRef } from "./stores/process/notes.ts";
export type { ProcessDraft, SessionScopeName } from "./stores/process/parts.ts";
export { processes } from "./stores/process/processes.ts";
export type { Processes } from "./stores/process/processes.ts";
export type { SpawnDraft, SpawnedProcess } from "./stores/process/register.ts";
export type { RegisteredProcess } from "./stores/process/registration-row.ts";
