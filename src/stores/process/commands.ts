import type { LeaseFence } from "../../model/lease.ts";
import { HoldfastError } from "../../model/errors.ts";
import { coreTypes, endTypes } from "../../model/process-event-type.ts";
import { parseProcessId } from "../../model/process-id.ts";
import { isOutput } from "../../model/process-output.ts";
import type { ProcessOutput } from "../../model/process-output.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import { signalType } from "../../model/process.ts";
import type { ProcessStatus } from "../../model/process.ts";
import { checkedText, givenObject, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { appendProcessEvent, eventPayload } from "./append-event.ts";
import type {
  AppendedProcessEvent,
  AppendProcessEvent,
  MaterialisedWake,
} from "./append-event.ts";
import type { ProcessSurroundings } from "./context.ts";
import { fenced } from "./expire.ts";
import { newProcess } from "./new-process.ts";
import type { ProcessDraft } from "./new-process.ts";
import { registerProcess } from "./register.ts";
import type { NewProcess, RegisteredProcess } from "./register.ts";
import { scopeNamed } from "./scope.ts";
import type { SessionScopeName } from "./scope.ts";
import { eventView, recordView } from "./views.ts";
import type { ProcessEventView } from "./views.ts";

/** An event to be appended. */
export interface ProcessEventDraft {
  readonly type: string;
  readonly payload?: unknown;
  /** Appending twice under one key is appending once. Events that end a process need one. Begins neither with "process:" nor with "signal:". */
  readonly replayKey?: string;
  /** Given by a worker: refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence;
  /** Who is woken, if the event wakes; the wake target of the process unless told. */
  readonly wakeTarget?: SessionScopeName;
}

export interface AppendedProcessEventView {
  readonly event: ProcessEventView;
  /** What woke whom; null when the event wakes nobody. */
  readonly wake: MaterialisedWake | null;
  readonly isReplay: boolean;
  readonly status: ProcessStatus;
}

/** What changes a process. */
export interface ProcessCommands {
  /**
   * Registers a process, or finds the one registered before under the same id
   * with the same content: `existed` is then true.
   * @throws HoldfastError `PROCESS_CONFLICT`, `PROCESS_INVALID`, `SESSION_NOT_FOUND`, `SESSION_DELETED` …
   * @example await processes.register({ id: "build-7", kind: "tool", wakeTarget: "chat-7", input: { branch: "main" } });
   */
  register(
    draft: ProcessDraft,
    wait?: WaitOptions,
  ): Promise<RegisteredProcess<unknown>>;
  /** What `registerProcess` takes, for who registers in a transaction of their own. */
  registering(draft: ProcessDraft): NewProcess;
  /**
   * Appends an event of a declared type, and does what the type says.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `EVENT_TYPE_UNDECLARED`, `EVENT_PAYLOAD_INVALID`, `REPLAY_KEY_CONFLICT`, `REPLAY_KEY_RESERVED`, `PROCESS_TERMINAL`, `PROCESS_LEASE_LOST` …
   * @example await processes.append("build-7", { type: "progress", payload: { percent: 50 } });
   */
  append(
    process: string,
    event: ProcessEventDraft,
    wait?: WaitOptions,
  ): Promise<AppendedProcessEventView>;
  /**
   * What `appendProcessEvent` takes, for who appends in a transaction of their own.
   * @example
   * const input = processes.appending("build-7", { type: "progress", payload: { percent: 50 } });
   * await database.write("report", function* () {
   *   yield* appendProcessEvent(input);
   *   yield* run(sql`UPDATE build SET percent = 50 WHERE id = 7`);
   * });
   */
  appending(process: string, event: ProcessEventDraft): AppendProcessEvent;
  /**
   * Ends a process. The same output again is fine.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_TERMINAL`, `REPLAY_KEY_CONFLICT`, `PROCESS_LEASED`, `PROCESS_LEASE_LOST`
   * @example await processes.complete("build-7", { kind: "completed", value: { url } }, { fence: lease });
   */
  complete(
    process: string,
    output: ProcessOutput,
    options?: ProcessFenceOptions,
  ): Promise<AppendedProcessEventView>;
  /**
   * Asks a process to stop. It goes on until it does; if it runs as an
   * execution, that is cancelled. Each reason is recorded once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`
   */
  cancel(
    process: string,
    options?: ProcessCancelOptions,
  ): Promise<AppendedProcessEventView>;
  /**
   * Sends a signal, an event of the declared type `signal.<name>`. The same
   * key again is the same signal.
   * @throws HoldfastError `EVENT_TYPE_UNDECLARED`, `REPLAY_KEY_CONFLICT`, `NAME_INVALID` …
   */
  signal(
    process: string,
    name: string,
    payload: unknown,
    options: ProcessSignalOptions,
  ): Promise<AppendedProcessEventView>;
}

export interface ProcessFenceOptions extends WaitOptions {
  /** Given by a worker: refused unless it holds the lease of the process. */
  readonly fence?: LeaseFence;
}

export interface ProcessCancelOptions extends WaitOptions {
  /** For people and for the process; kept in the event. */
  readonly reason?: string;
}

export interface ProcessSignalOptions extends WaitOptions {
  /** Names this signal for its sender: sending it twice is sending it once. */
  readonly key: string;
}

const typeCharactersMax = 128;
const replayKeyCharactersMax = 512;

export function processCommands(around: ProcessSurroundings): ProcessCommands {
  const { database, clock, codec } = around;
  return {
    async register(draft, wait) {
      const input = newProcess(codec, draft, clock.now());
      const registered = await database.write(registerProcess, input, wait);
      return { ...registered, record: recordView(codec, registered.record) };
    },
    registering: (draft) => newProcess(codec, draft, clock.now()),
    appending: (process, event) => newEvent(around, process, event),
    async append(process, event, wait) {
      return append(around, newEvent(around, process, event), wait);
    },
    async complete(process, output, options) {
      const { fence, ...wait } = fencedOptions(options);
      if (!isOutput(output)) throw outputInvalid();
      const type = endTypes[output.kind];
      const event = {
        type,
        payload: { output },
        replayKey: registryKeys.end(type),
        ...(fence && { fence }),
      };
      return append(around, newEvent(around, process, event), wait);
    },
    async cancel(process, options) {
      const { reason, ...wait } = optionsOf(options);
      const event = cancelRequest(around, reason);
      return append(around, newEvent(around, process, event), wait);
    },
    async signal(process, name, payload, options) {
      const { key, ...wait } = givenObject("options", options);
      const event = {
        type: signalType(checkedSignal(name)),
        payload,
        replayKey: registryKeys.signal(name, checkedSignalKey(key)),
      };
      return append(around, newEvent(around, process, event), wait);
    },
  };
}

/** What asks a process to stop: one reason is one request, whoever gives it. @throws HoldfastError `TEXT_INVALID`, `NAME_INVALID` */
export function cancelRequest(
  { codec }: Pick<ProcessSurroundings, "codec">,
  given: string | undefined,
): ProcessEventDraft {
  const type = coreTypes.cancelRequested;
  const reason = given === undefined ? null : checkedReason(given);
  const payload = { reason };
  const { hash } = eventPayload(codec, type, payload);
  return { type, payload, replayKey: registryKeys.cancelRequest(hash) };
}

const reasonCharactersMax = 4_096;

export function checkedReason(reason: string): string {
  return checkedText("A reason", reason, reasonCharactersMax);
}

const signalKeyCharactersMax = 256;

export function checkedSignalKey(key: string): string {
  return checkedText("A signal key", key, signalKeyCharactersMax);
}

async function append(
  around: ProcessSurroundings,
  input: AppendProcessEvent,
  wait: WaitOptions | undefined,
): Promise<AppendedProcessEventView> {
  const { database } = around;
  const appended = await fenced(around, input, (now) =>
    database.write(appendProcessEvent, { ...input, now }, wait),
  );
  return appendedView(around, appended);
}

/** Names of signals: what fits into an event type and a key. @throws HoldfastError `NAME_INVALID` */
export function checkedSignal(name: string): string {
  if (typeof name === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(name))
    return name;
  throw new HoldfastError(
    "NAME_INVALID",
    "The name of a signal is 1 to 64 letters, digits, _ and -.",
    { what: "The name of a signal" },
  );
}

/** @throws HoldfastError `OPTION_INVALID` */
export function fencedOptions(
  given: ProcessFenceOptions | undefined,
): ProcessFenceOptions {
  const options = optionsOf(given);
  givenFence(options.fence);
  return options;
}

/** Only what was not given at all is no fence: whoever gives one wants to be refused without a lease. */
function givenFence(given: LeaseFence | undefined): LeaseFence | undefined {
  if (given === undefined) return undefined;
  return givenObject("fence", given);
}

function outputInvalid(): HoldfastError {
  return new HoldfastError(
    "OPTION_INVALID",
    'An output is { kind: "completed", value }, { kind: "failed", code, message, raw? } or { kind: "cancelled", message, raw? }. Nothing was changed.',
    { option: "output" },
  );
}

/** @throws HoldfastError `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE` */
export function newEvent(
  { clock, codec }: Pick<ProcessSurroundings, "clock" | "codec">,
  process: string,
  draft: ProcessEventDraft,
): AppendProcessEvent {
  const {
    type: given,
    payload,
    replayKey,
    fence,
    wakeTarget,
  } = givenObject("event", draft);
  const type = checkedText("The type of an event", given, typeCharactersMax);
  return {
    process: parseProcessId(process),
    type,
    payload: eventPayload(codec, type, payload),
    replayKey:
      replayKey === undefined
        ? null
        : checkedText("A replay key", replayKey, replayKeyCharactersMax),
    fence: givenFence(fence),
    wakeTarget: wakeTarget === undefined ? undefined : scopeNamed(wakeTarget),
    now: () => clock.now(),
    codec,
  };
}

export function appendedView(
  { codec }: Pick<ProcessSurroundings, "codec">,
  appended: AppendedProcessEvent,
): AppendedProcessEventView {
  return { ...appended, event: eventView(codec, appended.event) };
}
