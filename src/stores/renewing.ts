import type { Clock } from "../model/time/clock.ts";
import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";

/** The outcome of a renewal. */
type Renewed<H> =
  | { readonly kind: "renewed"; readonly held: H }
  /** The holder released it or finished: that is not a loss. */
  | { readonly kind: "over" }
  | { readonly kind: "lost"; readonly error: HoldfastError };

export interface Renewing<H> {
  readonly clock: Clock;
  readonly everyMs: number;
  /**
   * The signal aborts when the lease is lost, so that no renewal continues without a chance of
   * success.
   */
  readonly renew: (held: H, signal: AbortSignal) => Promise<Renewed<H>>;
  /** Called once, when the lease is lost. */
  readonly onLoss?: (error: HoldfastError) => void;
  /** Called once, when renewing ends for any reason. */
  readonly onEnd?: () => void;
  /**
   * The error for a lease that expired before it could be renewed. The cause is the reason of the
   * failed renewal.
   */
  readonly expired: (held: H, cause: unknown) => HoldfastError;
}

/** The number of retries per interval after a renewal failed for a passing reason. */
const retriesPerInterval = 4;

/**
 * @throws HoldfastError `OPTION_INVALID` when the interval is not above 0, or
 *   above a third of the lease: one slow renewal would then lose it.
 */
export function checkedInterval(leaseMs: number, everyMs: number): number {
  if (everyMs >= 1 && everyMs * 3 <= leaseMs) return everyMs;
  if (leaseMs < 3)
    throw new HoldfastError(
      "OPTION_INVALID",
      `A lease of ${leaseMs} ms expires before it can be renewed: lease must be 3 ms or more. Ask for a longer lease, such as "30s".`,
      { option: "lease", leaseMs },
    );
  throw new HoldfastError(
    "OPTION_INVALID",
    `A lease of ${leaseMs} ms must be renewed at least three times before it expires, so every ${Math.floor(leaseMs / 3)} ms or more often; got ${everyMs} ms. ` +
      "Renew more often, or ask for a longer lease.",
    { leaseMs, everyMs },
  );
}

/**
 * Renews a lease in the background until it is stopped or lost. A renewal that fails for any reason
 * except loss is retried until the lease expires: only then is the lease known to be lost.
 */
export class BackgroundRenewal<H extends { readonly expiresAt: number }> {
  readonly #how: Renewing<H>;
  /** Created when its signal is first read: most leases end before the first renewal. */
  #controller: AbortController | undefined;
  #held: H;
  #loss: HoldfastError | undefined;
  #lastFailure: unknown;
  #isStopped = false;
  #cancelRenewal: () => void;
  #cancelExpiry: (() => void) | undefined;

  constructor(held: H, how: Renewing<H>) {
    this.#how = how;
    this.#held = held;
    // The lease may have been taken for a shorter time, or some time ago.
    const now = how.clock.now();
    const leftMs = held.expiresAt - now;
    const ms = Math.max(0, Math.min(how.everyMs, Math.floor(leftMs / 3)));
    this.#cancelRenewal = how.clock.wakeAt(now + ms, () => void this.#renew());
  }

  /** The lease as last renewed. */
  get held(): H {
    return this.#held;
  }

  /** The reason of its loss, if it is lost. */
  get loss(): HoldfastError | undefined {
    return this.#loss;
  }

  /** Aborts at once when the lease is lost; its reason is the error. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#loss !== undefined) this.#controller.abort(this.#loss);
    }
    return this.#controller.signal;
  }

  stop(): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#cancelRenewal();
    this.#cancelExpiry?.();
    this.#how.onEnd?.();
  }

  #sleep(ms: number): void {
    this.#cancelRenewal();
    const { clock } = this.#how;
    this.#cancelRenewal = clock.wakeAt(clock.now() + ms, () => void this.#renew());
  }

  /** Runs beside the renewal, since a renewal that hangs must not hide the loss. */
  #watchExpiry(): void {
    this.#cancelExpiry?.();
    const { clock, expired } = this.#how;
    this.#cancelExpiry = clock.wakeAt(this.#held.expiresAt, () =>
      this.#lose(expired(this.#held, this.#lastFailure)),
    );
  }

  async #renew(): Promise<void> {
    const { everyMs, renew } = this.#how;
    if (this.#cancelExpiry === undefined) this.#watchExpiry();
    try {
      const renewed = await renew(this.#held, this.signal);
      if (this.#isStopped) return;
      if (renewed.kind === "over") return this.stop();
      if (renewed.kind === "lost") return this.#lose(renewed.error);
      this.#held = renewed.held;
      this.#lastFailure = undefined;
      this.#watchExpiry();
      this.#sleep(everyMs);
    } catch (error) {
      if (this.#isStopped) return;
      if (isEnd(error)) return this.#lose(error);
      this.#lastFailure = error;
      this.#sleep(Math.ceil(everyMs / retriesPerInterval));
    }
  }

  #lose(error: HoldfastError): void {
    if (this.#isStopped) return;
    this.stop();
    this.#loss = error;
    this.#how.onLoss?.(error);
    this.#controller?.abort(error);
  }
}

const endCodes: ReadonlySet<string> = new Set<ErrorCode>([
  "SESSION_NOT_FOUND",
  "SESSION_DELETED",
  "PROCESS_NOT_FOUND",
  "PROCESS_PRUNED",
  "DATABASE_CLOSED",
  "MOVED_TO_POSTGRES",
]);

/** True for an error that no retry can resolve. */
function isEnd(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && endCodes.has(error.code);
}
