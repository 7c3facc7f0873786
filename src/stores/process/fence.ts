import {
  holderOf,
  isLive,
  lossOf,
  processLeaseLost,
} from "../../model/lease.ts";
import type { LeaseFence, ProvenDeath } from "../../model/lease.ts";
import { processLeased } from "../../model/process-errors.ts";
import type { Tx } from "../../sql/operation.ts";
import { processLease } from "./lease-row.ts";
import type { ProcessRoot } from "./process-row.ts";

/**
 * Lets only the holder of a process's lease pass. The process is locked, so
 * that the answer holds until the transaction ends.
 *
 * @throws HoldfastError `PROCESS_LEASE_LOST`; `details.reason` says how.
 */
export function* assertProcessFence(
  root: ProcessRoot,
  fence: LeaseFence,
  now: number,
): Tx<void> {
  const loss = lossOf(yield* processLease(root), fence, now);
  if (loss !== undefined) throw processLeaseLost(root.id, loss);
}

/**
 * Lets nobody pass while somebody works on a process, unless that one is known
 * to have died.
 *
 * @throws HoldfastError `PROCESS_LEASED`
 */
export function* assertUnattended(
  root: ProcessRoot,
  now: number,
  death?: ProvenDeath,
): Tx<void> {
  const state = yield* processLease(root);
  if (state.kind !== "held" || !isLive(state.lease, now)) return;
  const holder = holderOf(state.lease);
  const isDead =
    death?.fence === holder.fence && death.process === holder.process;
  if (!isDead) throw processLeased(root.id, holder);
}
