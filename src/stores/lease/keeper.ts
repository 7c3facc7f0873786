import type { Clock } from "../../model/clock.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { leaseLost } from "../../model/lease.ts";
import type { Database } from "../database.ts";
import type { Lease } from "./acquire.ts";
import { whenGivenBack } from "./given-back.ts";
import { renewLease } from "./renew.ts";

/** Renews a lease in the background, for as long as somebody works under it. */
export interface LeaseKeeper {
  /** As it was last renewed. */
  readonly lease: Lease;
  /**
   * Aborts at once when the lease is lost. Its reason is the error: `LEASE_LOST`
   * in most cases. Giving the lease back, also by a commit with `release`, is
   * no loss, even if others take it before the next renewal: then renewing
   * ends, and the signal stays as it is.
   */
  readonly signal: AbortSignal;
  /** Stops renewing. The lease stays until it is given back or runs out. */
  stop(): void;
}

/** A renewal that failed for a passing reason is tried so many times as often. */
const retriesPerInterval = 4;

/**
 * @throws HoldfastError `OPTION_INVALID` when the interval is not above 0, or
 *   above a third of the lease: one slow renewal would then lose it.
 */
export function checkedInterval(ttlMs: number, everyMs: number): number {
  if (everyMs >= 1 && everyMs * 3 <= ttlMs) return everyMs;
  throw new HoldfastError(
    "OPTION_INVALID",
    `A lease of ${ttlMs} ms is renewed at least three times before it runs out, so every ${Math.floor(ttlMs / 3)} ms or more often; got ${everyMs} ms. ` +
      "Renew more often, or ask for a longer lease.",
    { ttlMs, everyMs },
  );
}

export class Keeper implements LeaseKeeper {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #everyMs: number;
  readonly #loss = new AbortController();
  #lease: Lease;
  #lastFailure: unknown;
  #isStopped = false;
  #cancelTimers = (): void => undefined;
  readonly #forget: () => void;

  constructor(
    around: { readonly database: Database; readonly clock: Clock },
    lease: Lease,
    { ttlMs, everyMs }: { readonly ttlMs: number; readonly everyMs: number },
  ) {
    this.#database = around.database;
    this.#clock = around.clock;
    this.#lease = lease;
    this.#ttlMs = ttlMs;
    this.#everyMs = everyMs;
    this.#forget = whenGivenBack(around.database, lease, () => this.stop());
    // It may have been taken for a shorter time, or a while ago.
    const leftMs = lease.expiresAt - around.clock.now();
    this.#sleep(Math.max(0, Math.min(everyMs, Math.floor(leftMs / 3))));
  }

  get lease(): Lease {
    return this.#lease;
  }

  get signal(): AbortSignal {
    return this.#loss.signal;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelTimers();
    this.#forget();
  }

  /** Until the next renewal, and no longer than the lease: a renewal that hangs must not hide the loss. */
  #sleep(ms: number): void {
    this.#cancelTimers();
    const cancelRenewal = this.#clock.wakeAt(
      this.#clock.now() + ms,
      () => void this.#renew(),
    );
    const cancelExpiry = this.#clock.wakeAt(this.#lease.expiresAt, () =>
      this.#lose(
        leaseLost(this.#lease.session.id, "expired", {
          cause: this.#lastFailure,
        }),
      ),
    );
    this.#cancelTimers = () => {
      cancelRenewal();
      cancelExpiry();
    };
  }

  async #renew(): Promise<void> {
    const { session } = this.#lease;
    try {
      const renewal = await this.#database.write(
        renewLease,
        {
          session,
          fence: this.#lease,
          now: () => this.#clock.now(),
          ttlMs: this.#ttlMs,
        },
        { signal: this.signal },
      );
      if (this.#isStopped) return;
      if (renewal.kind === "lost" && renewal.reason === "released")
        return this.stop();
      if (renewal.kind === "lost")
        return this.#lose(leaseLost(session.id, renewal.reason));
      this.#lease = renewal.lease;
      this.#lastFailure = undefined;
      this.#sleep(this.#everyMs);
    } catch (error) {
      if (this.#isStopped) return;
      if (isEnd(error)) return this.#lose(error);
      this.#lastFailure = error;
      this.#sleep(Math.ceil(this.#everyMs / retriesPerInterval));
    }
  }

  #lose(error: HoldfastError): void {
    if (this.#isStopped) return;
    this.stop();
    this.#loss.abort(error);
  }
}

/** Nothing that is tried again could renew it. */
function isEnd(error: unknown): error is HoldfastError {
  return (
    isHoldfastError(error) &&
    (error.code === "SESSION_NOT_FOUND" ||
      error.code === "SESSION_DELETED" ||
      error.code === "DATABASE_CLOSED")
  );
}
