import { instantOf } from "../../model/time/clock.ts";
import { announce, storeOperation, type Tx } from "../../sql/operation.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import type { QueueContext } from "./context.ts";
import { queueWork } from "./topics.ts";
import { beginWaitingTurn, releaseHeldBack } from "./turn-row.ts";

/**
 * Lets the next turn claim the batches that are held back, and starts it unless one is open.
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
 */
export const retryHeldBack = storeOperation("retryHeldBack", {
  snapshotSafe: true,
  key: (input) => input.id,
  *one(context: QueueContext, ref: SessionRef): Tx<number> {
    const session = yield* lockedSession(ref);
    const released = yield* releaseHeldBack(session.key);
    if (released === 0) return 0;
    const at = instantOf(() => context.clock.now());
    if (session.open_turn === null) yield* beginWaitingTurn(context, session, at);
    yield* announce(queueWork, session.id);
    return released;
  },
});
