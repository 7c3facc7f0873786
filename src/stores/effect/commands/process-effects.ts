import type { ProcessOutput } from "../../../model/process-output.ts";
import { givenObject, optionsOf } from "../../../model/shape.ts";
import type { Database } from "../../../sql/database.ts";
import type {
  ProcessCancelOptions,
  ProcessSignalOptions,
} from "../../process/context.ts";
import type { ProcessDraft, SessionScopeName } from "../../process/parts.ts";
import { processes as processesIn } from "../../process/processes.ts";
import { storeContext } from "../../context.ts";
import type { StoreOptions } from "../../context.ts";
import type { RemovalReport } from "../../session/parts.ts";
import type { SessionName } from "../../session/session-name.ts";
import { waitNames } from "../../given.ts";
import type { Page } from "../../list.ts";
import type { EffectOptions } from "../context.ts";
import { effects } from "../effects.ts";
import {
  cancelProcess,
  listProcesses,
  signalProcess,
  startProcess,
  transferProcesses,
} from "./process-commands.ts";
import type {
  CommandedProcess,
  ProcessCommandOptions,
  ListedProcess,
  ListHeldProcessesOptions,
  ProcessStartOptions,
} from "./process-commands.ts";
import { awaitProcess, deleteSessionOf } from "./process-ends.ts";
import type { EffectScope } from "../scope.ts";

/**
 * Commands to processes as effects: whoever runs a scope again gets what the
 * first run got, and no process is started, asked to stop or signalled twice.
 * What a command changes and the record of it are one transaction.
 */
export interface ProcessEffects {
  /**
   * Registers a process and grants a handle, both or neither.
   * @throws HoldfastError `PROCESS_CONFLICT`, `PROCESS_INVALID`, `EFFECT_CONFLICT`, `SESSION_NOT_FOUND`, `SESSION_DELETED` …
   * @example await commands.start(turn, { id: "build-7", kind: "tool" }, { grant: "chat-7" });
   */
  start(
    scope: EffectScope,
    draft: ProcessDraft,
    options?: ProcessStartOptions,
  ): Promise<{ readonly id: string; readonly existed: boolean }>;
  /** A page of the processes that a session, or one frame of it, can address: those that run, or all. What cannot be read is named. */
  list(
    scope: EffectScope,
    holder: SessionScopeName,
    options?: ListHeldProcessesOptions,
  ): Promise<Page<ListedProcess>>;
  /** Moves at most 1,000 handles from one session to another: all of them, or none. */
  transfer(
    scope: EffectScope,
    from: SessionScopeName,
    to: SessionScopeName,
    processes: readonly string[],
    options?: ProcessCommandOptions,
  ): Promise<void>;
  /** What a process ends with, as soon as it does. Nobody holds anything meanwhile. */
  waitForEnd(
    scope: EffectScope,
    process: string,
    options?: ProcessCommandOptions,
  ): Promise<ProcessOutput>;
  /** Asks a process to stop. */
  cancel(
    scope: EffectScope,
    process: string,
    options?: ProcessCommandOptions & ProcessCancelOptions,
  ): Promise<CommandedProcess>;
  /** Sends a signal; its key names it for its sender. */
  signal(
    scope: EffectScope,
    process: string,
    name: string,
    payload: unknown,
    options: ProcessCommandOptions & ProcessSignalOptions,
  ): Promise<CommandedProcess>;
  /**
   * Deletes a session, and reports what became of its processes: the first 500
   * of either kind by id, and `hasMore` when there were others. In a scope that
   * does not belong to it, since its effects go with it. Without a generation
   * the one is meant that lives when it is first called, also when it is called
   * again after another was created.
   */
  deleteSession(
    scope: EffectScope,
    session: SessionName,
    options?: ProcessCommandOptions,
  ): Promise<RemovalReport>;
}

const commandNames = [...waitNames, "call"] as const;

export function processEffects(
  database: Database,
  given?: EffectOptions,
): ProcessEffects {
  const store = effects(database, given);
  const environment = given ?? {};
  const own = storeOptionsOf(environment);
  const commander = {
    ...storeContext(database, own),
    processes: processesIn(database, own),
    environment,
    store,
  };
  return {
    start: async (scope, draft, options) =>
      startProcess(
        commander,
        scope,
        draft,
        optionsOf(options, [...commandNames, "grant", "descriptor"]),
      ),
    list: async (scope, holder, options) =>
      listProcesses(
        commander,
        scope,
        holder,
        optionsOf(options, [...commandNames, "live", "after", "limit"]),
      ),
    transfer: async (scope, from, to, processes, options) =>
      transferProcesses(
        commander,
        scope,
        { from, to, processes },
        optionsOf(options, commandNames),
      ),
    waitForEnd: async (scope, process, options) =>
      awaitProcess(commander, scope, process, optionsOf(options, commandNames)),
    cancel: async (scope, process, options) =>
      cancelProcess(
        commander,
        scope,
        process,
        optionsOf(options, [...commandNames, "reason"]),
      ),
    signal: async (scope, process, name, payload, options) =>
      signalProcess(
        commander,
        scope,
        { process, name, payload },
        optionsOf(givenObject("options", options), [...commandNames, "key"]),
      ),
    deleteSession: async (scope, session, options) =>
      deleteSessionOf(
        commander,
        scope,
        session,
        optionsOf(options, commandNames),
      ),
  };
}

/** What every store takes of the options of effects. */
function storeOptionsOf({
  clock,
  entropy,
  payload,
  valueLimits,
}: EffectOptions): StoreOptions {
  return {
    ...(clock && { clock }),
    ...(entropy && { entropy }),
    ...(payload && { payload }),
    ...(valueLimits && { valueLimits }),
  };
}
