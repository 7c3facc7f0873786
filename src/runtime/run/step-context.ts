import { AsyncLocalStorage } from "node:async_hooks";
import { HoldfastError } from "../../model/errors.ts";
import type { Tx } from "../../sql/operation.ts";
import type { StepContext } from "../definition/workflow-context.ts";
import { LateAbort } from "./late-abort.ts";

/** Whose code is running: of which run, and whether inside a step. */
export interface Where {
  readonly id: string;
  readonly step?: string;
  /** Of the step, or of the activity. */
  readonly attempt?: number;
  /** The step has ended; what it left behind, such as a timer, runs on inside of it. */
  isStepOver?: boolean;
}

/** Known wherever the code of a run has come to: it costs 0.1 µs for each await. */
export const where: AsyncLocalStorage<Where> = new AsyncLocalStorage();

/**
 * Runs something outside of any context of the caller's. Bodies of workflows
 * and steps run in one that was taken when this module was loaded: what a
 * caller has in an AsyncLocalStorage would be there the first time and gone
 * when the run is replayed.
 */
export const outside: <T>(run: () => T) => T = AsyncLocalStorage.snapshot();

/** The same for a body that is run stretch by stretch, by somebody who is not inside. */
export function* insideStep<T>(inside: Where, start: () => Tx<T>): Tx<T> {
  try {
    const body = where.run(inside, start);
    let step = where.run(inside, () => body.next());
    while (step.done !== true) {
      let answer: unknown;
      try {
        answer = yield step.value;
      } catch (error) {
        step = where.run(inside, () => body.throw(error));
        continue;
      }
      step = where.run(inside, () => body.next(answer));
    }
    return step.value;
  } finally {
    inside.isStepOver = true;
  }
}

export function ctxInStep(step: string): HoldfastError {
  return new HoldfastError(
    "CTX_IN_STEP",
    `A method of ctx was called inside "${step}". A step or transaction is recorded as one thing, so what it calls inside would be lost on replay. ` +
      "Call it before or after; the body of a step is given its own attempt, abortSignal and idempotencyKey.",
    { step },
  );
}

/** What a step's body is given. Few bodies look at the key, so it is made when one does. */
export class AttemptContext implements StepContext {
  readonly attempt: number;
  readonly #pass: string;
  readonly #call: number;
  readonly #abort = new LateAbort();
  #isCancelled = false;

  constructor(attempt: number, pass: string, call: number) {
    this.attempt = attempt;
    this.#pass = pass;
    this.#call = call;
  }

  get idempotencyKey(): string {
    return `${this.#pass}#${this.#call}`;
  }

  get abortSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** True once the run does not want another attempt. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Like `abort`, and a failure that follows is the last. */
  cancel(reason: unknown): void {
    this.#isCancelled = true;
    this.abort(reason);
  }
}
