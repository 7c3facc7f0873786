/** What waiters listen for: the session named by the key may have work that can be claimed, or other work at the front. */
export const queueWork = "queue.work";
