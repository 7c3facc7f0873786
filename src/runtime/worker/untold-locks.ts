import { isHoldfastError } from "../../model/errors.ts";
import type { HeldExecution } from "../../stores/execution/lock/held.ts";
import { releaseHeld } from "./held-locks.ts";
import type { WorkerParts } from "./worker-parts.ts";

/** Our sessions have the server look for a broken line each second. */
const lateCommitMs = 2_500;

/**
 * Gives back what this worker has locked without hearing of it: the answer to
 * a lock was lost, as when the connection breaks during its commit. Otherwise
 * nobody would run it until its lease ends, and an activity would have lost an
 * attempt that was never made.
 */
export class UntoldLocks {
  readonly #parts: WorkerParts;
  /** Whether this worker runs it. */
  readonly #isHeld: (held: HeldExecution) => boolean;
  /** Calls that lock: what they have locked is not here before they are answered. */
  readonly #calls: () => readonly Promise<unknown>[];
  /** Resolves when nothing is being looked for. */
  looked: Promise<void> = Promise.resolve();
  isLooking = false;
  /** One look that has not begun will see what every other would. */
  #isQueued = false;
  #cancelLateLook: (() => void) | undefined;

  constructor(
    parts: WorkerParts,
    isHeld: (held: HeldExecution) => boolean,
    calls: () => readonly Promise<unknown>[],
  ) {
    this.#parts = parts;
    this.#isHeld = isHeld;
    this.#calls = calls;
  }

  /** Looks for them when a call that locks has failed so that nobody knows whether it did, and once more when a server that lost the line must have ended what it was still committing. */
  mayBe(failure: unknown): void {
    if (!isHoldfastError(failure) || failure.code !== "OUTCOME_UNKNOWN") return;
    this.look();
    const { context, signal } = this.#parts;
    const { background } = context;
    // One for the last of many failures: each has had a look of its own.
    this.#cancelLateLook?.();
    this.#cancelLateLook = background.wakeAt(background.now() + lateCommitMs, () => {
      if (!signal.aborted) this.look();
    });
  }

  /** Until it has looked, nothing new may be locked. */
  look(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.isLooking = true;
    // One that is under way may have looked already.
    const before = this.looked;
    const looked = before
      .then(() => {
        this.#isQueued = false;
        return this.#look();
      })
      .finally(() => {
        if (this.looked === looked) this.isLooking = false;
      });
    this.looked = looked;
  }

  async #look(): Promise<void> {
    await Promise.allSettled(this.#calls());
    await releaseHeld(
      this.#parts,
      "the answer to its lock was lost",
      (held) => held.state === "locked" && !this.#isHeld(held),
    );
  }
}
