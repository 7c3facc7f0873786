import { isHoldfastError } from "../../model/errors.ts";
import type { HeldExecution } from "../../stores/execution/lock/held.ts";
import { releaseHeld } from "./held-locks.ts";
import type { WorkerParts } from "./worker-parts.ts";

/** Our sessions have the server check for a broken connection each second. */
const lateCommitMs = 2_500;

/**
 * Releases runs that this worker has locked without learning of it. The answer to a lock call
 * was lost, as when the connection breaks during its commit. Otherwise no worker would run them
 * until their lease expires, and an activity would lose an attempt that was never made.
 */
export class UnansweredLocks {
  readonly #parts: WorkerParts;
  /** True if this worker runs it. */
  readonly #isHeld: (held: HeldExecution) => boolean;
  /** Lock calls under way: their runs are not in this worker before the calls are answered. */
  readonly #calls: () => readonly Promise<unknown>[];
  /** Resolves when no look is under way. */
  looked: Promise<void> = Promise.resolve();
  isLooking = false;
  /** A look that has not begun sees everything that a further look would. */
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

  /**
   * Looks for such locks when the outcome of a lock call is unknown. Looks again once a server
   * that lost the connection must have ended a late commit.
   */
  mayBe(failure: unknown): void {
    if (!isHoldfastError(failure) || failure.code !== "OUTCOME_UNKNOWN") return;
    this.look();
    const { context, signal } = this.#parts;
    const { background } = context;
    // One late look, for the last of many failures: each failure has had a look of its own.
    this.#cancelLateLook?.();
    this.#cancelLateLook = background.wakeAt(background.now() + lateCommitMs, () => {
      if (!signal.aborted) this.look();
    });
  }

  /** Looks for such locks. No run may be locked here before the look ends. */
  look(): void {
    if (this.#isQueued) return;
    this.#isQueued = true;
    this.isLooking = true;
    // A look under way may have passed the row already.
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
