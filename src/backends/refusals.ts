import { HoldfastError } from "../model/errors.ts";

/** Why both backends refuse a call without having looked at it. */

export function databaseClosed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "The database is closed, so this call has done nothing. Open it again to go on.",
  );
}

export function queueFull(limit: number): HoldfastError {
  return new HoldfastError(
    "QUEUE_FULL",
    `${limit} calls are waiting for the database; this one was not taken. Await your writes, or database.writable() between them.`,
    { limit },
  );
}
