import type { Now } from "../../model/clock.ts";
import { lossOf } from "../../model/lease.ts";
import type { LeaseFence, LeaseHolder } from "../../model/lease.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { announce, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { recordingExpiry } from "../lease/expire.ts";
import type { ProcessSurroundings } from "./context.ts";
import { readingOf } from "../lease/renew.ts";
import { expireProcessLease, processLease } from "./lease-row.ts";
import { lockedProcess, lockedProcessByKey } from "./process-row.ts";
import { processLeaseChanged } from "./topics.ts";

interface ShownProcessLease {
  readonly process: ProcessId;
  readonly fence?: LeaseFence | undefined;
}

interface JudgedProcessLease extends ShownProcessLease {
  /** When it was found to have run out. */
  readonly at: number;
}

/** Records that a lease had run out at an instant; false when it had not, or somebody else has it. */
const endExpiredProcessLease: Operation<JudgedProcessLease, boolean> =
  plainOperation("endExpiredProcessLease", {
    key: (input: JudgedProcessLease) => input.process,
    *one({ process, fence, at }) {
      const root = yield* lockedProcess(process);
      const state = yield* processLease(root);
      if (state.kind === "free" || lossOf(state, fence, at) !== "expired")
        return false;
      yield* expireProcessLease(root.key, at);
      yield* announce(processLeaseChanged, root.id);
      return true;
    },
  });

interface ProcessLeaseEnds {
  /** Keys of processes whose leases were found to be over. */
  readonly processes: readonly number[];
  readonly at: number;
}

/** Judges leases again once their processes are locked, and records those that are over. Tells who holds the others. */
const recordProcessLeaseEnds: Operation<
  ProcessLeaseEnds,
  ReadonlyMap<number, LeaseHolder | undefined>
> = plainOperation("recordProcessLeaseEnds", {
  key: (input: ProcessLeaseEnds) => String(input.processes[0]),
  *one({ processes, at }) {
    const holders = new Map<number, LeaseHolder | undefined>();
    for (const key of processes.toSorted((a, b) => a - b)) {
      const root = yield* lockedProcessByKey(key);
      if (root === undefined) continue;
      const reading = readingOf(yield* processLease(root), at);
      holders.set(key, reading.holder);
      if (!reading.isUnrecordedEnd) continue;
      yield* expireProcessLease(key, at);
      yield* announce(processLeaseChanged, root.id);
    }
    return holders;
  },
});

/**
 * Before a caller learns that leases have run out, that is recorded. Tells
 * which of them were renewed meanwhile, and by whom; where nothing can be
 * written, none.
 */
export async function recordEnds(
  { database }: Pick<ProcessSurroundings, "database">,
  ends: ProcessLeaseEnds,
  wait: WaitOptions | undefined,
): Promise<ReadonlyMap<number, LeaseHolder | undefined>> {
  if (ends.processes.length === 0) return new Map();
  return database
    .write(recordProcessLeaseEnds, ends, wait)
    .catch(() => new Map<number, LeaseHolder | undefined>());
}

/** What a call of a worker answers; a lease that it finds to have run out stays so, also for a clock that is set back. */
export function fenced<T>(
  { database, clock }: Pick<ProcessSurroundings, "database" | "clock">,
  { process, fence }: ShownProcessLease,
  call: (now: Now) => Promise<T>,
): Promise<T> {
  if (fence === undefined) return call(() => clock.now());
  let at = 0;
  return recordingExpiry(
    call(() => (at = clock.now())),
    "PROCESS_LEASE_LOST",
    () => database.write(endExpiredProcessLease, { process, fence, at }),
  );
}
