import { isFields } from "../../model/payload-schema.ts";
import { processInvalid } from "../../model/process-errors.ts";
import { endTypes } from "../../model/process-event-type.ts";
import type { ProcessEventType } from "../../model/process-event-type.ts";
import type { ProcessEnd } from "../../model/process-output.ts";
import { isTruthy, textOf } from "../../model/selector.ts";
import type { PayloadSelector } from "../../model/selector.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import { givenList, givenObject } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { newExecution } from "../execution/log/new-execution.ts";
import type { CreateOptions } from "../execution/log/new-execution.ts";
import type { WakePayload } from "./append-event.ts";
import type { ProcessSurroundings } from "./context.ts";
import type { EndWakes } from "./execution-end.ts";
import { checkedDescriptor } from "./handles.ts";
import type { ProcessHandleDraft } from "./handles.ts";
import { newProcess } from "./new-process.ts";
import type { ProcessDraft } from "./new-process.ts";
import type { NewProcess, RegisteredProcess } from "./register.ts";
import { scopeNamed } from "./scope.ts";
import type { SessionScopeName } from "./scope.ts";
import { spawnProcess } from "./spawn.ts";
import type { SpawnProcess } from "./spawn.ts";
import { recordView } from "./views.ts";

/** A process that runs as an execution. */
export interface SpawnDraft extends Omit<
  ProcessDraft,
  "input" | "disposition" | "attemptsMax"
> {
  /** Its id is that of the process unless told; its input is that of the process. */
  readonly execution: CreateOptions;
  /** Who can address it from the first moment on. */
  readonly grants?: readonly ProcessGrantDraft[];
}

export interface ProcessGrantDraft {
  readonly scope: SessionScopeName;
  readonly descriptor?: ProcessHandleDraft;
}

export interface SpawnedProcessView extends RegisteredProcess<unknown> {
  readonly execution: string;
}

/** Background work that is run by workers. */
export interface ProcessSpawning {
  /**
   * Creates an execution, registers its process and grants handles of it: all
   * or nothing. When the execution ends, so does the process, and its session
   * is woken, in the same transaction; a cancel request reaches the execution.
   * @throws HoldfastError `PROCESS_CONFLICT`, `PROCESS_INVALID`, `EXECUTION_EXISTS`, `SESSION_NOT_FOUND`, `SESSION_DELETED` …
   * @example await processes.spawn({ id: "build-7", kind: "workflow", wakeTarget: "chat-7",
   *   execution: { function: "ci/build", input: { branch: "main" } }, grants: [{ scope: "chat-7" }] });
   */
  spawn(draft: SpawnDraft, wait?: WaitOptions): Promise<SpawnedProcessView>;
  /** What `spawnProcess` takes, for who spawns in a transaction of their own. */
  spawning(draft: SpawnDraft): SpawnProcess;
}

export function processSpawning(around: ProcessSurroundings): ProcessSpawning {
  const { database, codec } = around;
  return {
    async spawn(draft, wait) {
      const input = newSpawn(around, draft);
      const spawned = await database.write(spawnProcess, input, wait);
      return { ...spawned, record: recordView(codec, spawned.record) };
    },
    spawning: (draft) => newSpawn(around, draft),
  };
}

function newSpawn(
  around: ProcessSurroundings,
  draft: SpawnDraft,
): SpawnProcess {
  const { clock, codec, executions } = around;
  const at = clock.now();
  const {
    execution: given,
    grants = [],
    ...rest
  } = givenObject("process", draft);
  const options = givenObject("execution", given);
  const execution = newExecution(
    executions,
    { ...options, id: options.id ?? draft.id },
    at,
  );
  const { id, created } = execution;
  const process = newProcess(
    codec,
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
    execution,
    process,
    endWakes: endWakesOf(around, process),
    grants: givenList("grants", grants, grantsMax).map(grantOf),
  };
}

const grantsMax = 100;

function grantOf(draft: ProcessGrantDraft): SpawnProcess["grants"][number] {
  const { scope, descriptor = {} } = givenObject("grant", draft);
  return {
    scope: scopeNamed(scope),
    descriptor: checkedDescriptor(descriptor),
  };
}

const endsThatWake: readonly ProcessEnd[] = [
  "completed",
  "failed",
  "cancelled",
];

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
    given.some((type: unknown) =>
      isFields(type) ? ends.includes(String(type["name"])) : false,
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

/** Encoded now: when an execution ends, nobody there knows how. */
function endWakesOf(
  { codec }: ProcessSurroundings,
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
      payload: codec.encode(payload),
      dedupeKey: dedupe === undefined ? null : textOf(constant(dedupe)),
    };
  }
  return wakes;
}
