import type { ProvenDeath } from "../../model/lease.ts";
import { processSpawned } from "../../model/process-errors.ts";
import { plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { appendDeclared } from "./append-declared.ts";
import type {
  AppendedProcessEvent,
  AppendProcessEvent,
} from "./append-event.ts";
import { isLocked } from "./cancel.ts";
import { foundProcess, lockedProcess } from "./process-row.ts";

export interface AbandonProcess {
  /** The event that says so. */
  readonly event: AppendProcessEvent;
  /** A holder of the lease that was seen, and whose process has provably died since. */
  readonly death: ProvenDeath | undefined;
}

/**
 * Ends a process that nobody can finish, as callers of `appendProcessEvent`
 * may not.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED`, `PROCESS_LEASED`
 */
export const abandonProcess: Operation<AbandonProcess, AppendedProcessEvent> =
  plainOperation("abandonProcess", {
    key: (input: AbandonProcess) => input.event.process,
    *one({ event, death }) {
      const { execution_id: execution } = (yield* foundProcess(event.process))
        .row;
      // Executions are locked before processes.
      const isAlive = execution !== null && (yield* isLocked(execution));
      const root = yield* lockedProcess(event.process);
      if (isAlive && root.state.status === "running")
        throw processSpawned(root.id, execution);
      return yield* appendDeclared(root, event, { death });
    },
  });
