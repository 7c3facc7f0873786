import type { Clock } from "../../model/clock.ts";

import type { Entropy } from "../../model/entropy.ts";
import { leaseLost } from "../../model/lease.ts";
import type { LeaseHolder } from "../../model/lease.ts";
import { newToken } from "../../model/token.ts";
import { optionsOf } from "../../model/shape.ts";
import type { Database, WaitOptions } from "../../sql/database.ts";
import { givenDatabase } from "../given.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { acquireLease } from "./acquire.ts";
import type { Lease, LeaseOutcome } from "./acquire.ts";
import { checkedLease, checkedSeen } from "./checks.ts";
import { checkedRhythm, ownerOf, ttlOf, waitOf } from "./claimant.ts";
import type {
  LeaseClaimant,
  LeaseKeepOptions,
  LeaseOptions,
} from "./claimant.ts";
import { tellGivenBack, whenGivenBack } from "./given-back.ts";
import { Keeper } from "./keeper.ts";
import type { LeaseKeeper } from "./keeper.ts";
import { shownHolder } from "./expire.ts";
import { releaseHeldLease, renewLease } from "./renew.ts";
import { takeFrom, waitForLease } from "./wait.ts";
import type { LeaseRequest } from "./wait.ts";

/** What leases take from their surroundings; the database's unless told. */
export interface LeaseEnvironment {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
}

/** The right to work on a session: one holder at a time, and a fence that only grows. */
export interface Leases {
  /**
   * Takes the lease of a session, or says who has it. The same incarnation
   * gets its own again.
   * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`
   * @example const outcome = await leases.acquire("chat-7", { owner: "web", incarnation: bootId });
   */
  acquire(
    session: SessionName,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome>;
  /** The same, and takes it from the holder that was seen if that has provably died. One of several who saw it wins. */
  reclaim(
    session: SessionName,
    claimant: LeaseClaimant,
    observed: Pick<LeaseHolder, "fence" | "process">,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome>;
  /** Takes it as soon as it is free: given back, run out, or left by a process that died. */
  waitForLease(
    session: SessionName,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<Lease>;
  /** Extends a lease; it never gets shorter. @throws HoldfastError `LEASE_LOST` */
  renew(lease: Lease, options?: LeaseOptions): Promise<Lease>;
  /** Gives it back; false when it was no longer held. */
  release(lease: Lease, wait?: WaitOptions): Promise<boolean>;
  /**
   * Who holds it now. One that is found to have run out is recorded as over,
   * so that it stays so when the clock is set back.
   */
  read(
    session: SessionName,
    wait?: WaitOptions,
  ): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost. That alone
   * does not keep the process alive: whatever is done under the lease does.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `ttl`
   */
  keep(lease: Lease, options?: LeaseKeepOptions): LeaseKeeper;
}

export function leases(
  database: Database,
  environment?: LeaseEnvironment,
): Leases {
  givenDatabase(database);
  const given = optionsOf(environment);
  const clock = given.clock ?? database.clock;
  const entropy = given.entropy ?? database.entropy;
  const around = { database, clock };
  const requested = (
    session: SessionName,
    claimant: LeaseClaimant,
    options: LeaseOptions | undefined,
  ): LeaseRequest => ({
    session: sessionNamed(session),
    owner: ownerOf(database, claimant),
    token: newToken(entropy),
    ttlMs: ttlOf(options),
  });
  return {
    async acquire(session, claimant, options) {
      const request = requested(session, claimant, options);
      return database.write(
        acquireLease,
        { ...request, now: () => clock.now() },
        waitOf(options),
      );
    },
    async reclaim(session, claimant, observed, options) {
      const request = requested(session, claimant, options);
      return takeFrom(around, request, checkedSeen(observed), waitOf(options));
    },
    async waitForLease(session, claimant, options) {
      const request = requested(session, claimant, options);
      return waitForLease(around, request, waitOf(options));
    },
    async renew(shown, options) {
      const lease = checkedLease(shown);
      const renewal = await database.write(
        renewLease,
        {
          session: lease.session,
          fence: lease,
          now: () => clock.now(),
          ttlMs: ttlOf(options),
        },
        waitOf(options),
      );
      if (renewal.kind === "renewed") return renewal.lease;
      throw leaseLost(lease.session.id, renewal.reason);
    },
    async release(shown, wait) {
      const lease = checkedLease(shown);
      const held = { session: lease.session, fence: lease };
      const isGivenBack = await database.write(releaseHeldLease, held, wait);
      if (isGivenBack) tellGivenBack(database, lease);
      return isGivenBack;
    },
    read: async (session, wait) =>
      shownHolder(around, sessionNamed(session), wait),
    keep: (lease, options) => kept(around, lease, options),
  };
}

function kept(
  { database, clock }: { readonly database: Database; readonly clock: Clock },
  given: Lease,
  options: LeaseKeepOptions | undefined,
): LeaseKeeper {
  const { ttlMs, everyMs } = checkedRhythm(options);
  const lease = checkedLease(given);
  return new Keeper(clock, lease, everyMs, {
    renew: (held, signal) =>
      database.write(
        renewLease,
        {
          session: held.session,
          fence: held,
          now: () => clock.now(),
          ttlMs,
        },
        { signal },
      ),
    lost: ({ session }, reason, cause) => leaseLost(session.id, reason, cause),
    whenGivenBack: (end) => whenGivenBack(database, lease, end),
  });
}
