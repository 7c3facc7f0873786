export type {
  ProcessEventType,
  TerminalSpec,
  WakeSpec,
} from "./model/process/event-type.ts";
export type { ProcessId } from "./model/ids/process-id.ts";
export type { ProcessEnd, ProcessOutput } from "./model/process/output.ts";
export type {
  ProcessDisposition,
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
} from "./model/process/process.ts";
export type {
  ProcessEventDraft,
  ProcessFenceOptions,
} from "./stores/process/append.ts";
export type {
  AppendedProcessEvent,
  ProcessCancelOptions,
  ProcessEventView,
  ProcessSignalOptions,
  ProcessView,
} from "./stores/process/context.ts";
export type { WakePayload } from "./stores/process/declared.ts";
export type {
  ProcessGrant,
  ProcessHandle,
} from "./stores/process/grant-row.ts";
export type { ListHandlesOptions } from "./stores/process/grants.ts";
export type { ProcessLease } from "./stores/process/lease.ts";
export type {
  ListProcessesOptions,
  ProcessChange,
  ProcessWorklistOptions,
  RecoverableProcess,
} from "./stores/process/list.ts";
export type { ProcessExternalRef } from "./stores/process/notes.ts";
export type {
  ProcessDraft,
  ProcessHandleDraft,
  SessionScopeName,
} from "./stores/process/parts.ts";
export { processes } from "./stores/process/processes.ts";
export type { Processes } from "./stores/process/processes.ts";
export type { ProcessPruneReport } from "./stores/process/prune.ts";
export type { ListProcessEventsOptions } from "./stores/process/read.ts";
export type { SpawnDraft, SpawnedProcess } from "./stores/process/register.ts";
export type { RegisteredProcess } from "./stores/process/registration-row.ts";
export type { SessionProcesses } from "./stores/process/session-end-row.ts";
export type { AwaitedProcessEvent } from "./stores/process/wait.ts";
