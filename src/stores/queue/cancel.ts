import { instantOf } from "../../model/time/clock.ts";
import { checkedText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { announce, storeOperation, type Tx } from "../../sql/operation.ts";
import { undamaged } from "../damage.ts";
import { liveFence } from "../lease/parts.ts";
import { onlyWait } from "../method.ts";
import type { Call } from "../method.ts";
import { sessionNamed } from "../session-name.ts";
import type { SessionName } from "../session-name.ts";
import { lockedSession } from "../session-row.ts";
import type { SessionRef } from "../session-row.ts";
import { isClaimed, withItems } from "./batch-row.ts";
import type { QueueBatch } from "./batch-row.ts";
import { readItem } from "./context.ts";
import type { QueueContext } from "./context.ts";
import { batchesById, removeBatches } from "./parts.ts";
import { queueWork } from "./topics.ts";

interface CancelBatch {
  readonly session: SessionRef;
  readonly id: string;
}

export function givenCancel(
  _: QueueContext,
  session: SessionName,
  id: string,
  wait?: WaitOptions,
): Call<CancelBatch> {
  const input = {
    session: sessionNamed(session),
    id: checkedText("The id of a batch", id),
  };
  return { input, wait: onlyWait(wait) };
}

/**
 * Removes a batch from the queue, unless it is claimed. Its source counts as consumed, so enqueuing
 * it again by mistake does not bring it back.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const cancelBatch = storeOperation("cancelBatch", {
  key: (input) => input.session.id,
  *one({ clock }: QueueContext, { session: ref, id }: CancelBatch): Tx<QueueBatch | undefined> {
    const session = yield* lockedSession(ref);
    const now = instantOf(() => clock.now());
    const [found] = yield* batchesById(session.key, [id]);
    if (found === undefined) return undefined;
    if (isClaimed(found, yield* liveFence(session, now))) return undefined;
    const [batch] = yield* withItems([found]);
    yield* removeBatches(session.key, [found], now);
    yield* announce(queueWork, session.id);
    return batch;
  },
});

/** Leaves out unreadable items: the batch is gone, and its caller needs the rest. */
export function shownCancelled(
  context: QueueContext,
  batch: QueueBatch | undefined,
): QueueBatch<unknown> | undefined {
  return (
    batch && {
      ...batch,
      items: batch.items.flatMap((item) => undamaged(() => readItem(context, item)) ?? []),
    }
  );
}
