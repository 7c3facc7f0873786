/**
 * The topics of waiters. A topic names the possible change more exactly than the operation that
 * caused it.
 */

/** A run of the function named by the key may be due, or its due time has changed. */
export const pendingWork = "execution.pending";
/**
 * A run of the function named by the key is no longer held, or only until an instant: a limit may
 * have room again.
 */
export const placeFreed = "execution.freed";
/** The execution named by the key has a new response. */
export const newResponse = "execution.response";
/** The execution named by the key has finished. */
export const executionEnded = "execution.finished";
/** An execution of the function named by the key is being cancelled, and may be ready to end. */
export const cancellationMarked = "execution.cancelling";
/**
 * The execution named by the key was paused, parked, asked to cancel, resumed, or ended despite its
 * worker. Its worker stops, or reads the execution again.
 */
export const runInterrupted = "execution.interrupted";
/** A delay, lock or deadline may be due earlier than any waiter's wake-up. */
export const timerSet = "execution.timer";
