import type { Clock } from "../../model/clock.ts";
import type { HoldfastError } from "../../model/errors.ts";
import type { LeaseLoss } from "../../model/lease.ts";
import { BackgroundRenewal } from "../renewing.ts";
import type { Lease } from "./acquire.ts";

/** Renews a lease in the background, for as long as somebody works under it. */
export interface LeaseKeeper<L = Lease> {
  /** As it was last renewed. */
  readonly lease: L;
  /**
   * Aborts at once when the lease is lost. Its reason is the error: `LEASE_LOST`
   * (`PROCESS_LEASE_LOST` of a process) in most cases. Giving the lease back,
   * also by a commit with `release`, is no loss, even if others take it before
   * the next renewal: then renewing ends, and the signal stays as it is.
   */
  readonly signal: AbortSignal;
  /** Stops renewing. The lease stays until it is given back or runs out. */
  stop(): void;
}

/** How leases of one kind are renewed, and what their loss is called. */
export interface KeptLeases<L> {
  readonly renew: (
    lease: L,
    signal: AbortSignal,
  ) => Promise<
    | { readonly kind: "renewed"; readonly lease: L }
    | { readonly kind: "lost"; readonly reason: LeaseLoss }
  >;
  readonly lost: (
    lease: L,
    reason: LeaseLoss,
    options?: { readonly cause?: unknown },
  ) => HoldfastError;
  /** Calls `end` when the lease is given back through the same database; the function returned stops that. */
  readonly whenGivenBack?: (end: () => void) => () => void;
}

export class Keeper<
  L extends { readonly expiresAt: number },
> implements LeaseKeeper<L> {
  readonly #renewal: BackgroundRenewal<L>;
  #forget = (): void => undefined;

  constructor(clock: Clock, lease: L, everyMs: number, kind: KeptLeases<L>) {
    this.#renewal = new BackgroundRenewal(lease, {
      clock,
      everyMs,
      onEnd: () => this.#forget(),
      expired: (held, cause) => kind.lost(held, "expired", { cause }),
      async renew(held, signal) {
        const renewal = await kind.renew(held, signal);
        if (renewal.kind === "renewed")
          return { kind: "renewed", held: renewal.lease };
        return renewal.reason === "released"
          ? { kind: "over" }
          : { kind: "lost", error: kind.lost(held, renewal.reason) };
      },
    });
    if (kind.whenGivenBack !== undefined)
      this.#forget = kind.whenGivenBack(() => this.stop());
  }

  get lease(): L {
    return this.#renewal.held;
  }

  get signal(): AbortSignal {
    return this.#renewal.signal;
  }

  stop(): void {
    this.#renewal.stop();
  }
}
