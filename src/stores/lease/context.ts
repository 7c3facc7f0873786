import { durationMs, type Duration } from "../../model/time/durations.ts";
import type { LeaseFence, LeaseHolder, LeaseOwner, ProvenDeath } from "../../model/lease.ts";
import { parseOwnerId, type OwnerId } from "../../model/ids/prefixed-id.ts";
import { checkedCount, checkedText, draftOf, givenObject, optionsOf } from "../../model/shape.ts";
import { newToken } from "../../model/ids/token.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import type { StoreContext } from "../context.ts";
import { optionsAndWait } from "../method.ts";
import { checkedInterval } from "../renewing.ts";
import type { Lease } from "./parts.ts";

/** The context that operations on leases need. */
export type LeaseContext = Pick<StoreContext, "database" | "clock">;

/** The caller that asks for a lease: the host's own name, and its current start. */
export interface LeaseClaimant {
  readonly owner: string;
  readonly incarnation: string;
  /**
   * The process whose death ends the lease; defaults to this process. With `null` it only ends by
   * time.
   */
  readonly process?: OwnerId | null;
}

export interface LeaseOptions extends WaitOptions {
  /** The length of the lease; defaults to 30 seconds. */
  readonly lease?: Duration;
}

export interface LeaseKeepOptions {
  /** The length of each extension; defaults to 30 seconds. */
  readonly lease?: Duration;
  /** The interval between renewals; defaults to a third of `lease`, which is also its maximum. */
  readonly every?: Duration;
}

/** The length of leases, and the interval between renewals. */
export interface LeaseRhythm {
  readonly leaseMs: number;
  readonly everyMs: number;
}

const leaseDefault: Duration = "30s";

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID` */
export function givenLeaseTime(given: LeaseOptions | undefined): {
  readonly leaseMs: number;
  readonly wait: WaitOptions;
} {
  const { options, wait } = optionsAndWait(given, ["lease"]);
  const { lease = leaseDefault } = options;
  return { leaseMs: durationMs(lease, "lease"), wait };
}

/** @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `lease`; `DURATION_INVALID` */
export function givenRhythm(given: LeaseKeepOptions | undefined): LeaseRhythm {
  const { lease = leaseDefault, every } = optionsOf(given, ["lease", "every"]);
  const leaseMs = durationMs(lease, "lease");
  const everyMs = every === undefined ? Math.floor(leaseMs / 3) : durationMs(every, "every");
  return { leaseMs, everyMs: checkedInterval(leaseMs, everyMs) };
}

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED`, `DURATION_INVALID` */
export function givenRequest(
  { database, entropy }: Pick<StoreContext, "database" | "entropy">,
  claimant: LeaseClaimant,
  options: LeaseOptions | undefined,
): { readonly request: LeaseRequest; readonly wait: WaitOptions } {
  const owner = givenOwner(database.owner, claimant);
  const { leaseMs, wait } = givenLeaseTime(options);
  return { request: { owner, token: newToken(entropy), leaseMs }, wait };
}

function givenOwner(here: OwnerId, claimant: LeaseClaimant): LeaseOwner {
  const {
    owner,
    incarnation,
    process = here,
  } = draftOf("the claimant", claimant, ["owner", "incarnation", "process"]);
  return {
    owner: checkedText("An owner", owner),
    incarnation: checkedText("An incarnation", incarnation),
    process: process === null ? null : parseOwnerId(process),
  };
}

/** Validates a holder that a caller saw. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
export function givenSeen(given: SeenHolder): SeenHolder {
  const { fence, process }: Pick<LeaseHolder, "fence" | "process"> = givenObject(
    "the observed holder",
    given,
  );
  return {
    fence: checkedCount("The fence of the observed holder", fence),
    process: process === null ? null : parseOwnerId(process),
  };
}

export type LeaseOutcome<L = Lease> =
  | { readonly kind: "acquired"; readonly lease: L }
  | { readonly kind: "busy"; readonly holder: LeaseHolder };

export interface AcquireLease<Ref> extends LeaseRequest {
  readonly of: Ref;
  /** The proven death of the holder that the caller saw. */
  readonly death?: ProvenDeath | undefined;
}

/** A request for a lease, with its claimant and its length. */
export interface LeaseRequest {
  readonly owner: LeaseOwner;
  /** The token of a new lease; an incarnation that shares a lease keeps its token. */
  readonly token: string;
  readonly leaseMs: number;
}

export interface RenewLease<Ref> {
  readonly of: Ref;
  readonly fence: LeaseFence;
  readonly leaseMs: number;
}

/** A lease as its holder passes it. */
export interface HeldRef<Ref> {
  readonly of: Ref;
  readonly fence: LeaseFence;
}

/** A lease as its holder has it. */
export interface HolderLease extends LeaseFence {
  readonly expiresAt: number;
}

/** Renews a lease in the background while work is done under it. */
export interface LeaseKeeper<L = Lease> {
  /** The lease as last renewed. */
  readonly lease: L;
  /**
   * Aborts at once when the lease is lost. Its reason is the error: `LEASE_LOST`
   * (`PROCESS_LEASE_LOST` for a process) in most cases. Releasing the lease, also by a commit with
   * `release`, is not a loss, even if another holder acquires it before the next renewal. Renewing
   * then ends, and the signal does not abort.
   */
  readonly signal: AbortSignal;
  /** Stops renewing. The lease stays until it is released or expires. */
  stop(): void;
}

export type SeenHolder = Pick<LeaseHolder, "process" | "fence">;

/**
 * Finds out whether a holder has died since it was seen, and returns the proof that the operation
 * needs.
 */
export async function provenDeath(
  database: Database,
  { process, fence }: SeenHolder,
): Promise<ProvenDeath | undefined> {
  if (process === null) return undefined;
  const isDead = (await database.liveness(process)) === "dead";
  return isDead ? { process, fence } : undefined;
}
