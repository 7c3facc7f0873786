import type { RunState } from "./run-state.ts";

/**
 * True if another worker may have the run by now: its lease has expired, as after the process
 * was stopped, the machine slept, or the database answered late. Nothing starts then, or steps
 * that another worker has recorded would run again. A run that rests or is being released
 * starts nothing anyway.
 */
export function isStale(run: RunState): boolean {
  const { host, isWaiting, isOver, leaving, leaseUntil } = run;
  if (isWaiting || isOver || leaving !== undefined) return false;
  if (host.onlyReplays !== undefined) return false;
  return leaseUntil <= host.clock.now();
}

/**
 * Renews the lock, then continues. A run that lost its lock is dropped. Nothing else happens
 * until then, as during an append.
 */
export function renewFirst(run: RunState): boolean {
  run.isAppending = true;
  void run.host.renew(run).then(() => {
    run.isAppending = false;
    if (!run.isOver) run.again();
  });
  return false;
}

/** True if anything may still be delivered to the code. */
export function isListening({ settled, poison, leaving }: RunState): boolean {
  return settled === undefined && poison === undefined && leaving === undefined;
}
