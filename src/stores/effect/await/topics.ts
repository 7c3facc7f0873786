/** What waiters listen for: the await-event named by the key has ended. */
export const awaitEventEnded = "await-event.ended";
