import { coreTypes } from "../../../model/process-event-type.ts";
import { signalType } from "../../../model/process.ts";
import type { ProcessStatus } from "../../../model/process.ts";
import { checkedText } from "../../../model/shape.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { WaitOptions, WriteOptions } from "../../../sql/database.ts";
import type {
  AppendedProcessEvent,
  ProcessCancelOptions,
  ProcessSignalOptions,
} from "../../process/context.ts";
import { eventHash } from "../../process/event-row.ts";
import { grant as grantHandle } from "../../process/grant-row.ts";
import type { ProcessHandle } from "../../process/grant-row.ts";
import {
  checkedDescriptor,
  namedParts,
  newProcess,
  scopeNamed,
} from "../../process/parts.ts";
import type {
  ProcessDraft,
  ProcessHandleDraft,
  SessionScopeName,
} from "../../process/parts.ts";
import type { Processes } from "../../process/processes.ts";
import { register } from "../../process/registration-row.ts";
import type { StoreContext } from "../../context.ts";
import { givenWait } from "../../given.ts";
import type { Page, PageOptions } from "../../list.ts";
import type { EffectOptions } from "../context.ts";
import type { Effects } from "../effects.ts";
import type { EffectScope } from "../scope.ts";

export interface ProcessCommandOptions extends WaitOptions {
  /** Tells equal commands of one scope apart, such as two lists: without it the second is the first. */
  readonly call?: string;
}

export interface ProcessStartOptions extends ProcessCommandOptions {
  /** Who may address the process from its first moment on. */
  readonly grant?: SessionScopeName;
  /** What they call it. */
  readonly descriptor?: ProcessHandleDraft;
}

/** What a list that is recorded shows of a process. */
export interface ListedProcess {
  readonly id: string;
  readonly kind: string;
  readonly label: string | null;
  readonly status: ProcessStatus;
}

export interface ListHeldProcessesOptions
  extends ProcessCommandOptions, Omit<PageOptions, keyof WaitOptions> {
  /** Only those that run. */
  readonly live?: boolean;
}

/** What a command did to a process. */
export interface CommandedProcess {
  readonly process: string;
  /** The event that the command was recorded as. */
  readonly sequence: number;
  readonly status: ProcessStatus;
}

/** What commands are given with. */
export interface Commander extends StoreContext {
  readonly processes: Processes;
  readonly store: Effects;
  readonly environment: EffectOptions;
}

/** The bodies of commands are ours: they lock what they decide by. */
export function ownTerms(options: WaitOptions): WriteOptions {
  return { ...givenWait(options), isolation: "readCommitted" };
}

/** Registers a process and grants its handle in the transaction that records it. */
export function startProcess(
  commander: Commander,
  scope: EffectScope,
  draft: ProcessDraft,
  options: ProcessStartOptions,
): Promise<{ readonly id: string; readonly existed: boolean }> {
  const { store, codec, clock } = commander;
  const { grant, descriptor = {} } = options;
  const input = newProcess(codec, draft, clock.now());
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
  return store.transact(
    scope,
    commandKey(commander, options, "start", id),
    envelope,
    function* () {
      const { existed, record } = yield* register(input);
      // Nobody gets a handle of what is but a name by now.
      if (holder !== undefined && record.prunedAt === null)
        yield* grantHandle({
          process: id,
          scope: holder,
          descriptor: called,
          at,
        });
      return { id, existed };
    },
    ownTerms(options),
  );
}

export function listProcesses(
  commander: Commander,
  scope: EffectScope,
  holder: SessionScopeName,
  options: ListHeldProcessesOptions,
): Promise<Page<ListedProcess>> {
  const { live, after, limit } = options;
  const list = commander.processes.handles.prepare(holder, {
    ...(live !== undefined && { live }),
    ...(after !== undefined && { after }),
    ...(limit !== undefined && { limit }),
  });
  const named = namedParts(scopeNamed(holder));
  const mode = live === true ? "live" : "all";
  const page = [
    ...(limit === undefined ? [] : [`${limit}`]),
    ...(after === undefined ? [] : ["after", after]),
  ];
  const parts = [named.session, named.frame ?? "-", mode, ...page];
  const asked = {
    holder: named,
    mode,
    limit: limit ?? null,
    after: after ?? null,
  };
  return commander.store.transact(
    scope,
    commandKey(commander, options, "list", ...parts),
    { kind: "process.list", input: asked },
    () => listed(list),
    ownTerms(options),
  );
}

function* listed(list: () => Tx<Page<ProcessHandle>>): Tx<Page<ListedProcess>> {
  const { items, damaged, next } = yield* list();
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
  commander: Commander,
  scope: EffectScope,
  given: {
    readonly from: SessionScopeName;
    readonly to: SessionScopeName;
    readonly processes: readonly string[];
  },
  options: ProcessCommandOptions,
): Promise<void> {
  const { from, to, processes } = given;
  const transfer = commander.processes.transfer.prepare(from, to, processes);
  const named = {
    from: namedParts(scopeNamed(from)),
    to: namedParts(scopeNamed(to)),
    processes: processes.toSorted(),
  };
  const digest = commander.database.sha256Hex(JSON.stringify(named));
  await commander.store.transact(
    scope,
    commandKey(commander, options, "transfer", digest),
    { kind: "process.transfer", input: named },
    transfer,
    ownTerms(options),
  );
}

export function cancelProcess(
  commander: Commander,
  scope: EffectScope,
  process: string,
  options: ProcessCommandOptions & ProcessCancelOptions,
): Promise<CommandedProcess> {
  const { reason } = options;
  const cancel = commander.processes.cancel.prepare(
    process,
    reason === undefined ? {} : { reason },
  );
  return append(
    commander,
    scope,
    {
      key: commandKey(commander, options, "cancel", process),
      kind: "process.cancel",
      process,
      payload: eventHash(commander.codec, coreTypes.cancelRequested, {
        reason: reason ?? null,
      }),
    },
    cancel,
    options,
  );
}

export function signalProcess(
  commander: Commander,
  scope: EffectScope,
  given: {
    readonly process: string;
    readonly name: string;
    readonly payload: unknown;
  },
  options: ProcessCommandOptions & ProcessSignalOptions,
): Promise<CommandedProcess> {
  const { process, name, payload } = given;
  const { key } = options;
  const signal = commander.processes.signal.prepare(process, name, payload, {
    key,
  });
  const type = signalType(name);
  return append(
    commander,
    scope,
    {
      key: commandKey(commander, options, "signal", process, type, key),
      kind: "process.signal",
      process,
      payload: eventHash(commander.codec, type, payload),
    },
    signal,
    options,
  );
}

function append(
  commander: Commander,
  scope: EffectScope,
  command: {
    readonly key: string;
    readonly kind: string;
    readonly process: string;
    /** The hash of its payload. */
    readonly payload: string;
  },
  part: () => Tx<AppendedProcessEvent>,
  options: WaitOptions,
): Promise<CommandedProcess> {
  const { key, kind, process, payload } = command;
  return commander.store.transact(
    scope,
    key,
    { kind, input: { process, payload } },
    function* (): Tx<CommandedProcess> {
      const { event, status } = yield* part();
      return { process, sequence: event.sequence, status };
    },
    ownTerms(options),
  );
}

const keyCharactersMax = 512;
const partCharactersMax = 512;

/** Such as `process:start:build-7`; what is too long for a key is named by its hash. */
export function commandKey(
  { database }: Pick<Commander, "database">,
  { call }: ProcessCommandOptions,
  command: string,
  ...parts: readonly string[]
): string {
  const all = [...parts, ...(call === undefined ? [] : ["call", call])];
  const escaped = all.map((part) =>
    checkedText("A call", part, partCharactersMax)
      .replaceAll("%", "%25")
      .replaceAll(":", "%3A"),
  );
  const key = `process:${command}:${escaped.join(":")}`;
  return key.length <= keyCharactersMax
    ? key
    : `process:${command}:sha256:${database.sha256Hex(JSON.stringify(all))}`;
}
