/**
 * The topic of waiters for a lease: the lease of the session that the key names has another holder
 * or is free.
 */
export const leaseChanged = "lease.changed";
