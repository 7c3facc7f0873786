import type { ExecutionId } from "../model/ids/execution-id.ts";
import type { ExecutorId, RunId } from "../model/ids/prefixed-id.ts";
import { Request, type Tx } from "./operation.ts";

/**
 * A run whose lock a transaction has asserted. Its row stays locked until the transaction ends, so
 * no other worker can take the run before the commit.
 */
export interface AssertedRun {
  readonly id: ExecutionId;
  /** The key of its row. */
  readonly key: number;
  /** The worker that holds it, and the round in which that worker locked it. */
  readonly executor: ExecutorId;
  readonly run: RunId;
}

/**
 * Notes the run whose lock this transaction has just asserted. Only the operation that locks the
 * run's row and compares its holder may call it. A body that runs again notes it again.
 */
export function* noteAssertedRun(run: AssertedRun): Tx<void> {
  yield new Request("touch", undefined, undefined, undefined, undefined, undefined, { run });
}

/**
 * The run whose transaction this is, for parts of stores that act on its behalf. Undefined in
 * every other transaction and in reads.
 */
export function* assertedRun(): Tx<AssertedRun | undefined> {
  const question = { run: undefined };
  const answer = yield new Request(
    "touch",
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
    question,
  );
  return answer as AssertedRun | undefined;
}
