import type { Database, WaitOptions } from "../../sql/database.ts";
import type { LeaseHolder } from "../../model/lease.ts";
import { storeContext, type StoreContext, type StoreOptions } from "../context.ts";
import { onlyWait, writes, type Call, type Method } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import type { SessionRef } from "../session-row.ts";
import {
  givenLeaseTime,
  givenRequest,
  givenRhythm,
  givenSeen,
  type LeaseClaimant,
  type LeaseKeepOptions,
  type LeaseOptions,
  type AcquireLease,
  type HeldRef,
  type LeaseKeeper,
  type LeaseOutcome,
  type RenewLease,
} from "./context.ts";
import { givenLease, sessionLeases, type Lease } from "./parts.ts";
import { takeFrom, waitToTake } from "./wait.ts";

/** The right to work on a session. A lease has one holder at a time, and its fence only grows. */
export interface Leases {
  /**
   * Acquires the lease of a session, or returns the current holder. The same incarnation gets its
   * own lease again, with the same or a later expiry.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const outcome = await leases.acquire("chat-7", { owner: "web", incarnation: bootId }, { lease: "1 min" });
   * if (outcome.kind === "busy") console.log(`${outcome.holder.owner} works on it.`);
   */
  readonly acquire: Method<
    [session: SessionName, claimant: LeaseClaimant, options?: LeaseOptions],
    LeaseOutcome
  >;
  /**
   * Acquires the lease, and takes it over from the holder that the caller saw if that holder has
   * provably died. Of several callers that saw it, one wins.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example
   * const holder = await leases.read("chat-7");
   * if (holder !== undefined) await leases.reclaim("chat-7", claimant, holder);
   */
  reclaim(
    session: SessionName,
    claimant: LeaseClaimant,
    observed: Pick<LeaseHolder, "fence" | "process">,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome>;
  /**
   * Acquires the lease as soon as it is free: released, expired, or left by a process that died.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `DEADLINE_EXCEEDED`, `ABORTED`, `DATABASE_CLOSED`
   * @example const lease = await leases.waitForLease("chat-7", claimant, { timeout: "10 s" });
   */
  waitForLease(
    session: SessionName,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<Lease>;
  /**
   * Extends a lease, and never shortens it.
   * @throws HoldfastError `LEASE_LOST`, `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  readonly renew: Method<[lease: Lease, options?: LeaseOptions], Lease>;
  /**
   * Releases a lease. False when it was no longer held or its session is gone: the lease is free
   * then, as the caller wanted.
   */
  readonly release: Method<[lease: Lease, wait?: WaitOptions], boolean>;
  /**
   * Returns the current holder. An expired lease is recorded as ended, so it stays expired when the
   * clock is set back.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   */
  read(session: SessionName, wait?: WaitOptions): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost. The renewal does not keep the
   * process alive; the work under the lease does.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `lease`
   * @example
   * const keeper = leases.keep(lease, { lease: "1 min" });
   * try {
   *   await work(keeper.signal);
   * } finally {
   *   keeper.stop();
   * }
   */
  keep(lease: Lease, options?: LeaseKeepOptions): LeaseKeeper;
}

/** Holds nothing but keepers, so one database can have any number of these. */
export function leases(database: Database, options?: StoreOptions): Leases {
  const context = storeContext(database, options);
  return {
    acquire: writes(context, sessionLeases.acquire, givenAcquire),
    async reclaim(session, claimant, observed, given) {
      const { input, wait } = givenAcquire(context, session, claimant, given);
      const seen = givenSeen(observed);
      return takeFrom(sessionLeases, context, input, seen, wait);
    },
    async waitForLease(session, claimant, given) {
      const { input, wait } = givenAcquire(context, session, claimant, given);
      return waitToTake(sessionLeases, context, input, wait);
    },
    renew: writes(context, sessionLeases.renew, givenRenew),
    release: writes(context, sessionLeases.release, givenRelease),
    read: async (session, wait) =>
      sessionLeases.holder(context, sessionNamed(session), onlyWait(wait)),
    keep: (lease, given) =>
      sessionLeases.keep(context, { lease, of: givenLease(lease).of }, givenRhythm(given)),
  };
}

function givenAcquire(
  context: StoreContext,
  session: SessionName,
  claimant: LeaseClaimant,
  options?: LeaseOptions,
): Call<AcquireLease<SessionRef>> {
  const of = sessionNamed(session);
  const { request, wait } = givenRequest(context, claimant, options);
  return { input: { ...request, of }, wait };
}

function givenRenew(
  _: StoreContext,
  lease: Lease,
  options?: LeaseOptions,
): Call<RenewLease<SessionRef>> {
  const shown = givenLease(lease);
  const { leaseMs, wait } = givenLeaseTime(options);
  return { input: { ...shown, leaseMs }, wait };
}

function givenRelease(
  _: StoreContext,
  lease: Lease,
  wait?: WaitOptions,
): Call<HeldRef<SessionRef>> {
  return { input: givenLease(lease), wait: onlyWait(wait) };
}
