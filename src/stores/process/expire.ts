import type { Now } from "../../model/clock.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { recordingExpiry } from "../lease/expire.ts";
import type { LeaseContext } from "../lease/kind.ts";
import { processLeaseOperations } from "./lease.ts";

interface ShownProcessLease {
  readonly process: ProcessId;
  readonly fence?: LeaseFence | undefined;
}

/** What a call of a worker answers; a lease that it finds to have run out stays so, also for a clock that is set back. */
export function fenced<T>(
  context: LeaseContext,
  { process: of, fence }: ShownProcessLease,
  call: (now: Now) => Promise<T>,
): Promise<T> {
  const { database, clock } = context;
  if (fence === undefined) return call(() => clock.now());
  let at = 0;
  const { endExpired } = processLeaseOperations;
  return recordingExpiry(
    call(() => (at = clock.now())),
    "PROCESS_LEASE_LOST",
    () => database.write(endExpired(context), { of, fence, at }),
  );
}
