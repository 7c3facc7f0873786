import type { LeaseHolder } from "../../model/lease.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import { parseProcessId, type ProcessId } from "../../model/process-id.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import {
  decideRecovery,
  type ProcessRecovery,
  type ProcessSummary,
} from "../../model/process.ts";
import { givenFlag, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { nextCursor, textPlace } from "../cursor.ts";
import type { LeaseOutcome, RenewLease } from "../lease/acquire.ts";
import { readHolder, recordFoundEnds } from "../lease/ends.ts";
import {
  givenLeaseTime,
  givenRequest,
  givenRhythm,
  type LeaseClaimant,
  type LeaseKeepOptions,
  type LeaseOptions,
} from "../lease/given.ts";
import { keepLease, type LeaseKeeper } from "../lease/keeper.ts";
import type { LeaseContext } from "../lease/kind.ts";
import { provenDeath, takeLease } from "../lease/wait.ts";
import type { Page, PageOptions } from "../list.ts";
import { onlyWait, writes, type Call, type Method } from "../method.ts";
import { checkedLimit } from "../paging.ts";
import { abandonProcess } from "./abandon.ts";
import { eventPayload } from "./append-event.ts";
import {
  appendedView,
  checkedReason,
  type AppendedProcessEventView,
} from "./commands.ts";
import type { ProcessSurroundings } from "./context.ts";
import {
  givenHeld,
  givenProcessLease,
  processLeaseOperations,
  startProcess,
  type ProcessLease,
} from "./lease.ts";
import { listRunning, type RunningProcess } from "./worklist.ts";

/** A process that nobody works on. */
export interface RecoverableProcess {
  /** `get` shows what was given to it. */
  readonly process: ProcessSummary;
  /** Why nobody does: nobody ever asked or it was given back, the lease ran out, or the owner died. */
  readonly lease: "none" | "expired" | "ownerDead";
  /** What its disposition, and how often it was begun, say is to be done. */
  readonly recovery: ProcessRecovery;
}

export interface ProcessWorklistOptions extends PageOptions {
  /** Only what nobody has begun, or only what somebody has. */
  readonly started?: boolean;
  /** How many running processes are looked at: 1 to 1,000; 100 unless told. */
  readonly limit?: number;
}

/** The right to work on a process: one holder at a time, and a fence that only grows. */
export interface ProcessLeases {
  /**
   * Takes the lease of a running process, or says who has it. From a holder
   * that has provably died it is taken at once.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`
   * @example const outcome = await processes.claim("build-7", { owner: "worker", incarnation: bootId }, { lease: "1 min" });
   */
  claim(
    process: string,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<LeaseOutcome<ProcessLease>>;
  /**
   * Records that the holder begins to work, once for each lease; answers how
   * often it was begun.
   * @throws HoldfastError `PROCESS_LEASE_LOST`, `PROCESS_TERMINAL`, `PROCESS_ATTEMPTS_USED`
   */
  readonly start: Method<[lease: ProcessLease, wait?: WaitOptions], number>;
  /** Extends a lease; it never gets shorter. @throws HoldfastError `PROCESS_LEASE_LOST` */
  readonly renew: Method<
    [lease: ProcessLease, options?: LeaseOptions],
    ProcessLease
  >;
  /** Releases it; false when it was no longer held. */
  readonly release: Method<[lease: ProcessLease, wait?: WaitOptions], boolean>;
  /**
   * Who works on a process. A lease that is found to have run out is recorded
   * as over, so that it stays so when the clock is set back.
   * @throws HoldfastError `PROCESS_NOT_FOUND`
   */
  holder(process: string, wait?: WaitOptions): Promise<LeaseHolder | undefined>;
  /**
   * Renews a lease in the background until it is stopped or lost.
   * @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `lease`
   */
  keep(
    lease: ProcessLease,
    options?: LeaseKeepOptions,
  ): LeaseKeeper<ProcessLease>;
  /** Running processes that nobody works on, by id, with what is to be done about each. */
  worklist(options?: ProcessWorklistOptions): Promise<Page<RecoverableProcess>>;
  /**
   * Ends a process that nobody can finish. May be repeated.
   * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_TERMINAL`, `PROCESS_SPAWNED` while it runs as an execution, `PROCESS_LEASED` while somebody works on it
   */
  abandon(
    process: string,
    reason: string,
    wait?: WaitOptions,
  ): Promise<AppendedProcessEventView>;
}

export function processLeases(context: ProcessSurroundings): ProcessLeases {
  const leases = processLeaseOperations;
  return {
    async claim(process, claimant, options) {
      const of = parseProcessId(process);
      const { request, wait } = givenRequest(context, claimant, options);
      return takeLease(leases, context, { ...request, of }, wait);
    },
    start: writes(context, startProcess, givenHeld),
    renew: writes(context, leases.renew, givenRenew),
    release: writes(context, leases.release, givenHeld),
    holder: async (process, wait) =>
      readHolder(leases, context, parseProcessId(process), onlyWait(wait)),
    keep: (lease, options) =>
      keepLease(
        leases,
        context,
        { lease, of: givenProcessLease(lease).of },
        givenRhythm(options),
      ),
    worklist: (options) => worklist(context, options),
    abandon: (process, reason, wait) =>
      abandoned(context, process, reason, wait),
  };
}

function givenRenew(
  _: LeaseContext,
  lease: ProcessLease,
  options?: LeaseOptions,
): Call<RenewLease<ProcessId>> {
  const shown = givenProcessLease(lease);
  const { leaseMs, wait } = givenLeaseTime(options);
  return { input: { ...shown, leaseMs }, wait };
}

async function abandoned(
  around: ProcessSurroundings,
  process: string,
  reason: string,
  wait: WaitOptions | undefined,
): Promise<AppendedProcessEventView> {
  const { database, clock, codec } = around;
  const id = parseProcessId(process);
  const type = coreTypes.abandoned;
  const message = checkedReason(reason);
  const payload = { output: { kind: "abandoned", message } };
  const { holder } = await database.read(
    processLeaseOperations.judge(around),
    { of: id },
    wait,
  );
  const death = holder && (await provenDeath(database, holder));
  const event = {
    process: id,
    type,
    payload: eventPayload(codec, type, payload),
    replayKey: registryKeys.end(type),
    now: () => clock.now(),
    codec,
  };
  const appended = await database.write(abandonProcess, { event, death }, wait);
  return appendedView(around, appended);
}

async function worklist(
  around: ProcessSurroundings,
  options: ProcessWorklistOptions | undefined,
): Promise<Page<RecoverableProcess>> {
  const { database, clock } = around;
  const { started, after, limit, ...wait } = optionsOf(options);
  const isStarted = givenFlag("started", started);
  const owner = `worklist:${String(isStarted)}`;
  const now = clock.now();
  const page = await database.read(
    listRunning,
    {
      after: after === undefined ? "" : textPlace(owner, after),
      isStarted,
      limit: checkedLimit(limit),
      now,
    },
    wait,
  );
  const ended = page.items.filter((item) => item.isUnrecordedEnd);
  const of = ended
    .toSorted((a, b) => a.key - b.key)
    .map(({ process }) => process.id);
  await recordFoundEnds(processLeaseOperations, around, { of, at: now }, wait);
  const unattended = await withoutLiving(around, page.items);
  return {
    items: unattended.map(({ process, holder, hasExpired }) => ({
      process,
      lease: holder ? "ownerDead" : hasExpired ? "expired" : "none",
      recovery: decideRecovery(process),
    })),
    damaged: page.damaged,
    next: nextCursor(owner, page.next),
  };
}

/** Those that nobody works on, or somebody who has died. Each owner is asked about once. */
async function withoutLiving(
  { database }: ProcessSurroundings,
  running: readonly RunningProcess[],
): Promise<readonly RunningProcess[]> {
  const dead = new Map<string, boolean>();
  const kept: RunningProcess[] = [];
  for (const one of running) {
    const { holder } = one;
    if (holder !== undefined) {
      const { process } = holder;
      if (process === null) continue;
      if (!dead.has(process))
        dead.set(process, (await database.liveness(process)) === "dead");
      if (dead.get(process) !== true) continue;
    }
    kept.push(one);
  }
  return kept;
}
