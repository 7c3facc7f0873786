import { later, soon } from "../../host/timers.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";

type Watcher = (outage: HoldfastError | undefined) => void;

/** Counted in steps: a process that was busy or suspended has not waited for so long. */
const stepMs = 1_000;
/** A restart or a change of servers takes a second or two, and nobody needs to know. */
const stepsMax = 3;

/**
 * Whether the server answers, for those who want to know. Most of the backend
 * tries again by itself, and whoever only listens fails never: without this an
 * outage would pass in silence.
 */
export class Outages {
  readonly #watchers = new Set<Watcher>();
  #cancelStep: (() => void) | undefined;
  #why: unknown;
  #isOut = false;

  watch(watcher: Watcher): () => void {
    // Wrapped, so that watching with one function twice gives two watchers.
    const own: Watcher = (outage) => watcher(outage);
    this.#watchers.add(own);
    return () => void this.#watchers.delete(own);
  }

  /** The server was asked something. Asking again before it has answered changes nothing. */
  asked(): void {
    if (!this.#isOut && this.#cancelStep === undefined) this.#stepAfter(0);
  }

  /** Why there was no answer; there may be one to the next question. */
  failed(error: unknown): void {
    this.#why = error;
  }

  answered(): void {
    const wasOut = this.#isOut;
    this.stop();
    if (wasOut) this.#tell(undefined);
  }

  /** Nobody asks any more. */
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
        // Its bug is its own, and must not end the looking.
        soon(() => {
          throw error;
        });
      }
  }
}

/** That a connection broke is what one of its calls was told, and no reason why there is no other. */
function whyOf(error: unknown): HoldfastError {
  return isHoldfastError(error) && error.code !== "CONNECTION_LOST" ? error : unanswered();
}

function unanswered(): HoldfastError {
  return new HoldfastError(
    "DATABASE_UNREACHABLE",
    "The server does not answer. Check that it runs and that the network reaches it.",
  );
}
