import { later, soon } from "../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";

type Watcher = (outage: HoldfastError | undefined) => void;

/** Counted in steps, so that time in which this process was busy or suspended does not count. */
const stepMs = 1_000;
/** A restart or failover takes a second or two and is not worth reporting. */
const stepsMax = 3;

/**
 * Reports to watchers whether the server answers. Most of the backend retries by itself, and a
 * process that only listens never fails. Without these reports an outage would stay unnoticed.
 */
export class Outages {
  readonly #watchers = new Set<Watcher>();
  #cancelStep: (() => void) | undefined;
  #why: unknown;
  #isOut = false;

  watch(watcher: Watcher): () => void {
    // Wrapped, so that watching twice with the same function creates two watchers.
    const own: Watcher = (outage) => watcher(outage);
    this.#watchers.add(own);
    return () => void this.#watchers.delete(own);
  }

  /** Records a request to the server. Further requests before its answer change nothing. */
  asked(): void {
    if (!this.#isOut && this.#cancelStep === undefined) this.#stepAfter(0);
  }

  /** Records the reason of a missing answer. The next request may get one. */
  failed(error: unknown): void {
    this.#why = error;
  }

  answered(): void {
    const wasOut = this.#isOut;
    this.stop();
    if (wasOut) this.#tell(undefined);
  }

  /** Stops, because no request is made any more. */
  stop(): void {
    this.#cancelStep?.();
    this.#cancelStep = undefined;
    this.#why = undefined;
    this.#isOut = false;
  }

  #stepAfter(steps: number): void {
    this.#cancelStep = later(stepMs, () => {
      if (steps + 1 < stepsMax) return this.#stepAfter(steps + 1);
      this.#cancelStep = undefined;
      this.#isOut = true;
      this.#tell(whyOf(this.#why));
    });
  }

  #tell(outage: HoldfastError | undefined): void {
    for (const watcher of this.#watchers)
      try {
        watcher(outage);
      } catch (error) {
        // A watcher's failure must not end the checks.
        soon(() => {
          throw error;
        });
      }
  }
}

/**
 * The error of the outage. A broken connection is the error of one of its calls, and not the reason
 * why there is no other connection.
 */
function whyOf(error: unknown): HoldfastError {
  const isOfACall =
    isHoldfastError(error) &&
    (error.code === "CONNECTION_LOST" || error.details["reason"] === "no answer");
  return isHoldfastError(error) && !isOfACall ? error : unanswered();
}

function unanswered(): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    "The server does not answer. Check that it runs and that the network reaches it.",
  );
}
