import { unreachable } from "../../model/errors.ts";
import type { LeaseFence } from "../../model/lease.ts";
import { batchesPerClaimMax, commandPrefix, turnPrefix, type Boundary } from "../../model/queue.ts";
import { checkedCount, checkedText } from "../../model/shape.ts";
import { newToken } from "../../model/ids/token.ts";
import { integersOf, keysOf } from "../../sql/dialect.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { afterwards, announce, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { assertFence, givenLease, type Lease } from "../lease/parts.ts";
import { pageBytesMax, rowsWithin } from "../list.ts";
import { onlyWait, optionsAndWait, type Call } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { lockedSession, type SessionRef } from "../session-row.ts";
import {
  batchColumns,
  itemBytes,
  policyOf,
  withItems,
  type BatchRow,
  type QueueBatch,
} from "./batch-row.ts";
import {
  checkedBatchIds,
  checkedBoundary,
  checkedClaim,
  readBatch,
  type QueueContext,
} from "./context.ts";
import { batchesById, isOf, type QueueClaimRef } from "./parts.ts";
import { queueWork } from "./topics.ts";

export interface ClaimCommandOptions extends WaitOptions {
  /**
   * The caller's name for the claim. A repeated call with the same key and the same lease returns
   * the same work: use it after `OUTCOME_UNKNOWN`. Each new claim needs a new key. Without a key,
   * work whose answer was lost stays claimed until the lease ends.
   */
  readonly key?: string;
}

export interface ClaimOptions extends ClaimCommandOptions {
  /** The state of the session's turn; defaults to `idle`, no running turn. */
  readonly boundary?: Boundary;
}

export interface ClaimTurnOptions extends ClaimOptions {
  /**
   * The largest number of batches, 0 to 256; defaults to 256. Large batches make it fewer: about a
   * megabyte together, and at least one.
   */
  readonly limit?: number;
}

/** Batches that the holder of the session's lease works on. */
export interface ClaimedWork {
  readonly ref: QueueClaimRef;
  /** The fence of the lease. The claim is valid while the lease has it. */
  readonly fence: number;
  readonly batches: readonly QueueBatch<unknown>[];
}

/** The requested work at the front of a queue. Nothing is ever skipped to reach it. */
type WantedWork =
  | { readonly kind: "command" }
  | {
      readonly kind: "turn";
      readonly boundary: Boundary;
      readonly limit: number;
    }
  /** Exactly these batches in this order, or nothing. */
  | {
      readonly kind: "these";
      readonly boundary: Boundary;
      readonly ids: readonly string[];
    };

interface ClaimWork {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
  readonly want: WantedWork;
  /** A token that no other caller can know. */
  readonly claim: string;
  /**
   * True when the claim may have been made before. Work that it took under this lease is then
   * returned again.
   */
  readonly mayBeRepeated: boolean;
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenClaimTurn(
  context: QueueContext,
  lease: Lease,
  given?: ClaimTurnOptions,
): Call<ClaimWork> {
  const { options, wait } = optionsAndWait(given, ["boundary", "key", "limit"]);
  const { boundary, key, limit = batchesPerClaimMax } = options;
  const want = {
    kind: "turn",
    boundary: checkedBoundary(boundary),
    limit: checkedCount("limit", limit, { max: batchesPerClaimMax }),
  } as const;
  return { input: claimOf(context, lease, want, key), wait };
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenClaimCommand(
  context: QueueContext,
  lease: Lease,
  given?: ClaimCommandOptions,
): Call<ClaimWork> {
  const { options, wait } = optionsAndWait(given, ["key"]);
  return {
    input: claimOf(context, lease, { kind: "command" }, options.key),
    wait,
  };
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenClaimBatches(
  context: QueueContext,
  lease: Lease,
  ids: readonly string[],
  given?: ClaimOptions,
): Call<ClaimWork> {
  const { options, wait } = optionsAndWait(given, ["boundary", "key"]);
  const want = {
    kind: "these",
    boundary: checkedBoundary(options.boundary),
    ids: checkedBatchIds(ids),
  } as const;
  return { input: claimOf(context, lease, want, options.key), wait };
}

function claimOf(
  { database, entropy }: QueueContext,
  lease: Lease,
  want: WantedWork,
  key: string | undefined,
): ClaimWork {
  const { of: session, fence } = givenLease(lease);
  // Only the holder of the lease can know the token, whatever its key is.
  const claim =
    key === undefined
      ? newToken(entropy)
      : database.sha256Hex(`${fence.token} ${checkedText("The key of a claim", key)}`);
  return { session, fence, want, claim, mayBeRepeated: key !== undefined };
}

/**
 * Claims work from the front of a session's queue. Skips batches that are not available yet or
 * already claimed under this lease. A claim under an earlier lease is no longer valid.
 *
 * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`, or `CORRUPT_ROW` for
 *   an unreadable payload: then nothing stays claimed.
 */
export const claimWork = storeOperation("claimWork", {
  key: (input) => input.session.id,
  *one(context: QueueContext, input: ClaimWork): Tx<ClaimedWork | undefined> {
    const { fence, want, claim } = input;
    const limit = limitOf(want);
    if (limit === 0) return undefined;
    const session = yield* lockedSession(input.session);
    const now = yield* assertFence(context, session, fence);
    const before = input.mayBeRepeated ? yield* claimedBy(session.key, fence.fence, claim) : [];
    if (before.length > 0) return yield* claimAgain(context, input, before);
    const line = yield* claimable(session.key, fence.fence, now, limit);
    const prefix = line.slice(0, prefixOf(want, line));
    if (prefix.length === 0) return undefined;
    const taken = want.kind === "turn" ? yield* fitting(prefix) : prefix;
    yield* run(sql`
      UPDATE holdfast_queue_batch
      SET claim = ${claim}, claim_fence = ${fence.fence}, claim_size = ${taken.length}
      WHERE key IN ${integersOf(taken.map(({ key }) => key))}`);
    return workOf(context, input, yield* withItems(taken));
  },
});

/**
 * The batches that fit into a page with all their items, at least one. The next claim takes the
 * others.
 */
export function* fitting(prefix: readonly BatchRow[]): Tx<readonly BatchRow[]> {
  if (prefix.length === 1) return prefix;
  const sizes = yield* rows<{ readonly bytes: number }>(sql`
    SELECT ${itemBytes} AS bytes FROM holdfast_queue_batch b
    WHERE b.key IN ${integersOf(prefix.map(({ key }) => key))} ORDER BY b.key`);
  const bytes = sizes.map((each) => each.bytes);
  return prefix.slice(0, rowsWithin(bytes, pageBytesMax));
}

/**
 * Returns the work of a claim whose answer was lost. If it is unreadable now, the work is released,
 * since its caller never got it.
 */
function* claimAgain(
  context: QueueContext,
  input: ClaimWork,
  taken: readonly BatchRow[],
): Tx<ClaimedWork> {
  const batches = yield* withItems(taken);
  try {
    return workOf(context, input, batches);
  } catch (error) {
    const { session, claim } = input;
    const ref = { claim, batches: taken.map(({ id }) => id) };
    yield* afterwards({
      refused: () => releaseUnread(context, { session, claim: ref }),
    });
    throw error;
  }
}

const attemptsMax = 3;

/** Retries the release. Work that stays claimed even so is free when the lease ends. */
async function releaseUnread(context: QueueContext, input: AbandonClaim): Promise<void> {
  const { database } = context;
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1)
    try {
      await database.write(abandonClaim(context), input);
      return;
    } catch {
      await database.pause();
    }
}

/** @throws HoldfastError `CORRUPT_ROW` for an unreadable payload. */
function workOf(
  context: QueueContext,
  { claim, fence }: ClaimWork,
  batches: readonly QueueBatch[],
): ClaimedWork {
  return {
    ref: { claim, batches: batches.map(({ id }) => id) },
    fence: fence.fence,
    batches: batches.map((batch) => readBatch(context, batch)),
  };
}

/** The batches of a claim that is repeated because its answer was lost. */
function* claimedBy(session: number, fence: number, claim: string): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE session = ${session} AND claim_fence = ${fence} AND claim = ${claim} ORDER BY key`);
}

/**
 * The front of a queue: available batches without a valid claim. The filter comes before the limit,
 * so claimed batches cannot hide ready ones.
 */
export function* claimable(
  session: number,
  liveFence: number,
  now: number,
  limit: number,
): Tx<readonly BatchRow[]> {
  return yield* rows<BatchRow>(sql`
    SELECT ${batchColumns} FROM holdfast_queue_batch
    WHERE ${keysOf(session, 0)} AND available_at <= ${now} AND (claim IS NULL OR claim_fence <> ${liveFence})
    ORDER BY session, key LIMIT ${limit}`);
}

function limitOf(want: WantedWork): number {
  switch (want.kind) {
    case "command":
      return 1;
    case "turn":
      return want.limit;
    case "these":
      return want.ids.length;
    default:
      return unreachable(want);
  }
}

function prefixOf(want: WantedWork, line: readonly BatchRow[]): number {
  const policies = line.map(policyOf);
  switch (want.kind) {
    case "command":
      return commandPrefix(policies);
    case "turn":
      return turnPrefix(policies, want.boundary, want.limit);
    case "these": {
      const { boundary, ids } = want;
      const taken = commandPrefix(policies) || turnPrefix(policies, boundary, ids.length);
      const isWanted = taken === ids.length && ids.every((id, index) => id === line[index]?.id);
      return isWanted ? taken : 0;
    }
    default:
      return unreachable(want);
  }
}

interface AbandonClaim {
  readonly session: SessionRef;
  readonly claim: QueueClaimRef;
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenAbandon(
  _: QueueContext,
  session: SessionName,
  claim: QueueClaimRef,
  wait?: WaitOptions,
): Call<AbandonClaim> {
  const input = { session: sessionNamed(session), claim: checkedClaim(claim) };
  return { input, wait: onlyWait(wait) };
}

/**
 * Releases claimed batches, so that they can be claimed again at once. Returns their number.
 * Batches that another holder has claimed since are skipped, and those of a turn: they return to the
 * queue when it ends.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND` or `SESSION_DELETED`.
 */
export const abandonClaim = storeOperation("abandonClaim", {
  key: (input) => input.session.id,
  *one(_: QueueContext, { session: ref, claim }: AbandonClaim): Tx<number> {
    const session = yield* lockedSession(ref);
    const found = yield* batchesById(session.key, claim.batches);
    const own = found.filter((batch) => isOf(batch, claim) && batch.turn === null);
    if (own.length === 0) return 0;
    yield* run(sql`
      UPDATE holdfast_queue_batch SET claim = NULL, claim_fence = NULL, claim_size = NULL
      WHERE key IN ${integersOf(own.map(({ key }) => key))}`);
    yield* announce(queueWork, session.id);
    return own.length;
  },
});
