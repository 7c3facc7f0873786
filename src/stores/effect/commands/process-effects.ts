import type { ProcessOutput } from "../../../model/process/output.ts";
import type { Database } from "../../../sql/database.ts";
import type { Page } from "../../list.ts";
import type { ProcessCancelOptions, ProcessSignalOptions } from "../../process/context.ts";
import type { ProcessDraft, SessionScopeName } from "../../process/parts.ts";
import type { RemovalReport } from "../../session/parts.ts";
import type { SessionName } from "../../session-name.ts";
import type { EffectOptions } from "../context.ts";
import type { EffectScope } from "../scope.ts";
import {
  cancelProcess,
  commandContext,
  listProcesses,
  signalProcess,
  startProcess,
  transferProcesses,
  type CommandedProcess,
  type ListedProcess,
  type ListHeldProcessesOptions,
  type ProcessCommandOptions,
  type ProcessStartOptions,
} from "./process-commands.ts";
import { awaitProcess, deleteSessionOf } from "./process-ends.ts";

/**
 * Commands to processes as effects. A scope that is run again gets the results of the first run,
 * and no process is started, asked to stop or signalled twice. The change of a command and its record
 * are one transaction. A refusal is recorded too. All commands throw the errors of
 * `effects.transact`, such as `EFFECT_CONFLICT`, and in strict replay `EFFECT_NOT_RECORDED`.
 */
export interface ProcessEffects {
  /**
   * Registers a process and grants a handle, both or neither.
   * @throws HoldfastError `PROCESS_CONFLICT`, `PROCESS_INVALID`, `SESSION_NOT_FOUND`,
   *   `SESSION_DELETED`
   * @example await commands.start(turn, { id: "build-7", kind: "tool" }, { grant: "chat-7" });
   */
  start(
    scope: EffectScope,
    draft: ProcessDraft,
    options?: ProcessStartOptions,
  ): Promise<{ readonly id: string; readonly existed: boolean }>;
  /**
   * Lists a page of the processes that a session, or one frame of it, can address: the running
   * ones, or all. Later calls return the page of the first call.
   *
   * @throws HoldfastError `CURSOR_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  list(
    scope: EffectScope,
    holder: SessionScopeName,
    options?: ListHeldProcessesOptions,
  ): Promise<Page<ListedProcess>>;
  /**
   * Moves up to 1,000 handles from one session to another: all of them, or none.
   * @throws HoldfastError `HANDLE_NOT_GRANTED`, `PROCESS_NOT_FOUND`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  transfer(
    scope: EffectScope,
    from: SessionScopeName,
    to: SessionScopeName,
    processes: readonly string[],
    options?: ProcessCommandOptions,
  ): Promise<void>;
  /**
   * Resolves with the output of a process as soon as it ends. No claim, lock or connection is held
   * while waiting.
   *
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `ABORTED`, `DEADLINE_EXCEEDED`
   */
  waitForEnd(
    scope: EffectScope,
    process: string,
    options?: ProcessCommandOptions,
  ): Promise<ProcessOutput>;
  /** Asks a process to stop. @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `NAME_INVALID` */
  cancel(
    scope: EffectScope,
    process: string,
    options?: ProcessCommandOptions & ProcessCancelOptions,
  ): Promise<CommandedProcess>;
  /**
   * Sends a signal; the key identifies the signal for its sender.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `EVENT_TYPE_UNDECLARED`,
   *   `EVENT_PAYLOAD_INVALID`, `REPLAY_KEY_CONFLICT`, `NAME_INVALID`
   * @example await commands.signal(turn, "build-7", "go", { fast: true }, { key: "go-1" });
   */
  signal(
    scope: EffectScope,
    process: string,
    name: string,
    payload: unknown,
    options: ProcessCommandOptions & ProcessSignalOptions,
  ): Promise<CommandedProcess>;
  /**
   * Deletes a session, and reports its processes: the first 500 of either kind by id, with
   * `hasMore` when there were others. The scope must not belong to the session, since its effects
   * are removed with the session. Without a generation, the one that lives at the first call is
   * deleted. A repeated call means that same generation, even if another one was created since.
   *
   * @throws HoldfastError `EFFECT_SCOPE_INVALID`
   */
  deleteSession(
    scope: EffectScope,
    session: SessionName,
    options?: ProcessCommandOptions,
  ): Promise<RemovalReport>;
}

/** Holds only subscriptions, so a database may have any number of them. */
export function processEffects(database: Database, options?: EffectOptions): ProcessEffects {
  const context = commandContext(database, options);
  return {
    start: async (scope, draft, given) => startProcess(context, scope, draft, given),
    list: async (scope, holder, given) => listProcesses(context, scope, holder, given),
    transfer: async (scope, from, to, processes, given) =>
      transferProcesses(context, scope, [from, to, processes], given),
    waitForEnd: async (scope, process, given) => awaitProcess(context, scope, process, given),
    cancel: async (scope, process, given) => cancelProcess(context, scope, process, given),
    signal: async (scope, process, name, payload, given) =>
      signalProcess(context, scope, process, { name, payload }, given),
    deleteSession: async (scope, session, given) => deleteSessionOf(context, scope, session, given),
  };
}
