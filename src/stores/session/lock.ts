import type { SessionHandle, SessionTurns } from "../../model/session/session.ts";
import { storeOperation, type Tx } from "../../sql/operation.ts";
import { lockedSession, turnsOf, type SessionRef } from "../session-row.ts";
import type { SessionContext } from "./context.ts";

export interface LockedSession extends SessionHandle, SessionTurns {
  readonly revision: number;
}

/**
 * Locks the root of a session for a transaction of the app, as Holdfast's own calls do. The
 * transaction then comes before or after all other work on that session. An old snapshot is safe:
 * locking the root detects it (see `lockRoot`).
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const lockSession = storeOperation("lockSession", {
  snapshotSafe: true,
  key: (input) => input.id,
  *one(_: SessionContext, ref: SessionRef): Tx<LockedSession> {
    const root = yield* lockedSession(ref);
    const { id, generation, revision } = root;
    return { id, generation, revision, ...turnsOf(root) };
  },
});
