import type { HeldLease, LeaseState } from "../../model/lease.ts";
import { row, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { soundLeaseState, type LeaseRow } from "../lease/lease-row.ts";

interface Leased {
  readonly key: number;
  readonly id: string;
}

/** Who holds the lease of a process. A call that changes it has locked the process before. */
export function* processLease(process: Leased): Tx<LeaseState> {
  const found = yield* row<LeaseRow>(sql`
    SELECT fence, given_back, owner, incarnation, owner_process AS process, token, claimed_at, renewed_at, expires_at
    FROM holdfast_process_lease WHERE process = ${process.key}`);
  return found === undefined
    ? { kind: "free", fence: 0, givenBack: 0 }
    : soundLeaseState("holdfast_process_lease", process.id, found);
}

export function* writeProcessLease(
  process: Leased,
  lease: HeldLease,
): Tx<void> {
  const { fence, givenBack, owner, incarnation, token } = lease;
  const { claimedAt, renewedAt, expiresAt } = lease;
  yield* run(sql`
    INSERT INTO holdfast_process_lease
      (process, fence, given_back, owner, incarnation, owner_process, token, claimed_at, renewed_at, expires_at)
    VALUES (${process.key}, ${fence}, ${givenBack}, ${owner}, ${incarnation}, ${lease.process}, ${token},
      ${claimedAt}, ${renewedAt}, ${expiresAt})
    ON CONFLICT (process) DO UPDATE SET
      fence = excluded.fence, given_back = excluded.given_back, owner = excluded.owner,
      incarnation = excluded.incarnation, owner_process = excluded.owner_process, token = excluded.token, claimed_at = excluded.claimed_at,
      renewed_at = excluded.renewed_at, expires_at = excluded.expires_at`);
}

export function* clearProcessLease(process: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_process_lease SET owner = NULL, incarnation = NULL, owner_process = NULL, token = NULL,
      claimed_at = NULL, renewed_at = NULL, expires_at = NULL
    WHERE process = ${process} AND token IS NOT NULL`);
}

export function* expireProcessLease(process: number, at: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_process_lease SET renewed_at = ${at}
    WHERE process = ${process} AND token IS NOT NULL AND renewed_at < ${at} AND expires_at <= ${at}`);
}
