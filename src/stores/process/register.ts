import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { isFields } from "../../model/trigger/payload-schema.ts";
import { processConflict, processInvalid } from "../../model/process/errors.ts";
import { endTypes, type ProcessEventType } from "../../model/process/event-type.ts";
import { parseProcessId } from "../../model/ids/process-id.ts";
import type { ProcessEnd } from "../../model/process/output.ts";
import { registryKeys } from "../../model/process/replay-key.ts";
import { isTruthy, textOf, type PayloadSelector } from "../../model/trigger/selector.ts";
import { draftOf, givenList, givenObject } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { storeOperation, type StoreOperation, type Tx } from "../../sql/operation.ts";
import {
  createOrFind,
  linkProcess,
  newExecution,
  standingForProcess,
  type ExecutionDraft,
  type NewExecution,
} from "../execution/parts.ts";
import { onlyWait, type Call } from "../method.ts";
import { recordView, type ProcessContext } from "./context.ts";
import type { WakePayload } from "./declared.ts";
import { grant } from "./grant-row.ts";
import {
  checkedDescriptor,
  endProcessOf,
  newProcess,
  scopeNamed,
  type EndedExecution,
  type EndWakes,
  type ProcessDraft,
  type NewProcess,
  type ProcessHandleDescriptor,
  type ProcessHandleDraft,
  type SessionScopeName,
  type SessionScopeRef,
} from "./parts.ts";
import { foundRegistration, register, type RegisteredProcess } from "./registration-row.ts";

/** @throws HoldfastError `OPTION_INVALID`, `PROCESS_INVALID`, `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE` */
export function givenRegister(
  { clock, codec }: ProcessContext,
  draft: ProcessDraft,
  wait?: WaitOptions,
): Call<NewProcess> {
  const input = newProcess(codec, draft, clock.now());
  return { input, wait: onlyWait(wait) };
}

/** See `register` of the rows. */
export const registerProcess: StoreOperation<ProcessContext, NewProcess, RegisteredProcess> =
  storeOperation("registerProcess", {
    snapshotSafe: true,
    key: (input: NewProcess) => input.id,
    one: (_: ProcessContext, input) => register(input),
  });

/** @throws HoldfastError `CORRUPT_ROW` when the one that was registered before cannot be read. */
export function shownRegistered<R extends RegisteredProcess>(
  context: ProcessContext,
  registered: R,
): Omit<R, "record"> & Pick<RegisteredProcess<unknown>, "record"> {
  return { ...registered, record: recordView(context, registered.record) };
}

/** A process that runs as an execution. */
export interface SpawnDraft extends Omit<ProcessDraft, "input" | "disposition" | "attemptsMax"> {
  /** Its id defaults to that of the process; its input is that of the process. */
  readonly execution: ExecutionDraft;
  /** Who can address it from the first moment on. */
  readonly grants?: readonly {
    readonly scope: SessionScopeName;
    readonly descriptor?: ProcessHandleDraft;
  }[];
}

const spawnNames = [
  "id",
  "kind",
  "label",
  "definition",
  "eventTypes",
  "originator",
  "causedBy",
  "wakeTarget",
  "execution",
  "grants",
] as const satisfies readonly (keyof SpawnDraft)[];

interface SpawnProcess {
  readonly execution: NewExecution;
  readonly process: NewProcess;
  readonly endWakes: EndWakes;
  readonly grants: readonly {
    readonly scope: SessionScopeRef;
    readonly descriptor: ProcessHandleDescriptor;
  }[];
}

/** @throws HoldfastError those of `givenRegister` and of a new execution */
export function givenSpawn(
  context: ProcessContext,
  given: SpawnDraft,
  wait?: WaitOptions,
): Call<SpawnProcess> {
  const at = context.clock.now();
  const draft = draftOf("the process", given, spawnNames);
  const { execution: options, grants = [], ...rest } = draft;
  parseProcessId(draft.id);
  const execution = newExecution(
    context,
    {
      ...givenObject("execution", options),
      id: options.id === undefined ? draft.id : options.id,
    },
    at,
  );
  const { id, created } = execution;
  const process = newProcess(
    context.codec,
    {
      ...rest,
      eventTypes: withEndWakes(draft),
      input: options.input,
      disposition: "rerunnable",
      // How often its execution is tried is for that to say.
      attemptsMax: null,
    },
    at,
    [id, created.role, created.function, created.inputHash],
  );
  return {
    input: {
      execution,
      process,
      endWakes: endWakesOf(context, process),
      grants: givenList("grants", grants, grantsMax).map(grantOf),
    },
    wait: onlyWait(wait),
  };
}

const grantsMax = 100;

function grantOf(draft: NonNullable<SpawnDraft["grants"]>[number]): SpawnProcess["grants"][number] {
  const { scope, descriptor = {} } = draftOf("grant", draft, ["scope", "descriptor"]);
  return {
    scope: scopeNamed(scope),
    descriptor: checkedDescriptor(descriptor),
  };
}

const endsThatWake: readonly ProcessEnd[] = ["completed", "failed", "cancelled"];

/** The end wakes the session, unless the declarations say what does. */
function withEndWakes({
  id,
  eventTypes = [],
  wakeTarget,
}: SpawnDraft): readonly ProcessEventType[] {
  if (wakeTarget === undefined || wakeTarget === null) return eventTypes;
  const ends = Object.values(endTypes);
  const given: unknown = eventTypes;
  // What is no list of declarations is refused when it is checked.
  const isSaid =
    !Array.isArray(given) ||
    given.some((type: unknown) => (isFields(type) ? ends.includes(String(type["name"])) : false));
  if (isSaid) return eventTypes;
  return [
    ...eventTypes,
    ...endsThatWake.map((end): ProcessEventType => {
      const value = `Process ${id}: ${end}.`;
      return {
        name: endTypes[end],
        wake: { input: { kind: "constant", value } },
      };
    }),
  ];
}

/** Encoded now: when an execution ends, its operations have no codec of the registry. */
function endWakesOf(
  { encode }: ProcessContext,
  { id, eventTypes, causedBy, wakeTarget }: NewProcess,
): EndWakes {
  const wakes: Record<string, EndWakes[string]> = {};
  for (const [index, { name, wake }] of eventTypes.entries()) {
    if (wake === undefined || !Object.values(endTypes).includes(name)) continue;
    const constant = (selector: PayloadSelector): unknown => {
      if (selector.kind === "constant") return selector.value;
      throw processInvalid(
        `$.eventTypes[${index}].wake`,
        "selects from a payload, and the end of an execution has none here: use constants.",
      );
    };
    const { when, input, dedupe } = wake;
    if (when !== undefined && !isTruthy(constant(when))) continue;
    const payload: WakePayload = {
      process: id,
      type: name,
      input: textOf(constant(input)),
      replayKey: registryKeys.end(name),
      causedBy,
      frame: wakeTarget?.frame ?? null,
    };
    wakes[name] = {
      payload: encode(payload),
      dedupeKey: dedupe === undefined ? null : textOf(constant(dedupe)),
    };
  }
  return wakes;
}

/** A process that was spawned; `execution` is what it runs as. */
export interface SpawnedProcess<Value> extends RegisteredProcess<Value> {
  readonly execution: string;
}

interface StoredSpawn extends RegisteredProcess {
  readonly execution: ExecutionId;
}

/**
 * Creates an execution, registers its process and grants handles of it: all or
 * nothing. The process ends with the execution. What was spawned before with
 * the same content is found again, and left as it is.
 *
 * @throws HoldfastError those of `createOrFind`, `register` and `grant`
 */
export const spawnProcess: StoreOperation<ProcessContext, SpawnProcess, StoredSpawn> =
  storeOperation("spawnProcess", {
    snapshotSafe: true,
    key: (input: SpawnProcess) => input.process.id,
    *one(_: ProcessContext, { execution, process, endWakes, grants }) {
      // Asked first: the execution of a pruned process may be gone, and is not made again.
      const before = yield* foundRegistration(process);
      if (before !== undefined) return { ...before, execution: execution.id };
      const { key, ended } = yield* ownExecution(execution, process);
      const own = { key, id: execution.id, endWakes };
      const registered = yield* register(process, own);
      const spawned = { ...registered, execution: execution.id };
      if (registered.existed) return spawned;
      yield* linkProcess(key, registered.key);
      for (const each of bySession(grants))
        yield* grant({ ...each, process: process.id, at: process.at });
      if (ended !== undefined) yield* endProcessOf(registered.key, ended);
      return spawned;
    },
  });

/** In one order for all; what is granted twice to one session is called as the later one says. */
function bySession(grants: SpawnProcess["grants"]): SpawnProcess["grants"] {
  const sessions = [...new Set(grants.map(({ scope }) => scope.session.id))];
  return sessions.toSorted().flatMap((id) => grants.filter(({ scope }) => scope.session.id === id));
}

/** The execution of a new process. One that was there before is taken if no other process has it. */
function* ownExecution(
  execution: NewExecution,
  process: NewProcess,
): Tx<{ readonly key: number; readonly ended: EndedExecution | undefined }> {
  const { key, existed } = yield* createOrFind(execution);
  if (!existed) return { key, ended: undefined };
  const { record, result } = yield* standingForProcess(execution.id);
  if (record.process !== null) {
    // A caller that spawned the same a moment ago has registered it by now.
    const other = yield* foundRegistration(process);
    if (other?.key !== record.process) throw processConflict(process.id, "execution");
  }
  return { key, ended: result && { ...result, at: process.at } };
}
