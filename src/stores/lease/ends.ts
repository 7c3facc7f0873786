import { instantOf } from "../../model/time/clock.ts";
import {
  isSameLease,
  lossOf,
  type HeldLease,
  type LeaseFence,
  type LeaseHolder,
} from "../../model/lease.ts";
import type { WaitOptions } from "../../sql/database.ts";
import {
  afterwards,
  announce,
  storeOperation,
  type StoreOperation,
  type Tx,
} from "../../sql/operation.ts";
import type { HeldRef, LeaseContext } from "./context.ts";
import { tellReleased } from "./keeper.ts";
import { readingOf, type LeaseReading } from "./lease-row.ts";
import type { LeasedRoot, LeaseKind, LeaseTransactions } from "./parts.ts";

/**
 * The ends of leases. An expired lease is recorded before any caller learns of it. Without a
 * record, a clock that is set back would accept the same lease again, in this process or another
 * one.
 */

export type JudgedKind<Ref, Root extends LeasedRoot, L> = Pick<
  LeaseTransactions<Ref, Root, L>,
  "kind" | "endExpired"
>;

/** A valid lease, and the instant at which it was judged. */
export interface Held {
  readonly lease: HeldLease;
  readonly at: number;
}

/**
 * Accepts only the holder of a lease. Its root is locked, so the answer stays true until the
 * transaction ends. A refused call rolls back, so the end of an expired lease is recorded after it,
 * in a separate transaction.
 * @throws HoldfastError the error of the kind for a lost lease; `details.reason` is the way it was
 *   lost.
 */
export function* assertHeld<Ref, Root extends LeasedRoot, L>(
  { kind, endExpired }: JudgedKind<Ref, Root, L>,
  context: LeaseContext,
  root: Root,
  fence: LeaseFence | undefined,
): Tx<Held> {
  const { database, clock } = context;
  const state = yield* kind.rows.read(root);
  const at = instantOf(() => clock.now());
  const loss = lossOf(state, fence, at);
  if (loss === undefined && state.kind === "held") return { lease: state.lease, at };
  if (loss === "expired") {
    const judged = { of: kind.refOf(root), fence, at };
    const record = (): Promise<unknown> => database.write(endExpired(context), judged);
    yield* afterwards({
      refused: record,
      // The body has caught the error and continues. Its caller still knows that the lease has
      // ended.
      durable: () => void record().catch(() => undefined),
    });
  }
  throw kind.lost(root.id, loss ?? "released");
}

/** A judged lease. */
export interface JudgedLease<Ref> {
  readonly of: Ref;
  readonly fence: LeaseFence | undefined;
  /** The instant at which it was found expired. */
  readonly at: number;
}

/**
 * Records that a lease had expired at an instant; false when it had not, or when another holder has
 * it.
 */
export function endExpiredOf<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): StoreOperation<LeaseContext, JudgedLease<Ref>, boolean> {
  return storeOperation(`endExpired${kind.noun}`, {
    key: (input: JudgedLease<Ref>) => kind.idOf(input.of),
    *one(_: LeaseContext, { of, fence, at }) {
      const root = yield* kind.lock(of);
      const state = yield* kind.rows.read(root);
      if (state.kind === "free" || lossOf(state, fence, at) !== "expired") return false;
      yield* recordEnd(kind, root, at);
      return true;
    },
  });
}

function* recordEnd<Ref, Root extends LeasedRoot, L>(
  { rows, topic }: LeaseKind<Ref, Root, L>,
  root: Root,
  at: number,
): Tx<void> {
  yield* rows.expire(root.key, at);
  yield* announce(topic, root.id);
}

/**
 * The holder of a lease, whether its end must still be recorded, and the instant at which it was
 * judged.
 */
export function judgeOf<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): StoreOperation<LeaseContext, { readonly of: Ref }, LeaseReading & { readonly at: number }> {
  return storeOperation(`judge${kind.noun}`, {
    key: ({ of }: { readonly of: Ref }) => kind.idOf(of),
    *one({ clock }: LeaseContext, { of }) {
      const root = yield* kind.find(of);
      const at = clock.now();
      return { ...readingOf(yield* kind.rows.read(root), at), at };
    },
  });
}

/** Leases that were found expired, in the order of the keys of their roots. */
export interface LeaseEnds<Ref> {
  readonly of: readonly Ref[];
  readonly at: number;
}

/**
 * Judges leases again once their roots are locked, and records the expired ones. Returns the
 * holders of the others, by id.
 */
export function recordEndsOf<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): StoreOperation<LeaseContext, LeaseEnds<Ref>, ReadonlyMap<string, LeaseHolder | undefined>> {
  return storeOperation(`record${kind.noun}Ends`, {
    key: ({ of: [first] }: LeaseEnds<Ref>) => (first === undefined ? "" : kind.idOf(first)),
    *one(_: LeaseContext, { of, at }) {
      const holders = new Map<string, LeaseHolder | undefined>();
      for (const ref of of) {
        const root = yield* lockUnlessGone(kind, ref);
        if (root === undefined) continue;
        const reading = readingOf(yield* kind.rows.read(root), at);
        holders.set(root.id, reading.holder);
        if (reading.isUnrecordedEnd) yield* recordEnd(kind, root, at);
      }
      return holders;
    },
  });
}

/**
 * Records expired leases that a read has found. Returns the leases that were renewed in between,
 * with their holders. On a read-only database it records nothing and returns none.
 */
export async function recordFoundEnds<Ref, Root extends LeasedRoot, L>(
  { recordEnds }: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  ends: LeaseEnds<Ref>,
  wait: WaitOptions,
): Promise<ReadonlyMap<string, LeaseHolder | undefined>> {
  if (ends.of.length === 0) return new Map();
  return context.database
    .write(recordEnds(context), ends, wait)
    .catch(() => new Map<string, LeaseHolder | undefined>());
}

/** Reads the holder of a lease. */
export async function readHolder<Ref, Root extends LeasedRoot, L>(
  leases: LeaseTransactions<Ref, Root, L>,
  context: LeaseContext,
  ref: Ref,
  wait: WaitOptions,
): Promise<LeaseHolder | undefined> {
  const { judge, kind } = leases;
  const { database } = context;
  const input = { of: ref };
  const reading = await database.read(judge(context), input, wait);
  if (!reading.isUnrecordedEnd) return reading.holder;
  const ends = { of: [ref], at: reading.at };
  const holders = await recordFoundEnds(leases, context, ends, wait);
  return holders.get(kind.idOf(ref));
}

/** Releases a lease; false, without an error, when it was no longer held or its root is gone. */
export function releaseOf<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): StoreOperation<LeaseContext, HeldRef<Ref>, boolean> {
  return storeOperation(`release${kind.noun}`, {
    key: (input: HeldRef<Ref>) => kind.idOf(input.of),
    *one(context: LeaseContext, { of, fence }) {
      const root = yield* lockUnlessGone(kind, of);
      if (root === undefined) return false;
      return yield* releaseHeld(kind, context, root, fence);
    },
  });
}

/** Locks the root; undefined when it no longer exists. */
function* lockUnlessGone<Ref, Root extends LeasedRoot, L>(
  { lock, isGone }: LeaseKind<Ref, Root, L>,
  ref: Ref,
): Tx<Root | undefined> {
  try {
    return yield* lock(ref);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/**
 * Releases a lease whose root is locked, and notifies its keepers once that is durable. Does
 * nothing when another holder has it or it is free. The caller's own expired lease is released too.
 */
export function* releaseHeld<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
  { database }: Pick<LeaseContext, "database">,
  root: Root,
  fence: LeaseFence,
): Tx<boolean> {
  const state = yield* kind.rows.read(root);
  const isHeld = state.kind === "held" && isSameLease(state.lease, fence);
  // Covers a lease that was released before: the answer to that call may have been lost.
  if (isHeld || lossOf(state, fence, 0) === "released")
    yield* afterwards({ durable: () => tellReleased(database, fence) });
  if (!isHeld) return false;
  yield* kind.rows.clear(root.key);
  yield* announce(kind.topic, root.id);
  return true;
}
