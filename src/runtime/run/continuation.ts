import { HoldfastError } from "../../model/errors.ts";
import type { RunState, Settled } from "./run-state.ts";

/** Returned by code that starts its next pass under its id: `return ctx.continueWith(input)`. */
export class Continuation {
  readonly input: unknown;

  constructor(input: unknown) {
    this.input = input;
  }
}

/** True if the `return` is missing: a run meant to continue for years would end unnoticed. */
export function isContinuationLost({ isContinuing }: RunState, settled: Settled): boolean {
  return isContinuing && settled.kind === "returned" && !(settled.value instanceof Continuation);
}

export function continuationLost({ id, definition }: RunState): HoldfastError {
  const { name } = definition;
  return new HoldfastError(
    "CONTINUATION_LOST",
    `Run ${id} of ${name} called ctx.continueWith and returned something else, which would have ended it. It is parked. Write "return ctx.continueWith(…)", then unpark it.`,
    { id, function: name },
  );
}
