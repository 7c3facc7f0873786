import type { ExecutionId } from "../../model/execution-id.ts";
import { processConflict } from "../../model/process-errors.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { createExecution } from "../execution/log/create.ts";
import type { NewExecution } from "../execution/log/create.ts";
import { linkProcess, standingForProcess } from "../execution/log/spawned.ts";
import { endProcessOf } from "./execution-end.ts";
import type { EndWakes, EndedExecution } from "./execution-end.ts";
import { grantHandle } from "./grant.ts";
import type { ProcessHandleDescriptor } from "./grant.ts";
import { foundRegistration, registeredAs } from "./register.ts";
import type { NewProcess, RegisteredProcess } from "./register.ts";
import type { SessionScopeRef } from "./scope.ts";

/** A process to be spawned; `spawning` of `processes` makes one of what a caller says. */
export interface SpawnProcess {
  readonly execution: NewExecution;
  readonly process: NewProcess;
  readonly endWakes: EndWakes;
  readonly grants: readonly {
    readonly scope: SessionScopeRef;
    readonly descriptor: ProcessHandleDescriptor;
  }[];
}

export interface SpawnedProcess extends RegisteredProcess {
  readonly execution: ExecutionId;
}

/**
 * Creates an execution, registers its process and grants handles of it: all or
 * nothing. The process ends with the execution. What was spawned before with
 * the same content is found again, and left as it is.
 *
 * @throws HoldfastError those of `createExecution`, `registerProcess` and `grantHandle`
 */
export const spawnProcess: Operation<SpawnProcess, SpawnedProcess> =
  plainOperation("spawnProcess", {
    snapshotSafe: true,
    key: (input: SpawnProcess) => input.process.id,
    *one({ execution, process, endWakes, grants }) {
      // Asked first: the execution of a pruned process may be gone, and is not made again.
      const before = yield* foundRegistration(process);
      if (before !== undefined) return { ...before, execution: execution.id };
      const { key, ended } = yield* ownExecution(execution, process);
      const registered = yield* registeredAs(process, {
        key,
        id: execution.id,
        endWakes,
      });
      const spawned = { ...registered, execution: execution.id };
      if (registered.existed) return spawned;
      yield* linkProcess(key, registered.key);
      for (const { scope, descriptor } of bySession(grants))
        yield* grantHandle({
          process: process.id,
          scope,
          descriptor,
          at: process.at,
        });
      if (ended !== undefined) yield* endProcessOf(registered.key, ended);
      return spawned;
    },
  });

/** In one order for all; what is granted twice to one session is called as the later one says. */
function bySession(grants: SpawnProcess["grants"]): SpawnProcess["grants"] {
  const sessions = [...new Set(grants.map(({ scope }) => scope.session.id))];
  return sessions
    .toSorted()
    .flatMap((id) => grants.filter(({ scope }) => scope.session.id === id));
}

/** The execution of a new process. One that was there before is taken if no other process has it. */
function* ownExecution(
  execution: NewExecution,
  process: NewProcess,
): Tx<{ readonly key: number; readonly ended: EndedExecution | undefined }> {
  const { key, existed } = yield* createExecution(execution);
  if (!existed) return { key, ended: undefined };
  const { record, result } = yield* standingForProcess(execution.id);
  if (record.process !== null) {
    // Who spawned the same a moment ago has registered it by now.
    const other = yield* foundRegistration(process);
    if (other?.key !== record.process)
      throw processConflict(process.id, "execution");
  }
  return { key, ended: result && { ...result, at: process.at } };
}
