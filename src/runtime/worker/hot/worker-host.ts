import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { isPassing } from "../../failures.ts";
import { retryPolicyFor } from "../../../model/time/retry-policy.ts";
import { newExecution, newRequestedChild } from "../../../stores/execution/log/create.ts";
import type { Appends } from "./appends.ts";
import { spokenError } from "../../../model/values/stored-error.ts";
import type { WorkerParts } from "../worker-parts.ts";
import { pauseBefore } from "../../pauses.ts";
import type { RunHost } from "../../run/run-host.ts";
import { writeLine } from "../../run/run-log.ts";
import type { RunState } from "../../run/run-state.ts";

/** Decisions that the worker's set of runs makes itself. */
type Deciding = Pick<
  RunHost,
  "hotUntil" | "rests" | "wakes" | "fetch" | "interrupted" | "ended" | "renew" | "lost"
> & { readonly released: (run: RunState) => void };

/** The services of a worker for its runs. */
export function workerHost(
  parts: WorkerParts,
  appends: Appends,
  { released, ...deciding }: Deciding,
): RunHost {
  const { context, settings, holder, signal } = parts;
  const { clock, drain, bodies, store, pages, tell } = context;
  const { executions } = pages;
  const { values, random } = store;
  const codeVersion = settings.codeVersion ?? null;
  return {
    ...deciding,
    clock,
    drain,
    bodies,
    values,
    random,
    codeVersion,
    tokenOf: (external) => context.tokens.tokenOf(external),
    newExecution(draft) {
      if (draft.role !== "external") context.unserved.started(draft.function);
      return newExecution(store, draft, clock.now());
    },
    newChild(draft) {
      if (draft.role !== "external") context.unserved.started(draft.function);
      return newRequestedChild(store, draft, clock.now());
    },
    append: (run, draft) => appends.append(run, draft),
    transact: (run, draft) => appends.transact(run, draft),
    cancel(children, force) {
      void inOrder(children, (child) =>
        untilDone(context, signal, () => executions.cancel(child, { force })),
      );
    },
    log: (speaker, level, message, data) => writeLine(context, speaker, level, message, data),
    outputOf: (locked) => outputOf(parts, locked),
    setProgress(run, value) {
      executions.setProgress(run.id, value, { fence: holder }).catch((error: unknown) =>
        tell({
          level: "warn",
          message: `The progress of ${run.id} could not be recorded: ${(error as Error).message}`,
          details: { id: run.id },
        }),
      );
    },
    async release(run, reason) {
      const at = clock.now();
      await appends.append(run, {
        at,
        events: [{ kind: "unlocked", dueAt: at, reason }],
      });
      released(run);
    },
    parked(run, why) {
      const { code, message: reason, cause } = why;
      context.reports.parked(
        { id: run.id, function: run.definition.name },
        { code, reason, ...(cause !== undefined && { cause: spokenError(cause) }) },
      );
      released(run);
    },
    lockedAgain: (run) => lockedAgain(parts, run),
    warn: (message, details) => tell({ level: "warn", message, details }),
  };
}

/** The live output of a run, as the version of the log orders it. */
function outputOf(
  { context, holder }: WorkerParts,
  { id, key, nextVersion, continuations }: Parameters<RunHost["outputOf"]>[0],
): ReturnType<RunHost["outputOf"]> {
  return context.output.of({
    id,
    execution: key,
    fence: holder,
    lockVersion: nextVersion - 1,
    continuation: continuations,
  });
}

/** The lock event of a run that starts its next pass and stays with its worker. */
function lockedAgain(
  { context, settings, holder }: WorkerParts,
  run: RunState,
): ReturnType<RunHost["lockedAgain"]> {
  const { clock, database } = context;
  run.leaseUntil = clock.now() + settings.leaseMs;
  return {
    kind: "locked",
    holder: { ...holder, owner: database.owner },
    leaseUntil: run.leaseUntil,
    retry: retryPolicyFor("workflow"),
    codeVersion: settings.codeVersion ?? null,
  };
}

async function inOrder(
  ids: readonly ExecutionId[],
  each: (id: ExecutionId) => Promise<void>,
): Promise<void> {
  for (const id of ids) await each(id);
}

/** Repeats an operation until it is known to be done, or cannot be done. */
async function untilDone(
  { clock }: WorkerParts["context"],
  signal: AbortSignal,
  act: () => Promise<unknown>,
): Promise<void> {
  for (let failures = 0; !signal.aborted; failures += 1)
    try {
      await act();
      return;
    } catch (error) {
      if (!isPassing(error)) return;
      await pauseBefore(clock, failures, signal);
    }
}
