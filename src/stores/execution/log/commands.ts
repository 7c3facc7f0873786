import type { Encoded } from "../../../model/encoded.ts";
import { isHoldfastError } from "../../../model/errors.ts";
import type { Holder } from "../../../model/execution-event.ts";
import { parseExecutionId } from "../../../model/execution-id.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import type { GivenEvent } from "../../../model/given-event.ts";
import type { ExecutionResult } from "../../../model/result.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { appendEvents } from "./append.ts";
import type { AppendOutcome } from "./append.ts";
import { checkedFence, checkedVersion } from "../checks.ts";
import { createExecution } from "./create.ts";
import type { CreateOutcome } from "./create.ts";
import type { Surroundings } from "../context.ts";
import { forkExecution } from "../fork/fork.ts";
import type { ForkOutcome } from "../fork/fork.ts";
import { newExecution } from "./new-execution.ts";
import type { CreateOptions } from "./new-execution.ts";

export interface AppendOptions extends WaitOptions {
  /** Append only as the run that last locked the execution. */
  readonly fence?: Pick<Holder, "executor" | "run">;
  /** Created in the same transaction. */
  readonly children?: readonly CreateOptions[];
  /** The key that creating or locking answered with; saves a lookup. */
  readonly key?: number;
}

/** Writing the log. */
export interface ExecutionCommands {
  /**
   * Creates an execution, or finds the one with the same id, function and
   * input. Repeat it under an id of your own.
   * @throws HoldfastError `EXECUTION_EXISTS`, `EXECUTION_NOT_FOUND` (its parent), `ID_MALFORMED`, `NAME_INVALID`, `NOT_SERIALIZABLE`, `VALUE_TOO_LARGE`
   */
  create(
    options: CreateOptions,
    wait?: WaitOptions,
  ): Promise<CreateOutcome & { readonly id: ExecutionId }>;
  /**
   * Appends events at `version` and after, with the children they ask for:
   * all or nothing, at most 1,000 of each. Repeat it with the same version
   * and events: when the log holds them, it answers as the first time.
   * @throws HoldfastError `VERSION_CONFLICT`, `EXECUTION_FINISHED`, `LOCK_LOST`, `EVENTS_INVALID` …
   */
  append(
    id: string,
    version: number,
    events: readonly GivenEvent[],
    options?: AppendOptions,
  ): Promise<AppendOutcome>;
  /**
   * Appends the end, and tells the parent; after the events of `events`, if
   * there are any. Repeat it with the same version and an equal result.
   * @throws HoldfastError as `append` does, and `OPTION_INVALID` when it is no result.
   */
  finish(
    id: string,
    version: number,
    result: ExecutionResult,
    options?: AppendOptions & { readonly events?: readonly GivenEvent[] },
  ): Promise<AppendOutcome>;
  /** Copies an execution up to a version into a new one. Repeat it under an id of your own. @throws HoldfastError `FORK_POINT_INVALID` */
  fork(
    source: string,
    version: number,
    options?: WaitOptions & { readonly id?: string },
  ): Promise<ForkOutcome & { readonly id: ExecutionId }>;
  /** Tries a run again from where it failed, as a new one. Repeat it under an id of your own. @throws HoldfastError `NOT_FAILED` */
  retry(
    source: string,
    options?: WaitOptions & { readonly id?: string },
  ): Promise<ForkOutcome & { readonly id: ExecutionId }>;
}

export function executionCommands(around: Surroundings): ExecutionCommands {
  const { database, clock, ids, codec } = around;
  const append: ExecutionCommands["append"] = async (
    id,
    version,
    events,
    options = {},
  ) => {
    const { fence, children, key, ...wait } = options;
    const at = clock.now();
    const created = children?.map((child) => newExecution(around, child, at));
    const inputHashes =
      created && new Map(created.map((one) => [one.id, one.created.inputHash]));
    return database.write(
      appendEvents,
      {
        id: parseExecutionId(id),
        version: checkedVersion(version),
        at,
        events: events.map((event) => codec.event(event, inputHashes)),
        isSameValue: (stored, given) => isSameValue(codec, stored, given),
        ...(fence && { fence: checkedFence(fence) }),
        ...(key !== undefined && { key }),
        ...(created && { children: created }),
      },
      wait,
    );
  };
  const fork = async (
    source: string,
    version: number | undefined,
    options: WaitOptions & { readonly id?: string } = {},
  ): Promise<ForkOutcome & { readonly id: ExecutionId }> => {
    const { id: given, ...wait } = options;
    const id = given === undefined ? ids.nextId("E") : parseExecutionId(given);
    const outcome = await database.write(
      forkExecution,
      {
        source: parseExecutionId(source),
        id,
        at: clock.now(),
        ...(version !== undefined && { version: checkedVersion(version) }),
      },
      wait,
    );
    return { ...outcome, id };
  };
  return {
    async create(options, wait) {
      const execution = newExecution(around, options, clock.now());
      const outcome = await database.write(createExecution, execution, wait);
      return { ...outcome, id: execution.id };
    },
    append,
    finish: async (id, version, result, { events = [], ...options } = {}) =>
      append(id, version, [...events, { kind: "finished", result }], options),
    fork,
    retry: (source, options) => fork(source, undefined, options),
  };
}

/** A codec that encrypts may write the same value in another way each time. */
function isSameValue(
  codec: Surroundings["codec"],
  stored: Encoded,
  given: Encoded,
): boolean {
  if (stored === given) return true;
  try {
    const [one, other] = [stored, given].map((text) =>
      codec.hash(codec.readValue(text)),
    );
    return one === other;
  } catch (error) {
    if (isHoldfastError(error)) return false;
    throw error;
  }
}
