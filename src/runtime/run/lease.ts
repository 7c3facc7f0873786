import type { RunState } from "./run-state.ts";

/**
 * Whether somebody else may have the run by now: its lease is over, as after
 * the process was stopped, the machine slept, or the database answered late.
 * Nothing is begun then, or steps would be run that another has recorded. What
 * rests, or is being given back, begins nothing anyway.
 */
export function isStale(run: RunState): boolean {
  const { host, isWaiting, isOver, leaving, leaseUntil } = run;
  if (isWaiting || isOver || leaving !== undefined) return false;
  if (host.onlyReplays !== undefined) return false;
  return leaseUntil <= host.clock.now();
}

/** Goes on once its lock is renewed; lost, it is dropped. Nothing else is done meanwhile, as during an append. */
export function renewFirst(run: RunState): boolean {
  run.isAppending = true;
  void run.host.renew(run).then(() => {
    run.isAppending = false;
    if (!run.isOver) run.again();
  });
  return false;
}

/** Whether anything may still be delivered to its code. */
export function isListening({ settled, poison, leaving }: RunState): boolean {
  return settled === undefined && poison === undefined && leaving === undefined;
}
