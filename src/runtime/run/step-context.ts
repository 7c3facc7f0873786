import { AsyncLocalStorage } from "node:async_hooks";
import { HoldfastError } from "../../model/errors.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { Tx } from "../../sql/operation.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { StepContext } from "../definition/workflow-context.ts";
import type { StepOutput } from "../stream/run-output.ts";
import { LateAbort } from "./late-abort.ts";

/** The run whose code is running, and the step if the code is inside one. */
export interface Where {
  readonly id: string;
  readonly step?: string;
  /** The attempt of the step, or of the activity. */
  readonly attempt?: number;
  /** The step has ended; work that it left behind, such as a timer, still runs inside it. */
  isStepOver?: boolean;
}

/** Available everywhere in the code of a run: it costs 0.1 µs per await. */
export const where: AsyncLocalStorage<Where> = new AsyncLocalStorage();

/**
 * Runs a function outside of any context of the caller. Bodies of workflows and steps run in a
 * context that was taken when this module was loaded. A caller's AsyncLocalStorage would be
 * there the first time and missing when the run is replayed.
 */
export const outside: <T>(run: () => T) => T = AsyncLocalStorage.snapshot();

/** The same for a body that is run in stretches by code outside the step. */
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
    `A method of ctx was called inside "${step}". A step or transaction is recorded as a whole, so calls inside it would be lost on replay. ` +
      "Call it before or after; the body of a step receives its own attempt, abortSignal and idempotencyKey.",
    { step },
  );
}

/** The id under which a run asks others to do a thing once. A run that retries another uses that run's id. */
export function keyOf({ id, created }: Pick<LoadedExecution, "id" | "created">): ExecutionId {
  return created.keysOf ?? id;
}

/** The context of one attempt of a step. Few bodies read the key, so it is made on first access. */
export class AttemptContext implements StepContext {
  readonly attempt: number;
  readonly isRepeat: boolean;
  readonly #pass: string;
  readonly #call: number;
  readonly #abort = new LateAbort();
  readonly #openOutput: () => StepOutput;
  #output: StepOutput | undefined;
  #isCancelled = false;

  constructor(
    attempt: number,
    pass: string,
    call: number,
    isRepeat: boolean,
    openOutput: () => StepOutput,
  ) {
    this.attempt = attempt;
    this.isRepeat = isRepeat;
    this.#pass = pass;
    this.#call = call;
    this.#openOutput = openOutput;
  }

  // A property, so that a body may take it out of its context.
  get stream(): (chunk: unknown) => boolean {
    const output = (this.#output ??= this.#openOutput());
    return (chunk) => output.show(chunk);
  }

  /** The live output of the attempt, if the body has asked for it. */
  get output(): StepOutput | undefined {
    return this.#output;
  }

  get idempotencyKey(): string {
    return `${this.#pass}#${this.#call}`;
  }

  get abortSignal(): AbortSignal {
    return this.#abort.signal;
  }

  /** True once the run wants no further attempt. */
  get isCancelled(): boolean {
    return this.#isCancelled;
  }

  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Aborts the attempt; a failure that follows is the last. */
  cancel(reason: unknown): void {
    this.#isCancelled = true;
    this.abort(reason);
  }
}
