import { coreTypes } from "../../../model/process/event-type.ts";
import { signalType, type ProcessStatus } from "../../../model/process/process.ts";
import { checkedText, givenObject } from "../../../model/shape.ts";
import type { Database, WaitOptions, WriteOptions } from "../../../sql/database.ts";
import type { Tx } from "../../../sql/operation.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../../context.ts";
import type { Page, PageOptions } from "../../list.ts";
import { optionsAndWait } from "../../method.ts";
import type {
  AppendedProcessEvent,
  ProcessCancelOptions,
  ProcessSignalOptions,
} from "../../process/context.ts";
import { eventHash } from "../../process/event-row.ts";
import { grant as grantHandle, type ProcessHandle } from "../../process/grant-row.ts";
import { handleList } from "../../process/handle-row.ts";
import {
  checkedDescriptor,
  namedParts,
  newProcess,
  scopeNamed,
  type ProcessDraft,
  type ProcessHandleDraft,
  type SessionScopeName,
} from "../../process/parts.ts";
import { processes, type Processes } from "../../process/processes.ts";
import { register } from "../../process/registration-row.ts";
import { sessions, type Sessions } from "../../session/sessions.ts";
import type { EffectOptions } from "../context.ts";
import { effects, type Effects } from "../effects.ts";
import type { EffectScope } from "../scope.ts";

export interface ProcessCommandOptions extends WaitOptions {
  /**
   * Distinguishes equal commands of one scope, such as two lists. Without it the second command is
   * a repetition of the first.
   */
  readonly call?: string;
}

export interface ProcessStartOptions extends ProcessCommandOptions {
  /** The session, or frame of a session, that may address the process from the start. */
  readonly grant?: SessionScopeName;
  /** The descriptor of the handle that is granted. */
  readonly descriptor?: ProcessHandleDraft;
}

/** A process in a recorded list. */
export interface ListedProcess {
  readonly id: string;
  readonly kind: string;
  readonly label: string | null;
  readonly status: ProcessStatus;
}

export interface ListHeldProcessesOptions
  extends ProcessCommandOptions, Omit<PageOptions, keyof WaitOptions> {
  /** Selects only running processes. */
  readonly live?: boolean;
}

/** The effect of a command on a process. */
export interface CommandedProcess {
  readonly process: string;
  /** The sequence of the event that recorded the command. */
  readonly sequence: number;
  readonly status: ProcessStatus;
}

/** The context of commands. */
export interface CommandContext extends StoreContext {
  readonly effects: Effects;
  readonly processes: Processes;
  readonly sessions: Sessions;
  readonly isStrict: boolean;
}

export function commandContext(
  database: Database,
  given: EffectOptions | undefined,
): CommandContext {
  const store = effects(database, given);
  const { replayOnly = false, lease: _, ...options } = given ?? {};
  const shared: StoreOptions = options;
  return {
    ...storeContext(database, shared),
    effects: store,
    processes: processes(database, shared),
    sessions: sessions(database, shared),
    isStrict: replayOnly,
  };
}

/** Runs a command's body as `readCommitted`, since our own bodies lock the rows they decide by. */
export function ownBody(wait: WaitOptions): WriteOptions {
  return { ...wait, isolation: "readCommitted" };
}

/** Registers a process and grants its handle, in the transaction that records the command. */
export async function startProcess(
  context: CommandContext,
  scope: EffectScope,
  draft: ProcessDraft,
  given?: ProcessStartOptions,
): Promise<{ readonly id: string; readonly existed: boolean }> {
  const { options, wait } = optionsAndWait(given, ["call", "grant", "descriptor"]);
  const { grant, descriptor = {} } = options;
  const input = newProcess(context.codec, draft, context.clock.now());
  const { id, at, identified } = input;
  const holder = grant === undefined ? undefined : scopeNamed(grant);
  const called = checkedDescriptor(descriptor);
  const envelope = {
    kind: "process.start",
    input: {
      process: id,
      parts: identified.parts,
      grant: holder === undefined ? null : { ...namedParts(holder), called },
    },
  };
  return context.effects.transact(
    scope,
    commandKey(context, options, "start", id),
    envelope,
    function* () {
      const { existed, record } = yield* register(input);
      // A pruned process is only a tombstone, so no session can have a handle of it.
      if (holder !== undefined && record.prunedAt === null)
        yield* grantHandle({
          process: id,
          scope: holder,
          descriptor: called,
          at,
        });
      return { id, existed };
    },
    ownBody(wait),
  );
}

export async function listProcesses(
  context: CommandContext,
  scope: EffectScope,
  holder: SessionScopeName,
  given?: ListHeldProcessesOptions,
): Promise<Page<ListedProcess>> {
  const { options, wait } = optionsAndWait(given, ["call", "live", "after", "limit"]);
  const { live, after, limit } = options;
  const { input: asked } = handleList.given(context, holder, {
    ...(live !== undefined && { live }),
    ...(after !== undefined && { after }),
    ...(limit !== undefined && { limit }),
  });
  const readHandles = handleList.operation(context);
  const named = namedParts(scopeNamed(holder));
  const mode = live === true ? "live" : "all";
  const page = [
    ...(limit === undefined ? [] : [`${limit}`]),
    ...(after === undefined ? [] : ["after", after]),
  ];
  const parts = [named.session, named.frame ?? "-", mode, ...page];
  const input = {
    holder: named,
    mode,
    limit: limit ?? null,
    after: after ?? null,
  };
  return context.effects.transact(
    scope,
    commandKey(context, options, "list", ...parts),
    { kind: "process.list", input },
    () => listed(readHandles(asked)),
    ownBody(wait),
  );
}

function* listed(handles: Tx<Page<ProcessHandle>>): Tx<Page<ListedProcess>> {
  const { items, damaged, next } = yield* handles;
  return {
    items: items.map(({ process: { id, identity, status } }) => ({
      id,
      kind: identity.kind,
      label: identity.label,
      status,
    })),
    damaged,
    next,
  };
}

export async function transferProcesses(
  context: CommandContext,
  scope: EffectScope,
  [from, to, ids]: readonly [
    from: SessionScopeName,
    to: SessionScopeName,
    processes: readonly string[],
  ],
  given?: ProcessCommandOptions,
): Promise<void> {
  const { options, wait } = optionsAndWait(given, ["call"]);
  const transfer = context.processes.transfer.prepare(from, to, ids);
  const named = {
    from: namedParts(scopeNamed(from)),
    to: namedParts(scopeNamed(to)),
    processes: ids.toSorted(),
  };
  const digest = context.database.sha256Hex(JSON.stringify(named));
  await context.effects.transact(
    scope,
    commandKey(context, options, "transfer", digest),
    { kind: "process.transfer", input: named },
    transfer,
    ownBody(wait),
  );
}

export async function cancelProcess(
  context: CommandContext,
  scope: EffectScope,
  process: string,
  given?: ProcessCommandOptions & ProcessCancelOptions,
): Promise<CommandedProcess> {
  const { options, wait } = optionsAndWait(given, ["call", "reason"]);
  const { reason } = options;
  const cancel = context.processes.cancel.prepare(process, reason === undefined ? {} : { reason });
  return append(
    context,
    scope,
    {
      key: commandKey(context, options, "cancel", process),
      kind: "process.cancel",
      process,
      payload: eventHash(context.codec, coreTypes.cancelRequested, {
        reason: reason ?? null,
      }),
    },
    cancel,
    wait,
  );
}

export async function signalProcess(
  context: CommandContext,
  scope: EffectScope,
  process: string,
  { name, payload }: { readonly name: string; readonly payload: unknown },
  given: ProcessCommandOptions & ProcessSignalOptions,
): Promise<CommandedProcess> {
  const { options, wait } = optionsAndWait(givenObject("options", given), ["call", "key"]);
  const { key } = options;
  const signal = context.processes.signal.prepare(process, name, payload, {
    key,
  });
  const type = signalType(name);
  return append(
    context,
    scope,
    {
      key: commandKey(context, options, "signal", process, type, key),
      kind: "process.signal",
      process,
      payload: eventHash(context.codec, type, payload),
    },
    signal,
    wait,
  );
}

function append(
  context: CommandContext,
  scope: EffectScope,
  command: {
    readonly key: string;
    readonly kind: string;
    readonly process: string;
    /** The hash of the payload. */
    readonly payload: string;
  },
  part: () => Tx<AppendedProcessEvent>,
  wait: WaitOptions,
): Promise<CommandedProcess> {
  const { key, kind, process, payload } = command;
  return context.effects.transact(
    scope,
    key,
    { kind, input: { process, payload } },
    function* (): Tx<CommandedProcess> {
      const { event, status } = yield* part();
      return { process, sequence: event.sequence, status };
    },
    ownBody(wait),
  );
}

const keyCharactersMax = 512;
const partCharactersMax = 512;

/**
 * The key of a command, such as `process:start:build-7`. A name too long for a key is replaced by
 * its hash.
 */
export function commandKey(
  { database }: Pick<CommandContext, "database">,
  { call }: ProcessCommandOptions,
  command: string,
  ...parts: readonly string[]
): string {
  const all = [...parts, ...(call === undefined ? [] : ["call", call])];
  const escaped = all.map((part) =>
    checkedText("A call", part, partCharactersMax).replaceAll("%", "%25").replaceAll(":", "%3A"),
  );
  const key = `process:${command}:${escaped.join(":")}`;
  return key.length <= keyCharactersMax
    ? key
    : `process:${command}:sha256:${database.sha256Hex(JSON.stringify(all))}`;
}
