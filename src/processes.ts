export type {
  ProcessEventType,
  TerminalSpec,
  WakeSpec,
} from "./model/process-event-type.ts";
export { parseProcessId } from "./model/process-id.ts";
export type { ProcessId } from "./model/process-id.ts";
export type { ProcessEnd, ProcessOutput } from "./model/process-output.ts";
export type {
  NamedScope,
  RegistrationIdentity,
  RegistrationPart,
  RegistrationPartHashes,
} from "./model/process-registration.ts";
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
export { appendProcessEvent } from "./stores/process/append-event.ts";
export type {
  AppendedProcessEvent,
  AppendProcessEvent,
  MaterialisedWake,
  ProcessEventPayload,
  WakePayload,
} from "./stores/process/append-event.ts";
export type {
  AppendedProcessEventView,
  ProcessCancelOptions,
  ProcessCommands,
  ProcessEventDraft,
  ProcessFenceOptions,
  ProcessSignalOptions,
} from "./stores/process/commands.ts";
export type { ProcessCodec } from "./stores/process/context.ts";
export type { SessionProcesses } from "./stores/process/end-report.ts";
export type { StoredProcessEvent } from "./stores/process/event-row.ts";
export type { EndWakes } from "./stores/process/execution-end.ts";
export type {
  ProcessChange,
  ProcessChangePage,
  ProcessFeed,
} from "./stores/process/feed.ts";
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
  ListHandlesOptions,
  ProcessHandleDraft,
  ProcessHandles,
} from "./stores/process/handles.ts";
export type { ProcessLease } from "./stores/process/lease.ts";
export type {
  ProcessLeases,
  ProcessWorklistOptions,
  RecoverableProcess,
} from "./stores/process/leasing.ts";
export type { ProcessFilter } from "./stores/process/list.ts";
export type { ProcessDraft } from "./stores/process/new-process.ts";
export type {
  ProcessExternalRef,
  ProcessNotes,
} from "./stores/process/noting.ts";
export { processes } from "./stores/process/processes.ts";
export type { Processes } from "./stores/process/processes.ts";
export type {
  ProcessPruneOptions,
  ProcessPruneReport,
  ProcessPruning,
} from "./stores/process/pruning.ts";
export type {
  ProcessGrant,
  ProcessHandle,
} from "./stores/process/read-grants.ts";
export type {
  ListProcessesOptions,
  ListProcessEventsOptions,
  ProcessEventPage,
  ProcessReads,
} from "./stores/process/reading.ts";
export { registerProcess } from "./stores/process/register.ts";
export type {
  NewProcess,
  RegisteredProcess,
} from "./stores/process/register.ts";
export type {
  SessionScopeName,
  SessionScopeRef,
} from "./stores/process/scope.ts";
export { spawnProcess } from "./stores/process/spawn.ts";
export type { SpawnedProcess, SpawnProcess } from "./stores/process/spawn.ts";
export type {
  ProcessGrantDraft,
  ProcessSpawning,
  SpawnDraft,
  SpawnedProcessView,
} from "./stores/process/spawning.ts";
export type { ProcessEventView, ProcessView } from "./stores/process/views.ts";
export type {
  AwaitedProcessEvent,
  ProcessWaits,
} from "./stores/process/waiting.ts";
