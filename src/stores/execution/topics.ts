/**
 * What waiters listen for. A topic says what may have changed, more exactly
 * than the name of the operation that did it.
 */

/** Something of the function named by the key may be due, or its due time has changed. */
export const pendingWork = "execution.pending";
/** One of the function named by the key is held no longer, or only until an instant: a limit may have room again. */
export const placeFreed = "execution.freed";
/** The execution named by the key has a new response. */
export const newResponse = "execution.response";
/** The execution named by the key has finished. */
export const executionEnded = "execution.finished";
/** Something of the function named by the key is being cancelled, and may be there to be ended. */
export const cancellationMarked = "execution.cancelling";
/** The execution named by the key was paused, parked or asked to cancel, may go on again, or ended over its worker: whoever runs it stops, or looks. */
export const runInterrupted = "execution.interrupted";
/** A delay, lock or deadline may be due earlier than anybody sleeps for. */
export const timerSet = "execution.timer";
