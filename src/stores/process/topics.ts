/** What waiters listen for: the process named by the key has a new event. */
export const processEvent = "process.event";
/** The process named by the key has ended. */
export const processEnded = "process.ended";
/** The lease of the process named by the key has another holder, or none. */
export const processLeaseChanged = "process.lease";
