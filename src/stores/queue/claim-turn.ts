import {
  batchesPerClaimMax,
  commandPrefix,
  isPolicy,
  turnPrefix,
  type Boundary,
  type QueuePolicy,
} from "../../model/queue.ts";
import { failedTurnsMax } from "../../model/session/agent.ts";
import { checkedCount, checkedText } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { integersOf, keysOf } from "../../sql/dialect.ts";
import { rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { undamaged } from "../damage.ts";
import { optionsAndWait, type Call } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import { batchColumns, policyOf, withItems, type BatchRow, type QueueBatch } from "./batch-row.ts";
import { fitting } from "./claim.ts";
import { checkedBoundary, readBatch, readItem, type QueueContext } from "./context.ts";
import type { QueueClaimRef } from "./parts.ts";
import { assertTurn } from "./turn-row.ts";

export interface ClaimForOptions extends WaitOptions {
  /** Defaults to `idle`: the beginning of the turn. */
  readonly boundary?: Boundary;
  /** The largest number of batches, 0 to 256; defaults to 256. About a megabyte together. */
  readonly limit?: number;
  /**
   * The name of this claim within the turn: asked again with the same name, it has the same
   * batches. Defaults to the boundary, so each further claim of a turn needs one.
   */
  readonly key?: string;
}

/** The work of a turn. Its batches return to the queue if its run ends without consuming them. */
export interface TurnWork {
  /** Names all of them, for `sessions.commit`. */
  readonly ref: QueueClaimRef;
  readonly batches: readonly QueueBatch<unknown>[];
  /**
   * Batches on which three turns have ended without consuming them. They are not to be worked on
   * again: the turn reports them and consumes them. Unreadable items are left out.
   */
  readonly setAside: readonly QueueBatch<unknown>[];
}

interface ClaimForTurn {
  readonly session: SessionRef;
  readonly boundary: Boundary;
  readonly limit: number;
  readonly key: string;
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenClaimFor(
  _: QueueContext,
  session: SessionName,
  given?: ClaimForOptions,
): Call<ClaimForTurn> {
  const { options, wait } = optionsAndWait(given, ["boundary", "limit", "key"]);
  const { limit = batchesPerClaimMax, key } = options;
  const boundary = checkedBoundary(options.boundary);
  const input = {
    session: sessionNamed(session),
    boundary,
    limit: checkedCount("limit", limit, { max: batchesPerClaimMax }),
    key: key === undefined ? boundary : `key ${checkedText("The key of a claim", key)}`,
  };
  return { input, wait };
}

/**
 * Claims work for the open turn, in a transaction of its run. The claim ends with the run, however
 * that ends, and not before: a parked turn keeps it.
 *
 * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, or `CORRUPT_ROW` for
 *   an unreadable payload, or an unreadable batch at the front: then nothing is claimed.
 */
export const claimForTurn = storeOperation("claimForTurn", {
  snapshotSafe: true,
  key: (input) => input.session.id,
  *one(context: QueueContext, input: ClaimForTurn): Tx<TurnWork | undefined> {
    const session = yield* lockedSession(input.session);
    const { turn, at } = yield* assertTurn(context, session);
    const claim = context.database.sha256Hex(`holdfast:turn-claim:1:${turn}:${input.key}`);
    const before = yield* rows<BatchRow>(sql`
      SELECT ${batchColumns} FROM holdfast_queue_batch
      WHERE session = ${session.key} AND turn = ${turn} AND claim = ${claim} ORDER BY session, turn, key`);
    if (before.length > 0) return workOf(context, claim, yield* withItems(before));
    const line = yield* claimableForTurn(session.key, at, input);
    const aside = input.boundary === "idle" ? yield* asideFor(session.key, line.length) : [];
    if (line.length + aside.length === 0) return undefined;
    const taken = yield* fitting([...line, ...aside]);
    yield* run(sql`
      UPDATE holdfast_queue_batch
      SET claim = ${claim}, claim_fence = NULL, claim_size = ${taken.length}, turn = ${turn}
      WHERE key IN ${integersOf(taken.map(({ key }) => key))}`);
    return workOf(context, claim, yield* withItems(taken));
  },
});

/** The batches at the front that belong to one turn, or a command by itself. */
function* claimableForTurn(
  session: number,
  at: number,
  { boundary, limit }: ClaimForTurn,
): Tx<readonly BatchRow[]> {
  if (limit === 0) return [];
  // A claim under a lease is not valid any longer: no lease is held.
  const line = yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE ${keysOf(session, 0)} AND available_at <= ${at} AND turn IS NULL AND is_held_back = 0
    ORDER BY session, key LIMIT ${limit}`);
  const policies = frontOf(line);
  const command = boundary === "idle" ? commandPrefix(policies) : 0;
  return line.slice(0, command || turnPrefix(policies, boundary, limit));
}

/**
 * The policies of the line up to a batch whose policy is unreadable. The claim ends before it.
 * @throws HoldfastError `CORRUPT_ROW` when it is the first
 */
function frontOf(line: readonly BatchRow[]): readonly QueuePolicy[] {
  const unreadable = line.findIndex((batch) => !isPolicy(batch));
  return line.slice(0, unreadable > 0 ? unreadable : undefined).map(policyOf);
}

function* asideFor(session: number, taken: number): Tx<readonly BatchRow[]> {
  const limit = batchesPerClaimMax - taken;
  if (limit <= 0) return [];
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE ${keysOf(session, 0)} AND turn IS NULL AND is_held_back = 1 AND failed_turns >= ${failedTurnsMax}
    ORDER BY session, key LIMIT ${limit}`);
}

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable payload of a batch to work on */
function workOf(context: QueueContext, claim: string, batches: readonly QueueBatch[]): TurnWork {
  const isAside = ({ failedTurns }: QueueBatch): boolean => failedTurns >= failedTurnsMax;
  return {
    ref: { claim, batches: batches.map(({ id }) => id) },
    batches: batches.filter((batch) => !isAside(batch)).map((batch) => readBatch(context, batch)),
    setAside: batches.filter(isAside).map((batch) => ({
      ...batch,
      items: batch.items.flatMap((item) => undamaged(() => readItem(context, item)) ?? []),
    })),
  };
}
