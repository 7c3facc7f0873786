import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import {
  isFence,
  isLive,
  leaseLost,
  type HeldLease,
  type LeaseFence,
  type LeaseHolder,
  type LeaseLoss,
  type LeaseState,
} from "../../model/lease.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import { isRecord } from "../../model/values/spoken-kind.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { StoreOperation, Tx } from "../../sql/operation.ts";
import { sessionNamed } from "../session-name.ts";
import { livingSession, lockedSession, type SessionRef, type SessionRoot } from "../session-row.ts";
import { acquireOf, renewOf } from "./acquire.ts";
import type {
  AcquireLease,
  HeldRef,
  HolderLease,
  LeaseContext,
  LeaseKeeper,
  LeaseOutcome,
  LeaseRhythm,
  RenewLease,
} from "./context.ts";
import {
  assertHeld,
  endExpiredOf,
  judgeOf,
  readHolder,
  recordEndsOf,
  recordFoundEnds,
  releaseHeld,
  releaseOf,
  type Held,
  type JudgedLease,
  type LeaseEnds,
} from "./ends.ts";
import { keepLease } from "./keeper.ts";
import { clearLease, expireLease, leaseState, writeLease, type LeaseReading } from "./lease-row.ts";
import { leaseChanged } from "./topics.ts";
import { takeLease } from "./wait.ts";

/**
 * Sessions and processes are worked on under leases: one holder at a time, and
 * a fence that only grows. Both kinds have the same columns and the same
 * operations, which are written once over what a kind says here.
 */
export interface LeaseKind<Ref, Root extends LeasedRoot, L> {
  /** Ends the names of its operations: `acquireLease`, `acquireProcessLease`. */
  readonly noun: "Lease" | "ProcessLease";
  /** What waiters listen for, with the id of the root: its lease has another holder, or none. */
  readonly topic: string;
  /** The root in words, for errors. */
  readonly named: (id: string) => string;
  readonly idOf: (ref: Ref) => string;
  readonly refOf: (root: Root) => Ref;
  /** The root, locked until the transaction ends: what is decided by its lease holds until then. */
  readonly lock: (ref: Ref) => Tx<Root>;
  /** The same for reads, which lock nothing. */
  readonly find: (ref: Ref) => Tx<Root>;
  /** Whether `lock` refused because the root is no longer there. */
  readonly isGone: (error: unknown) => boolean;
  /** Throws for a root that nobody may work on. */
  readonly assertLeasable: (root: Root) => void;
  /**
   * Whether an incarnation that asks again shares the lease that it has.
   * Otherwise it gets a new one, and the one before is over.
   */
  readonly isShared: boolean;
  /** Whether every new holder is announced; otherwise only one that ends the claims of another. */
  readonly announcesHolders: boolean;
  readonly rows: LeaseRows<Root>;
  /** What the holder is given. */
  readonly leaseOf: (root: Root, held: HeldLease) => L;
  readonly lost: (
    id: string,
    reason: LeaseLoss,
    options?: { readonly cause?: unknown },
  ) => HoldfastError;
}

/** The row that a lease belongs to. */
export interface LeasedRoot {
  readonly key: number;
  readonly id: string;
}

/** The statements of one table of leases: identifiers cannot be parameters. Those that change a lease have its root locked. */
interface LeaseRows<Root extends LeasedRoot = LeasedRoot> {
  readonly read: (root: Root) => Tx<LeaseState>;
  readonly write: (root: Root, lease: HeldLease) => Tx<void>;
  /** Leaves nothing of a lease but its fence, and how those before it ended. */
  readonly clear: (key: number) => Tx<number>;
  /** Records when a lease was found to have run out: from then on it is over, also for a clock that is set back. */
  readonly expire: (key: number, at: number) => Tx<number>;
}

/** What is done with the leases of one kind in transactions. */
export interface LeaseTransactions<Ref, Root extends LeasedRoot, L> {
  readonly kind: LeaseKind<Ref, Root, L>;
  readonly acquire: StoreOperation<LeaseContext, AcquireLease<Ref>, LeaseOutcome<L>>;
  readonly renew: StoreOperation<LeaseContext, RenewLease<Ref>, L>;
  readonly release: StoreOperation<LeaseContext, HeldRef<Ref>, boolean>;
  readonly judge: StoreOperation<
    LeaseContext,
    { readonly of: Ref },
    LeaseReading & { readonly at: number }
  >;
  readonly endExpired: StoreOperation<LeaseContext, JudgedLease<Ref>, boolean>;
  readonly recordEnds: StoreOperation<
    LeaseContext,
    LeaseEnds<Ref>,
    ReadonlyMap<string, LeaseHolder | undefined>
  >;
}

/** The leases of one kind. */
export interface LeaseOperations<
  Ref,
  Root extends LeasedRoot,
  L extends HolderLease,
> extends LeaseTransactions<Ref, Root, L> {
  /** Lets only the holder pass: see `assertHeld`. */
  readonly assertHeld: (
    context: LeaseContext,
    root: Root,
    fence: LeaseFence | undefined,
  ) => Tx<Held>;
  /** Who holds a lease. One that is found to have run out is recorded as over. */
  readonly holder: (
    context: LeaseContext,
    ref: Ref,
    wait: WaitOptions,
  ) => Promise<LeaseHolder | undefined>;
  /** Records ends that a read has found; tells who holds those that were renewed meanwhile. */
  readonly recordFoundEnds: (
    context: LeaseContext,
    ends: LeaseEnds<Ref>,
    wait: WaitOptions,
  ) => Promise<ReadonlyMap<string, LeaseHolder | undefined>>;
  /** Takes a lease that nobody holds, or whose holder has died. */
  readonly take: (
    context: LeaseContext,
    request: AcquireLease<Ref>,
    wait: WaitOptions,
  ) => Promise<LeaseOutcome<L>>;
  /** Renews a lease in the background. */
  readonly keep: (
    context: LeaseContext,
    held: { readonly of: Ref; readonly lease: L },
    rhythm: LeaseRhythm,
  ) => LeaseKeeper<L>;
}

export function leaseOperations<Ref, Root extends LeasedRoot, L extends HolderLease>(
  kind: LeaseKind<Ref, Root, L>,
): LeaseOperations<Ref, Root, L> {
  const endExpired = endExpiredOf(kind);
  const transactions: LeaseTransactions<Ref, Root, L> = {
    kind,
    acquire: acquireOf(kind),
    renew: renewOf({ kind, endExpired }),
    release: releaseOf(kind),
    judge: judgeOf(kind),
    endExpired,
    recordEnds: recordEndsOf(kind),
  };
  return {
    ...transactions,
    assertHeld: (context, root, fence) => assertHeld(transactions, context, root, fence),
    holder: (context, ref, wait) => readHolder(transactions, context, ref, wait),
    recordFoundEnds: (context, ends, wait) => recordFoundEnds(transactions, context, ends, wait),
    take: (context, request, wait) => takeLease(transactions, context, request, wait),
    keep: (context, held, rhythm) => keepLease(transactions, context, held, rhythm),
  };
}

/** The lease of a session. */
export interface Lease extends LeaseFence {
  readonly session: { readonly id: SessionId; readonly generation: number };
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/** The leases of sessions. */
export const sessionLeases: LeaseOperations<SessionRef, SessionRoot, Lease> = leaseOperations({
  noun: "Lease",
  topic: leaseChanged,
  named: (id) => `session "${id}"`,
  idOf: ({ id }) => id,
  refOf: ({ id, generation }) => ({ id, generation }),
  lock: lockedSession,
  find: livingSession,
  isGone: (error) =>
    isHoldfastError(error) &&
    (error.code === "SESSION_NOT_FOUND" || error.code === "SESSION_DELETED"),
  assertLeasable: () => undefined,
  isShared: true,
  announcesHolders: false,
  rows: {
    read: leaseState,
    write: writeLease,
    clear: clearLease,
    expire: expireLease,
  },
  leaseOf: ({ id, generation }, { owner, incarnation, token, fence, claimedAt, expiresAt }) => ({
    session: { id, generation },
    owner,
    incarnation,
    token,
    fence,
    claimedAt,
    expiresAt,
  }),
  lost: (id, reason, options) => leaseLost(id as SessionId, reason, options),
});

/**
 * Lets only the holder of a session's lease pass, and answers the instant by
 * which it was judged. The session is locked, so that the answer holds until
 * the transaction ends. A lease that has run out is recorded as over once the
 * call has rolled back, and before its caller learns of it.
 *
 * @throws HoldfastError `LEASE_LOST`; `details.reason` says how.
 */
export function* assertFence(
  context: LeaseContext,
  session: SessionRoot,
  fence: LeaseFence | undefined,
): Tx<number> {
  return (yield* sessionLeases.assertHeld(context, session, fence)).at;
}

/**
 * Releases the lease of a locked session, and tells its keepers once that is
 * durable. Silent when another holder has it by now, or none; an own one that
 * has run out is released too.
 */
export function releaseLease(
  context: Pick<LeaseContext, "database">,
  session: SessionRoot,
  fence: LeaseFence,
): Tx<boolean> {
  return releaseHeld(sessionLeases.kind, context, session, fence);
}

/** The fence of a session's lease while it is held; 0, which no lease has, while it is not. */
export function* liveFence(session: SessionRoot, now: number): Tx<number> {
  const state = yield* leaseState(session);
  return state.kind === "held" && isLive(state.lease, now) ? state.lease.fence : 0;
}

/**
 * A lease as a caller shows it: all its parts are there. Whether it counts is
 * for the database to say. Nothing of it is repeated in the error.
 *
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function givenLease(given: Lease): {
  readonly of: SessionRef;
  readonly fence: LeaseFence;
} {
  if (isFence(given) && isRecord((given as Partial<Lease>).session)) {
    const { owner, incarnation, token, fence, session } = given;
    const shown = { owner, incarnation, token, fence };
    return { of: sessionNamed(session), fence: shown };
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a lease as acquire, waitForLease and renew return it, with its session, owner, incarnation, token and fence. Pass that object as it is.",
    { option: "lease" },
  );
}
