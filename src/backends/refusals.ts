import { HoldfastError } from "../model/errors.ts";

/** Errors with which both backends refuse a call before they read it. */

export function databaseClosed(): HoldfastError {
  return new HoldfastError(
    "DATABASE_CLOSED",
    "The database is closed, so this call did nothing. Open it again to continue.",
  );
}

export function queueFull(limit: number): HoldfastError {
  return new HoldfastError(
    "QUEUE_FULL",
    `${limit} calls are waiting for the database; this one was refused. Await your writes, or database.writable() between them.`,
    { limit },
  );
}
