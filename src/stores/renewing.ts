import type { Clock } from "../model/time/clock.ts";
import { HoldfastError, isHoldfastError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";

/** What a renewal came to. */
type Renewed<H> =
  | { readonly kind: "renewed"; readonly held: H }
  /** Its holder gave it back, or is done with it: that is no loss. */
  | { readonly kind: "over" }
  | { readonly kind: "lost"; readonly error: HoldfastError };

export interface Renewing<H> {
  readonly clock: Clock;
  readonly everyMs: number;
  /** The signal aborts when what is renewed is lost, so that nothing waits without success. */
  readonly renew: (held: H, signal: AbortSignal) => Promise<Renewed<H>>;
  /** Told once, when it is lost. */
  readonly onLoss?: (error: HoldfastError) => void;
  /** Told once, when renewing ends for whatever reason. */
  readonly onEnd?: () => void;
  /** The error for something that ran out before it could be renewed; the cause is why it could not. */
  readonly expired: (held: H, cause: unknown) => HoldfastError;
}

/** A renewal that failed for a passing reason is tried so many times as often. */
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
      `A lease of ${leaseMs} ms is over before it can be renewed: lease is 3 ms or more. Ask for a longer lease, such as "30s".`,
      { option: "lease", leaseMs },
    );
  throw new HoldfastError(
    "OPTION_INVALID",
    `A lease of ${leaseMs} ms is renewed at least three times before it runs out, so every ${Math.floor(leaseMs / 3)} ms or more often; got ${everyMs} ms. ` +
      "Renew more often, or ask for a longer lease.",
    { leaseMs, everyMs },
  );
}

/**
 * Renews something that runs out, in the background, until it is stopped or
 * lost. A renewal that fails for another reason than loss is tried again until
 * the end: only time can tell that it is lost then.
 */
export class BackgroundRenewal<H extends { readonly expiresAt: number }> {
  readonly #how: Renewing<H>;
  /** Made when its signal is asked for: most of what is renewed is done with before the first renewal. */
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
    // It may have been taken for a shorter time, or a while ago.
    const now = how.clock.now();
    const leftMs = held.expiresAt - now;
    const ms = Math.max(0, Math.min(how.everyMs, Math.floor(leftMs / 3)));
    this.#cancelRenewal = how.clock.wakeAt(now + ms, () => void this.#renew());
  }

  /** As it was last renewed. */
  get held(): H {
    return this.#held;
  }

  /** Why it is lost, if it is. */
  get loss(): HoldfastError | undefined {
    return this.#loss;
  }

  /** Aborts at once when it is lost; its reason is the error. */
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

  /** However long a renewal takes: one that hangs must not hide the loss. */
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

/** Nothing that is tried again could renew it. */
function isEnd(error: unknown): error is HoldfastError {
  return isHoldfastError(error) && endCodes.has(error.code);
}
