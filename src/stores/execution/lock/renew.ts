import type { Duration } from "../../../model/time/durations.ts";
import { assertLeaseAhead } from "../../../model/execution/lock.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { instantAfter } from "../../../model/time/instants.ts";
import { checkedCount, draftOf, givenFlag, givenList } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { integersOf, lockRow } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { checkedFence, type Fence } from "../checks.ts";
import type { ExecutionContext } from "../context.ts";

/** A run that a worker holds, by its id and the key that locking returned. */
export interface HeldRun {
  readonly id: string;
  readonly key: number;
}

export interface RenewOptions extends WaitOptions {
  /** The holder: an executor, and this round of it. */
  readonly holder: Fence;
  /** The length of the lease, from now; a lease that ends later stays. */
  readonly lease: Duration;
  /**
   * True if the holder runs other work beside them from now on: a lock that was taken alone is no
   * longer alone.
   */
  readonly beside?: boolean;
}

export interface RenewRuns {
  readonly runs: readonly { readonly id: ExecutionId; readonly key: number }[];
  readonly holder: Fence;
  readonly at: number;
  readonly leaseUntil: number;
  readonly beside: boolean;
}

const runsMax = 1_000;

export function givenRenew(
  { clock }: ExecutionContext,
  runs: readonly HeldRun[],
  options: RenewOptions,
): Call<RenewRuns> {
  const { options: given, wait } = optionsAndWait(options, ["holder", "lease", "beside"]);
  const at = clock.now();
  const input = {
    runs: Array.from(givenList("runs", runs, runsMax), (run) => {
      const { id, key } = draftOf("a held run", run, ["id", "key"]);
      return { id: parseExecutionId(id), key: checkedCount("key", key) };
    }),
    holder: checkedFence("holder", given.holder),
    at,
    leaseUntil: instantAfter(at, given.lease, "a lease"),
    beside: givenFlag("beside", given.beside) ?? false,
  };
  assertLeaseAhead(input);
  return { input, wait };
}

interface RenewOutcome {
  /** Runs that this holder no longer has: stop working on them. */
  readonly lost: readonly ExecutionId[];
}

/**
 * Extends leases without an event, with one statement for all: those of locked runs and of runs
 * kept in memory while they wait. A run that is due at the end of its lease is due at the end of
 * the new one.
 *
 * An expired lease is renewed if no other worker has taken the run and no event has recorded the
 * expiry.
 *
 * The younger row is locked first, as where an execution locks itself and then its parent, so that
 * no two transactions deadlock.
 */
export const renewLeases = storeOperation("renewLeases", {
  key: (input) => input.holder.executor,
  *one(
    { clock }: ExecutionContext,
    { runs, holder, beside, ...given }: RenewRuns,
  ): Tx<RenewOutcome> {
    // The call may have waited since it was made.
    const lateMs = Math.max(0, clock.now() - given.at);
    const until = given.leaseUntil + lateMs;
    const held = sql`executor = ${holder.executor} AND run = ${holder.run} AND lease_until IS NOT NULL`;
    const renewed = yield* rows<{
      readonly key: number;
      readonly id: ExecutionId;
    }>(sql`
      UPDATE holdfast_execution SET
        lease_until = CASE WHEN lease_until < ${until} THEN ${until} ELSE lease_until END,
        due_at = CASE WHEN due_at < ${until} THEN ${until} ELSE due_at END
        ${beside ? sql`, is_alone = NULL` : sql``}
      WHERE ${held} AND key IN (
        SELECT key FROM holdfast_execution
        WHERE key IN ${integersOf(runs.map(({ key }) => key))} AND ${held} ORDER BY key DESC ${lockRow})
      RETURNING key, id`);
    const kept = new Map(renewed.map(({ key, id }) => [key, id]));
    return {
      lost: runs.filter(({ key, id }) => kept.get(key) !== id).map(({ id }) => id),
    };
  },
});
