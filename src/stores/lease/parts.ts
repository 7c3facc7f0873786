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
 * Work on sessions and processes needs a lease: one holder at a time, and a fence that only grows.
 * Both kinds have the same columns and the same operations, which are written once over the
 * description of a kind.
 */
export interface LeaseKind<Ref, Root extends LeasedRoot, L> {
  /** The suffix of its operations' names: `acquireLease`, `acquireProcessLease`. */
  readonly noun: "Lease" | "ProcessLease";
  /**
   * The topic that waiters listen to, with the id of the root: its lease has another holder or is
   * free.
   */
  readonly topic: string;
  /** The root in words, for errors. */
  readonly named: (id: string) => string;
  readonly idOf: (ref: Ref) => string;
  readonly refOf: (root: Root) => Ref;
  /** Locks the root until the transaction ends, so decisions by its lease stay true until then. */
  readonly lock: (ref: Ref) => Tx<Root>;
  /** Finds the root for reads, and locks nothing. */
  readonly find: (ref: Ref) => Tx<Root>;
  /** Tests whether `lock` refused because the root no longer exists. */
  readonly isGone: (error: unknown) => boolean;
  /** Throws for a root that must not be worked on; without it, all roots are accepted. */
  readonly assertLeasable?: (root: Root) => Tx<void>;
  /**
   * True when an incarnation that asks again shares its current lease. Otherwise it gets a new
   * lease, and the old one ends.
   */
  readonly isShared: boolean;
  /**
   * True when every new holder is announced; otherwise only a holder that ends the claims of
   * another is.
   */
  readonly announcesHolders: boolean;
  readonly rows: LeaseRows<Root>;
  /** The lease as its holder gets it. */
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

/**
 * The statements of one table of leases, since identifiers cannot be parameters. The root of a
 * lease is locked before the lease changes.
 */
interface LeaseRows<Root extends LeasedRoot = LeasedRoot> {
  readonly read: (root: Root) => Tx<LeaseState>;
  readonly write: (root: Root, lease: HeldLease) => Tx<void>;
  /** Clears everything of a lease except its fence and the ends of earlier leases. */
  readonly clear: (key: number) => Tx<number>;
  /**
   * Records the instant at which a lease was found expired. From then on it has ended, even for a
   * clock that is set back.
   */
  readonly expire: (key: number, at: number) => Tx<number>;
}

/** Operations on the leases of one kind inside transactions. */
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

/** Operations on the leases of one kind. */
export interface LeaseOperations<
  Ref,
  Root extends LeasedRoot,
  L extends HolderLease,
> extends LeaseTransactions<Ref, Root, L> {
  /** Accepts only the holder: see `assertHeld`. */
  readonly assertHeld: (
    context: LeaseContext,
    root: Root,
    fence: LeaseFence | undefined,
  ) => Tx<Held>;
  /** Returns the holder of a lease. An expired lease is recorded as ended. */
  readonly holder: (
    context: LeaseContext,
    ref: Ref,
    wait: WaitOptions,
  ) => Promise<LeaseHolder | undefined>;
  /**
   * Records expired leases that a read has found. Returns the holders of leases that were renewed
   * in between.
   */
  readonly recordFoundEnds: (
    context: LeaseContext,
    ends: LeaseEnds<Ref>,
    wait: WaitOptions,
  ) => Promise<ReadonlyMap<string, LeaseHolder | undefined>>;
  /** Acquires a lease that is free or whose holder has died. */
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
 * Accepts only the holder of a session's lease, and returns the instant at which the lease was
 * judged. The session is locked, so the answer stays true until the transaction ends. An expired
 * lease is recorded as ended after the rollback of the call, and before its caller learns of it.
 *
 * @throws HoldfastError `LEASE_LOST`; `details.reason` names the reason.
 */
export function* assertFence(
  context: LeaseContext,
  session: SessionRoot,
  fence: LeaseFence | undefined,
): Tx<number> {
  return (yield* sessionLeases.assertHeld(context, session, fence)).at;
}

/**
 * Releases the lease of a locked session, and notifies its keepers once that is durable. Does
 * nothing when another holder has it or it is free. The caller's own expired lease is released too.
 */
export function releaseLease(
  context: Pick<LeaseContext, "database">,
  session: SessionRoot,
  fence: LeaseFence,
): Tx<boolean> {
  return releaseHeld(sessionLeases.kind, context, session, fence);
}

/** The fence of a session's lease while it is held. Otherwise 0, which no lease has. */
export function* liveFence(session: SessionRoot, now: number): Tx<number> {
  const state = yield* leaseState(session);
  return state.kind === "held" && isLive(state.lease, now) ? state.lease.fence : 0;
}

/**
 * Validates a lease that a caller passes: all its parts must exist. The database decides whether it
 * is current. The error repeats nothing of it.
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
    "Expected a lease as acquire, waitForLease and renew return it, with its session, owner, incarnation, token and fence. Pass that object unchanged.",
    { option: "lease" },
  );
}
