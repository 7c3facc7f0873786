import type { Now } from "../../model/clock.ts";
import { HoldfastError } from "../../model/errors.ts";
import { isFence, processLeaseLost } from "../../model/lease.ts";
import type { LeaseHolder } from "../../model/lease.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import { parseProcessId } from "../../model/process-id.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import { decideRecovery } from "../../model/process.ts";
import type { ProcessRecovery, ProcessSummary } from "../../model/process.ts";
import { newToken } from "../../model/token.ts";
import { givenFlag, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { checkedRhythm, ownerOf, ttlOf, waitOf } from "../lease/claimant.ts";
import type {
  LeaseKeepOptions,
  LeaseClaimant,
  LeaseOptions,
} from "../lease/claimant.ts";
import { Keeper } from "../lease/keeper.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import { provenDeath } from "../lease/wait.ts";
import { nextCursor, textPlace } from "../cursor.ts";
import { checkedLimit } from "../paging.ts";
import type { Page, PageOptions } from "../list.ts";
import { abandonProcess } from "./abandon.ts";
import { eventPayload } from "./append-event.ts";
import { appendedView, checkedReason } from "./commands.ts";
import type { AppendedProcessEventView } from "./commands.ts";
import type { ProcessSurroundings } from "./context.ts";
import { fenced, recordEnds } from "./expire.ts";
import {
  claimProcess,
  readProcessLease,
  releaseProcessLease,
  renewProcessLease,
  startProcess,
} from "./lease.ts";
import type { ProcessLease, ProcessLeaseOutcome } from "./lease.ts";
import { listRunning } from "./worklist.ts";
import type { RunningProcess } from "./worklist.ts";

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
   * @example const outcome = await processes.claim("build-7", { owner: "worker", incarnation: bootId });
   */
  claim(
    process: string,
    claimant: LeaseClaimant,
    options?: LeaseOptions,
  ): Promise<ProcessLeaseOutcome>;
  /** Records that the holder begins to work, once for each lease; answers how often it was begun. @throws HoldfastError `PROCESS_LEASE_LOST`, `PROCESS_TERMINAL`, `PROCESS_ATTEMPTS_USED` */
  start(lease: ProcessLease, wait?: WaitOptions): Promise<number>;
  /** Extends a lease; it never gets shorter. @throws HoldfastError `PROCESS_LEASE_LOST` */
  renew(lease: ProcessLease, options?: LeaseOptions): Promise<ProcessLease>;
  /** Gives it back; false when it was no longer held. */
  release(lease: ProcessLease, wait?: WaitOptions): Promise<boolean>;
  /** Who works on a process. A lease that is found to have run out is recorded as over, so that it stays so when the clock is set back. @throws HoldfastError `PROCESS_NOT_FOUND` */
  holder(process: string, wait?: WaitOptions): Promise<LeaseHolder | undefined>;
  /** Renews a lease in the background until it is stopped or lost. @throws HoldfastError `OPTION_INVALID` when `every` is more than a third of `ttl` */
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

export function processLeases(around: ProcessSurroundings): ProcessLeases {
  const { database, clock } = around;
  const byClock: Now = () => clock.now();
  return {
    claim: (process, claimant, options) =>
      claimed(around, process, claimant, options),
    async start(given, wait) {
      const lease = checkedProcessLease(given);
      const input = { process: lease.id, fence: lease };
      return fenced(around, input, (now) =>
        database.write(startProcess, { ...input, now }, wait),
      );
    },
    async renew(given, options) {
      const lease = checkedProcessLease(given);
      const renewal = await database.write(
        renewProcessLease,
        {
          process: lease.id,
          fence: lease,
          now: byClock,
          ttlMs: ttlOf(options),
        },
        waitOf(options),
      );
      if (renewal.kind === "renewed") return renewal.lease;
      throw processLeaseLost(lease.id, renewal.reason);
    },
    async release(given, wait) {
      const lease = checkedProcessLease(given);
      const held = { process: lease.id, fence: lease };
      return database.write(releaseProcessLease, held, wait);
    },
    holder: (process, wait) => shownHolder(around, process, wait),
    keep(given, options) {
      const { ttlMs, everyMs } = checkedRhythm(options);
      return new Keeper(clock, checkedProcessLease(given), everyMs, {
        renew: (lease, signal) =>
          database.write(
            renewProcessLease,
            { process: lease.id, fence: lease, now: byClock, ttlMs },
            { signal },
          ),
        lost: ({ id }, reason) => processLeaseLost(id, reason),
      });
    },
    worklist: (options) => worklist(around, options),
    abandon: (process, reason, wait) =>
      abandoned(around, process, reason, wait),
  };
}

async function shownHolder(
  around: ProcessSurroundings,
  process: string,
  wait: WaitOptions | undefined,
): Promise<LeaseHolder | undefined> {
  const { database, clock } = around;
  const input = { process: parseProcessId(process), now: clock.now() };
  const reading = await database.read(readProcessLease, input, wait);
  const processes = reading.isUnrecordedEnd ? [reading.key] : [];
  const ends = await recordEnds(around, { processes, at: input.now }, wait);
  return ends.get(reading.key) ?? reading.holder;
}

async function claimed(
  { database, clock, entropy }: ProcessSurroundings,
  process: string,
  claimant: LeaseClaimant,
  options: LeaseOptions | undefined,
): Promise<ProcessLeaseOutcome> {
  const request = {
    process: parseProcessId(process),
    owner: ownerOf(database, claimant),
    token: newToken(entropy),
    ttlMs: ttlOf(options),
    now: () => clock.now(),
  };
  const wait = waitOf(options);
  const first = await database.write(claimProcess, request, wait);
  if (first.kind === "acquired") return first;
  const death = await provenDeath(database, first.holder);
  if (death === undefined) return first;
  return database.write(claimProcess, { ...request, death }, wait);
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
    readProcessLease,
    { process: id, now: clock.now() },
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
  const processes = ended.map(({ key }) => key);
  await recordEnds(around, { processes, at: now }, wait);
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

/** Nothing of it is repeated in the error. @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED` */
function checkedProcessLease(lease: ProcessLease): ProcessLease {
  const given: unknown = lease;
  if (isFence(given)) {
    parseProcessId(lease.id);
    return lease;
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a lease as claim and renew return it, with its id, owner, incarnation, token and fence. Pass that object as it is.",
    { option: "lease" },
  );
}
