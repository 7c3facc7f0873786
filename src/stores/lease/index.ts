import type { Clock } from "../../model/clock.ts";
import { durationMs } from "../../model/durations.ts";
import type { Duration } from "../../model/durations.ts";
import type { Entropy } from "../../model/entropy.ts";
import { leaseLost } from "../../model/lease.ts";
import type { LeaseHolder, LeaseOwner } from "../../model/lease.ts";
import { parseOwnerId } from "../../model/prefixed-id.ts";
import type { OwnerId } from "../../model/prefixed-id.ts";
import { newToken } from "../../model/token.ts";
import type { Database, WaitOptions } from "../database.ts";
import { checkedText } from "../execution/checks.ts";
import { givenObject, optionsOf } from "../given.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import { acquireLease } from "./acquire.ts";
import type { Lease, LeaseOutcome } from "./acquire.ts";
import { checkedLease, checkedSeen } from "./checks.ts";
import { tellGivenBack } from "./given-back.ts";
import { checkedInterval, Keeper } from "./keeper.ts";
import type { LeaseKeeper } from "./keeper.ts";
import { readLease, releaseHeldLease, renewLease } from "./renew.ts";
import { takeFrom, waitForLease } from "./wait.ts";
import type { LeaseRequest } from "./wait.ts";

/** What leases take from their surroundings; the database's unless told. */
export interface LeaseEnvironment {
  readonly clock?: Clock;
  readonly entropy?: Entropy;
}

/** Who asks for a lease: the host's own name, and this start of it. */
export interface LeaseClaimant {
  readonly owner: string;
  readonly incarnation: string;
  /** Whose death ends the lease: this process unless told. `null` lets only time end it. */
  readonly process?: OwnerId | null;
}

export interface LeaseOptions extends WaitOptions {
  /** For how long: 30 seconds unless told. */
  readonly ttl?: Duration;
}

export interface LeaseKeepOptions {
  /** For how long it is extended each time: 30 seconds unless told. */
  readonly ttl?: Duration;
  /** How often: a third of that unless told, and never less often. */
  readonly every?: Duration;
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
  /** Who holds it now. */
  read(
    session: SessionName,
    wait?: WaitOptions,
  ): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `ttl`
   */
  keep(lease: Lease, options?: LeaseKeepOptions): LeaseKeeper;
}

const ttlDefault: Duration = "30s";

export function leases(
  database: Database,
  environment?: LeaseEnvironment,
): Leases {
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
      database.read(
        readLease,
        { session: sessionNamed(session), now: clock.now() },
        wait,
      ),
    keep: (lease, options) =>
      new Keeper(around, checkedLease(lease), checkedRhythm(options)),
  };
}

function ttlOf(options: LeaseOptions | undefined): number {
  const { ttl = ttlDefault } = optionsOf(options);
  return durationMs(ttl, "ttl");
}

function checkedRhythm(options: LeaseKeepOptions | undefined): {
  readonly ttlMs: number;
  readonly everyMs: number;
} {
  const { ttl = ttlDefault, every } = optionsOf(options);
  const ttlMs = durationMs(ttl, "ttl");
  const everyMs =
    every === undefined ? Math.floor(ttlMs / 3) : durationMs(every, "every");
  return { ttlMs, everyMs: checkedInterval(ttlMs, everyMs) };
}

function ownerOf(database: Database, claimant: LeaseClaimant): LeaseOwner {
  const {
    owner,
    incarnation,
    process = database.owner,
  } = givenObject("claimant", claimant);
  return {
    owner: checkedText("An owner", owner),
    incarnation: checkedText("An incarnation", incarnation),
    process: process === null ? null : parseOwnerId(process),
  };
}

function waitOf({ signal, timeout }: WaitOptions = {}): WaitOptions {
  return { signal, timeout };
}
