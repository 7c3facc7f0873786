import { HoldfastError } from "../model/errors.ts";
import { operationInvalid, startedBody } from "../sql/operation.ts";
import type { Change, Tx } from "../sql/operation.ts";
import type { Callee } from "../stores/database.ts";

/** What `write` and `read` were given, in one form: a body that can be started again. */
export interface Callable {
  readonly name: string;
  readonly start: () => Tx<unknown>;
  readonly change: Change | undefined;
}

/** Takes both forms, `(operation, input)` and `(name, body)`, and refuses the usual slips. */
export function callable(what: Callee, how: unknown): Callable {
  if (typeof what === "string") {
    if (typeof how !== "function")
      throw operationInvalid(
        what,
        how === undefined
          ? "has no body. Pass a generator function after the name: `function* () { … }`."
          : "needs a generator function as its body, not a generator: a body may be run again. Pass `function* () { … }`.",
      );
    return {
      name: what,
      start: () => startedBody(what, how as () => Tx<unknown>),
      change: undefined,
    };
  }
  if (typeof what !== "function" || typeof what.one !== "function")
    throw new HoldfastError(
      "OPERATION_INVALID",
      `Expected an operation or a name, got ${what === undefined ? "nothing" : `a ${typeof what}`}. ` +
        'Write database.write(deposit, input) with a deposit made by operation(…), not deposit(input); or database.write("name", function* () { … }).',
    );
  // The types of `write` and `read` hold the two together.
  const input = how as never;
  return {
    name: what.name,
    start: () => startedBody(what.name, () => what.one(input)),
    change: { operation: what.name, key: what.key(input) },
  };
}
