import { parseProcessId } from "../../../model/process-id.ts";
import { registryKeys } from "../../../model/process-replay-key.ts";
import { signalType } from "../../../model/process.ts";
import type { ProcessStatus } from "../../../model/process.ts";
import { checkedText, givenList } from "../../../model/shape.ts";
import type { Tx } from "../../../sql/operation.ts";
import type { WaitOptions, WriteOptions } from "../../../sql/database.ts";
import { appendProcessEvent } from "../../process/append-event.ts";
import {
  cancelRequest,
  checkedSignal,
  checkedSignalKey,
  newEvent,
} from "../../process/commands.ts";
import type {
  ProcessCancelOptions,
  ProcessEventDraft,
  ProcessSignalOptions,
} from "../../process/commands.ts";
import type { ProcessSurroundings } from "../../process/context.ts";
import { grantHandle, transferHandles } from "../../process/grant.ts";
import { checkedDescriptor, handlesAsked } from "../../process/handles.ts";
import type { ProcessHandleDraft } from "../../process/handles.ts";
import { newProcess } from "../../process/new-process.ts";
import type { ProcessDraft } from "../../process/new-process.ts";
import { listHandles } from "../../process/read-grants.ts";
import type { ListHandles } from "../../process/read-grants.ts";
import { registerProcess } from "../../process/register.ts";
import { namedParts, scopeNamed } from "../../process/scope.ts";
import type { SessionScopeName } from "../../process/scope.ts";
import { nextCursor } from "../../cursor.ts";
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
export interface Commander extends ProcessSurroundings {
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
      const { existed, record } = yield* registerProcess(input);
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
  const { after } = options;
  const { input, cursor } = handlesAsked(holder, options);
  const { limit, isLive } = input;
  const named = namedParts(input.scope);
  const mode = isLive ? "live" : "all";
  const place = after === undefined ? [] : ["after", `${input.after}`];
  const parts = [named.session, named.frame ?? "-", mode, `${limit}`, ...place];
  const asked = { holder: named, mode, limit, after: input.after };
  return commander.store.transact(
    scope,
    commandKey(commander, options, "list", ...parts),
    { kind: "process.list", input: asked },
    () => listed(input, cursor),
    ownTerms(options),
  );
}

function* listed(input: ListHandles, cursor: string): Tx<Page<ListedProcess>> {
  const { items, damaged, next } = yield* listHandles(input);
  return {
    items: items.map(({ process: { id, identity, status } }) => ({
      id,
      kind: identity.kind,
      label: identity.label,
      status,
    })),
    damaged,
    next: nextCursor(cursor, next),
  };
}

/** In one transaction, as with `processes.transfer`. */
const transferMax = 1_000;

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
  const input = {
    from: scopeNamed(given.from),
    to: scopeNamed(given.to),
    processes: givenList("processes", given.processes, transferMax).map(
      parseProcessId,
    ),
  };
  const named = {
    from: namedParts(input.from),
    to: namedParts(input.to),
    processes: input.processes.toSorted(),
  };
  const digest = commander.database.sha256Hex(JSON.stringify(named));
  await commander.store.transact(
    scope,
    commandKey(commander, options, "transfer", digest),
    { kind: "process.transfer", input: named },
    function* () {
      yield* transferHandles(input);
    },
    ownTerms(options),
  );
}

export function cancelProcess(
  commander: Commander,
  scope: EffectScope,
  process: string,
  options: ProcessCommandOptions & ProcessCancelOptions,
): Promise<CommandedProcess> {
  const id = parseProcessId(process);
  const key = commandKey(commander, options, "cancel", id);
  const event = cancelRequest(commander, options.reason);
  const command = { key, kind: "process.cancel" };
  return append(commander, scope, command, id, event, options);
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
  const { name, payload } = given;
  const type = signalType(checkedSignal(name));
  const own = checkedSignalKey(options.key);
  const id = parseProcessId(given.process);
  const key = commandKey(commander, options, "signal", id, type, own);
  const event = { type, payload, replayKey: registryKeys.signal(name, own) };
  const command = { key, kind: "process.signal" };
  return append(commander, scope, command, id, event, options);
}

function append(
  commander: Commander,
  scope: EffectScope,
  { key, kind }: { readonly key: string; readonly kind: string },
  process: string,
  event: ProcessEventDraft,
  options: WaitOptions,
): Promise<CommandedProcess> {
  const input = newEvent(commander, process, event);
  const envelope = { kind, input: { process, payload: input.payload.hash } };
  return commander.store.transact(
    scope,
    key,
    envelope,
    function* (): Tx<CommandedProcess> {
      const appended = yield* appendProcessEvent(input);
      const { sequence } = appended.event;
      return { process, sequence, status: appended.status };
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
