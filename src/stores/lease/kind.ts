import type { HoldfastError } from "../../model/errors.ts";
import type {
  HeldLease,
  LeaseFence,
  LeaseHolder,
  LeaseLoss,
  LeaseState,
} from "../../model/lease.ts";
import type { StoreOperation, Tx } from "../../sql/operation.ts";
import type { StoreContext } from "../context.ts";
import {
  acquireOf,
  renewOf,
  type AcquireLease,
  type LeaseOutcome,
  type RenewLease,
} from "./acquire.ts";
import {
  endExpiredOf,
  judgeOf,
  recordEndsOf,
  releaseOf,
  type HeldRef,
  type JudgedLease,
  type LeaseEnds,
} from "./ends.ts";
import type { LeaseReading } from "./lease-row.ts";

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
export interface LeaseRows<Root extends LeasedRoot = LeasedRoot> {
  readonly read: (root: Root) => Tx<LeaseState>;
  readonly write: (root: Root, lease: HeldLease) => Tx<void>;
  /** Leaves nothing of a lease but its fence, and how those before it ended. */
  readonly clear: (key: number) => Tx<number>;
  /** Records when a lease was found to have run out: from then on it is over, also for a clock that is set back. */
  readonly expire: (key: number, at: number) => Tx<number>;
}

/** What operations on leases need besides their input. */
export type LeaseContext = Pick<StoreContext, "database" | "clock">;

/** A lease as its holder has it. */
export interface HolderLease extends LeaseFence {
  readonly expiresAt: number;
}

/** The operations on the leases of one kind. */
export interface LeaseOperations<Ref, Root extends LeasedRoot, L> {
  readonly kind: LeaseKind<Ref, Root, L>;
  readonly acquire: StoreOperation<
    LeaseContext,
    AcquireLease<Ref>,
    LeaseOutcome<L>
  >;
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

export function leaseOperations<Ref, Root extends LeasedRoot, L>(
  kind: LeaseKind<Ref, Root, L>,
): LeaseOperations<Ref, Root, L> {
  const endExpired = endExpiredOf(kind);
  return {
    kind,
    acquire: acquireOf(kind),
    renew: renewOf({ kind, endExpired }),
    release: releaseOf(kind),
    judge: judgeOf(kind),
    endExpired,
    recordEnds: recordEndsOf(kind),
  };
}
