import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { isFields } from "../../model/trigger/payload-schema.ts";
import { processConflict, processInvalid } from "../../model/process/errors.ts";
import { endTypes, eventTypesMax, type ProcessEventType } from "../../model/process/event-type.ts";
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

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable process that was registered before. */
export function shownRegistered<R extends RegisteredProcess>(
  context: ProcessContext,
  registered: R,
): Omit<R, "record"> & Pick<RegisteredProcess<unknown>, "record"> {
  return { ...registered, record: recordView(context, registered.record) };
}

/** A process that runs as an execution. */
export interface SpawnDraft extends Omit<ProcessDraft, "input" | "disposition" | "attemptsMax"> {
  /**
   * The execution. Its id defaults to the id of the process, and its input is the input of the
   * process.
   */
  readonly execution: ExecutionDraft;
  /** The sessions that can address it from the start. */
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
  "environment",
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

/** @throws HoldfastError the errors of `givenRegister` and of a new execution */
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
      // The execution itself limits its attempts.
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

/** Makes the end wake the session, unless the declarations name other wakes. */
function withEndWakes({
  id,
  eventTypes = [],
  wakeTarget,
}: SpawnDraft): readonly ProcessEventType[] {
  if (wakeTarget === undefined || wakeTarget === null) return eventTypes;
  const ends = Object.values(endTypes);
  const given: unknown = eventTypes;
  // The later check refuses an invalid list of declarations.
  const isSaid =
    !Array.isArray(given) ||
    given.length > eventTypesMax ||
    given.some((type: unknown) =>
      isFields(type) ? ends.some((end) => end === type["name"]) : false,
    );
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

/**
 * Encodes the wake of an end now: operations that end an execution have no codec of the registry.
 */
function endWakesOf(
  { encodeChecked }: ProcessContext,
  { id, eventTypes, causedBy, wakeTarget }: NewProcess,
): EndWakes {
  const wakes: Record<string, EndWakes[string]> = {};
  for (const [index, { name, wake }] of eventTypes.entries()) {
    if (wake === undefined || !Object.values(endTypes).includes(name)) continue;
    const constant = (selector: PayloadSelector): unknown => {
      if (selector.kind === "constant") return selector.value;
      throw processInvalid(
        `$.eventTypes[${index}].wake`,
        "selects from a payload, but the end of a run has none: use constants.",
      );
    };
    const { when, input, dedupe, merge } = wake;
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
      payload: encodeChecked(payload),
      dedupeKey: dedupe === undefined ? null : textOf(constant(dedupe)),
      ...(merge !== undefined && { mergeKey: textOf(constant(merge)) }),
    };
  }
  return wakes;
}

/** A spawned process; `execution` is the execution that it runs as. */
export interface SpawnedProcess<Value> extends RegisteredProcess<Value> {
  readonly execution: string;
}

interface StoredSpawn extends RegisteredProcess {
  readonly execution: ExecutionId;
}

/**
 * Creates an execution, registers its process and grants handles of it, all or nothing. The process
 * ends with the execution. A process that was spawned before with the same content is returned
 * unchanged.
 *
 * @throws HoldfastError the errors of `createOrFind`, `register` and `grant`
 */
export const spawnProcess = storeOperation("spawnProcess", {
  snapshotSafe: true,
  key: (input) => input.process.id,
  *one(
    context: ProcessContext,
    { execution, process, endWakes, grants }: SpawnProcess,
  ): Tx<StoredSpawn> {
    // Comes first: the execution of a pruned process may be gone, and must not be created again.
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
    if (ended !== undefined) yield* endProcessOf(context, registered.key, ended);
    return spawned;
  },
});

/**
 * Puts the grants into the common order of locks. When a session is granted twice, the later label
 * wins.
 */
function bySession(grants: SpawnProcess["grants"]): SpawnProcess["grants"] {
  const sessions = [...new Set(grants.map(({ scope }) => scope.session.id))];
  return sessions.toSorted().flatMap((id) => grants.filter(({ scope }) => scope.session.id === id));
}

/** Returns the execution of a new process. An existing one is used if no other process has it. */
function* ownExecution(
  execution: NewExecution,
  process: NewProcess,
): Tx<{ readonly key: number; readonly ended: EndedExecution | undefined }> {
  const { key, existed } = yield* createOrFind(execution);
  if (!existed) return { key, ended: undefined };
  const { record, result } = yield* standingForProcess(execution.id);
  if (record.process !== null) {
    // A concurrent caller that spawned the same process has registered it by now.
    const other = yield* foundRegistration(process);
    if (other?.key !== record.process) throw processConflict(process.id, "execution");
  }
  return { key, ended: result && { ...result, at: process.at } };
}
