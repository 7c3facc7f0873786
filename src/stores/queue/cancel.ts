import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import { announce, storeOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { liveFence } from "../lease/fence.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";
import { isClaimed, withItems } from "./batch-row.ts";
import type { QueueBatch } from "./batch-row.ts";
import { batchesById } from "./claim.ts";
import { removeBatches } from "./complete.ts";
import { queueWork } from "./topics.ts";

export interface CancelBatch {
  readonly session: SessionRef;
  readonly id: string;
  readonly now: Now;
}

/**
 * Takes a batch out of the queue, unless somebody works on it. Its source
 * counts as consumed: enqueuing it again by mistake does not bring it back.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const cancelBatch: Operation<CancelBatch, QueueBatch | undefined> =
  storeOperation("cancelBatch", {
    key: (input: CancelBatch) => input.session.id,
    *one({ session: ref, id, now: tell }) {
      const session = yield* lockedSession(ref);
      const now = instantOf(tell);
      const [found] = yield* batchesById(session.key, [id]);
      if (found === undefined) return undefined;
      if (isClaimed(found, yield* liveFence(session, now))) return undefined;
      const [batch] = yield* withItems([found]);
      yield* removeBatches(session.key, [found], now);
      yield* announce(queueWork, session.id);
      return batch;
    },
  });
