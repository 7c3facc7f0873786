/** What waiters listen for: the lease of the session named by the key has another holder, or none. */
export const leaseChanged = "lease.changed";
