/**
 * The topic of waiters for work. The session that the key names may have claimable work, or other
 * work at the front.
 */
export const queueWork = "queue.work";
