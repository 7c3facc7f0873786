import type { Tx } from "../../../sql/operation.ts";
import { livingSession, keptSession } from "../../session/session-row.ts";
import type { SessionRef } from "../../session/session-row.ts";

/** What the column holds for scopes that belong to no session: below every key. */
const noSession = 0;

interface InSession {
  readonly session: SessionRef | undefined;
}

/**
 * The key of a session, which is not deleted until the transaction ends.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export function* sharedKeyOf({ session }: InSession): Tx<number> {
  return session === undefined ? noSession : (yield* keptSession(session)).key;
}

/** The same for reads, which lock nothing. */
export function* livingKeyOf({ session }: InSession): Tx<number> {
  return session === undefined
    ? noSession
    : (yield* livingSession(session)).key;
}
