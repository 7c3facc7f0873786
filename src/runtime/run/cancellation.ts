import { HoldfastError } from "../../model/errors.ts";
import { aloneDeathsMax, isConvicted } from "../../model/execution/decisions.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { NewExecution } from "../../stores/execution/log/create.ts";
import type { RunState } from "./run-state.ts";

/**
 * True while the code of a run does not know yet that the run is cancelled. It is notified before
 * anything more starts. Otherwise a step that kills its process would start again and again,
 * and the cleanup would never run.
 */
export function isToBeCancelled({
  cancellation,
  cancelledAt,
}: Pick<RunState, "cancellation" | "cancelledAt">): boolean {
  return cancellation !== null && cancelledAt === undefined;
}

/**
 * Creates the children of a run that is to be cancelled as paused. No worker begins them before
 * the run, once its code is notified, cancels them.
 */
export function heldBack<Draft extends { readonly children?: readonly NewExecution[] }>(
  run: Pick<RunState, "cancellation" | "cancelledAt">,
  draft: Draft,
): Draft {
  const { children } = draft;
  if (children === undefined || !isToBeCancelled(run)) return draft;
  return { ...draft, children: children.map(pausedChild) };
}

function pausedChild(child: NewExecution): NewExecution {
  const { created } = child;
  return created.role === "external"
    ? child
    : { ...child, created: { ...created, isPaused: true } };
}

/** The reason not to run the cleanup of a run: it keeps killing its workers too. */
export function convictedCleanup({
  id,
  function: name,
  cancellation,
  aloneDeaths,
}: LoadedExecution): HoldfastError | undefined {
  if (cancellation === null || !isConvicted({ aloneDeaths })) return undefined;
  return new HoldfastError(
    "RUN_KEEPS_KILLING_WORKERS",
    `Run ${id} of ${name} was cancelled, and ${aloneDeathsMax} processes died, or stopped renewing their lock, while they ran it and nothing else. ` +
      "It and its children are ended without cleanup. Undo the work that it had started by hand.",
    { id, function: name, deaths: aloneDeaths },
  );
}
