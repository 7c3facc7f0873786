import { HoldfastError } from "../model/errors.ts";
import type { OwnerId } from "../model/ids/prefixed-id.ts";
import { isolationMismatch, mayRunInside } from "../sql/isolation.ts";
import type { Isolation } from "../sql/isolation.ts";
import { isStoreOperation, isUnflushedOperation, operationInvalid } from "../sql/operation.ts";
import { startedBody } from "../sql/body.ts";
import type { Change, Tx } from "../sql/operation.ts";
import type { Callee } from "../sql/database.ts";

/** The arguments of `write` and `read` in one form: a body that can be restarted. */
export interface Callable {
  readonly name: string;
  readonly start: () => Tx<unknown>;
  readonly change: Change | undefined;
  /** The isolation of the transaction, when it writes. */
  readonly isolation: Isolation;
  /** True when the operation vouches for composed operations in an old snapshot. */
  readonly isCovered: boolean;
  /** True for our own operations, which lock in a known order. */
  readonly isOurs: boolean;
  /** True when its answer need not be durable. */
  readonly isUnflushed: boolean;
  /** The owner id of the database that runs it, when it writes. */
  readonly owner?: OwnerId | undefined;
}

/**
 * Accepts both forms, `(operation, input)` and `(name, body)`, and refuses common mistakes. The
 * isolation is the caller's, else the operation's, else serializable.
 */
export function callable(what: Callee, how: unknown, asked?: Isolation, owner?: OwnerId): Callable {
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
      isolation: asked ?? "serializable",
      isCovered: false,
      isOurs: false,
      isUnflushed: false,
      owner,
    };
  }
  if (typeof what !== "function" || typeof what.one !== "function")
    throw new HoldfastError(
      "OPERATION_INVALID",
      `Expected an operation or a name, got ${what === undefined ? "undefined" : `a ${typeof what}`}. ` +
        'Write database.write(deposit, input) with a deposit made by operation(…), not deposit(input); or database.write("name", function* () { … }).',
    );
  const isolation = asked ?? what.isolation ?? "serializable";
  if (!mayRunInside(isolation, what))
    throw isolationMismatch(what.name, `write "${what.name}"`, isolation);
  // The types of `write` and `read` keep operation and input consistent.
  const input = how as never;
  const isOurs = isStoreOperation(what);
  return {
    name: what.name,
    start: isOurs ? () => what.one(input) : () => startedBody(what.name, () => what.one(input)),
    change: { operation: what.name, key: what.key(input) },
    isolation,
    isCovered: what.snapshotSafe === true,
    isOurs,
    isUnflushed: isOurs && isUnflushedOperation(what),
    owner,
  };
}
