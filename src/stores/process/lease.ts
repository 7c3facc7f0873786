import { instantOf } from "../../model/time/clock.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import {
  holderOf,
  isFence,
  isLive,
  processLeaseLost,
  type HeldLease,
  type LeaseFence,
  type LeaseState,
  type ProvenDeath,
} from "../../model/lease.ts";
import {
  processAttemptsUsed,
  processLeased,
  processPruned,
  processSpawned,
  processTerminal,
} from "../../model/process/errors.ts";
import { coreTypes } from "../../model/process/event-type.ts";
import { parseProcessId, type ProcessId } from "../../model/ids/process-id.ts";
import { registryKeys } from "../../model/process/replay-key.ts";
import { hasUsedAttempts } from "../../model/process/process.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { row, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isUnfinished } from "../execution/parts.ts";
import {
  givenLeaseTime,
  givenRequest,
  type HeldRef,
  type LeaseClaimant,
  type LeaseContext,
  type LeaseOptions,
  type LeaseOutcome,
  type RenewLease,
} from "../lease/context.ts";
import { soundLeaseState, type LeaseRow } from "../lease/lease-row.ts";
import { leaseOperations, type LeaseOperations } from "../lease/parts.ts";
import { onlyWait, type Call } from "../method.ts";
import type { ProcessContext } from "./context.ts";
import { appendToProcess, replayed } from "./event-row.ts";
import { foundProcess, lockedProcess, type ProcessRoot } from "./process-row.ts";

/**
 * The topic of process leases: the lease of the process that the key names has another holder or is
 * free.
 */
const processLeaseChanged = "process.lease";

interface Leased {
  readonly key: number;
  readonly id: string;
}

/** The lease state of a process. A call that changes it has locked the process before. */
function* processLease(process: Leased): Tx<LeaseState> {
  const found = yield* row<LeaseRow>(sql`
    SELECT fence, given_back, owner, incarnation, owner_process AS process, token, claimed_at, renewed_at, expires_at
    FROM holdfast_process_lease WHERE process = ${process.key}`);
  return found === undefined
    ? { kind: "free", fence: 0, givenBack: 0 }
    : soundLeaseState("holdfast_process_lease", process.id, found);
}

function* writeProcessLease(process: Leased, lease: HeldLease): Tx<void> {
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

function* clearProcessLease(process: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_process_lease SET owner = NULL, incarnation = NULL, owner_process = NULL, token = NULL,
      claimed_at = NULL, renewed_at = NULL, expires_at = NULL
    WHERE process = ${process} AND token IS NOT NULL`);
}

function* expireProcessLease(process: number, at: number): Tx<number> {
  return yield* run(sql`
    UPDATE holdfast_process_lease SET renewed_at = ${at}
    WHERE process = ${process} AND token IS NOT NULL AND renewed_at < ${at} AND expires_at <= ${at}`);
}

/** The lease of a process. */
export interface ProcessLease extends LeaseFence {
  readonly id: ProcessId;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

/**
 * The leases of processes. An incarnation that claims a lease again gets a new one, and the old one
 * ends. With two workers of one incarnation, the later one works.
 */
export const processLeaseOperations: LeaseOperations<ProcessId, ProcessRoot, ProcessLease> =
  leaseOperations({
    noun: "ProcessLease",
    topic: processLeaseChanged,
    named: (id) => `process "${id}"`,
    idOf: (id) => id,
    refOf: ({ id }) => id,
    lock: lockedProcess,
    find: foundProcess,
    isGone: (error) => isHoldfastError(error) && error.code === "PROCESS_NOT_FOUND",
    *assertLeasable(root) {
      const { id, state } = root;
      if (state.prunedAt !== null) throw processPruned(id);
      if (state.status !== "running") throw processTerminal(id, state.status);
      yield* refuseSpawned(root);
    },
    isShared: false,
    announcesHolders: true,
    rows: {
      read: processLease,
      write: writeProcessLease,
      clear: clearProcessLease,
      expire: expireProcessLease,
    },
    leaseOf: ({ id }, { owner, incarnation, token, fence, claimedAt, expiresAt }) => ({
      id,
      owner,
      incarnation,
      token,
      fence,
      claimedAt,
      expiresAt,
    }),
    lost: processLeaseLost,
  });

/**
 * Refuses a process that runs as an execution. Such a process is worked on and ends only with its
 * execution, whose result would otherwise be lost. The execution needs no lock, since its end would
 * have to lock the process.
 *
 * @throws HoldfastError `PROCESS_SPAWNED`
 */
export function* refuseSpawned({ id, row: { execution, execution_id } }: ProcessRoot): Tx<void> {
  if (execution === null || execution_id === null) return;
  if (yield* isUnfinished(execution)) throw processSpawned(id, execution_id);
}

/**
 * Accepts only the holder of a process's lease, and returns the instant at which the lease was
 * judged. The process is locked, so the answer stays true until the transaction ends. An expired
 * lease is recorded as ended after the rollback of the call, and before its caller learns of it.
 *
 * @throws HoldfastError `PROCESS_LEASE_LOST`; `details.reason` names the reason.
 */
export function* assertProcessFence(
  context: LeaseContext,
  root: ProcessRoot,
  fence: LeaseFence,
): Tx<number> {
  return (yield* processLeaseOperations.assertHeld(context, root, fence)).at;
}

/**
 * Refuses a process that has a worker, unless that worker is known to have died. Returns the
 * instant at which that was judged.
 *
 * @throws HoldfastError `PROCESS_LEASED`
 */
export function* assertUnattended(
  { clock }: Pick<LeaseContext, "clock">,
  root: ProcessRoot,
  death?: ProvenDeath,
): Tx<number> {
  const state = yield* processLease(root);
  const at = instantOf(() => clock.now());
  if (state.kind !== "held" || !isLive(state.lease, at)) return at;
  const holder = holderOf(state.lease);
  const isDead = death?.fence === holder.fence && death.process === holder.process;
  if (!isDead) throw processLeased(root.id, holder);
  return at;
}

/**
 * Validates a lease that a caller passes. The error repeats nothing of it.
 * @throws HoldfastError `OPTION_INVALID`, `ID_MALFORMED`
 */
export function givenProcessLease(given: ProcessLease): HeldRef<ProcessId> {
  if (isFence(given)) {
    const { id, owner, incarnation, token, fence } = given;
    const shown = { owner, incarnation, token, fence };
    return { of: parseProcessId(id), fence: shown };
  }
  throw new HoldfastError(
    "OPTION_INVALID",
    "Expected a lease as claim and renew return it, with its id, owner, incarnation, token and fence. Pass that object unchanged.",
    { option: "lease" },
  );
}

export function givenHeld(
  _: LeaseContext,
  lease: ProcessLease,
  wait?: WaitOptions,
): Call<HeldRef<ProcessId>> {
  return { input: givenProcessLease(lease), wait: onlyWait(wait) };
}

/** @throws HoldfastError `OPTION_INVALID`, `DURATION_INVALID`, `ID_MALFORMED` */
export function givenRenew(
  _: LeaseContext,
  lease: ProcessLease,
  options?: LeaseOptions,
): Call<RenewLease<ProcessId>> {
  const shown = givenProcessLease(lease);
  const { leaseMs, wait } = givenLeaseTime(options);
  return { input: { ...shown, leaseMs }, wait };
}

/** Claims the lease of a running process, or returns its holder. */
export async function claimProcess(
  context: ProcessContext,
  process: string,
  claimant: LeaseClaimant,
  options: LeaseOptions | undefined,
): Promise<LeaseOutcome<ProcessLease>> {
  const of = parseProcessId(process);
  const { request, wait } = givenRequest(context, claimant, options);
  return processLeaseOperations.take(context, { ...request, of }, wait);
}

/**
 * Records that the holder of the lease starts to work, once per lease. Returns the number of starts
 * so far.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`,
 *   `PROCESS_SPAWNED`, `PROCESS_LEASE_LOST`, `PROCESS_ATTEMPTS_USED`
 */
export const startProcess = storeOperation("startProcess", {
  key: (input) => input.of,
  *one(context: LeaseContext, { of, fence }: HeldRef<ProcessId>): Tx<number> {
    const root = yield* lockedProcess(of);
    if (root.state.prunedAt !== null) throw processPruned(root.id);
    const at = yield* assertProcessFence(context, root, fence);
    const { status, attempts } = root.state;
    if (status !== "running") throw processTerminal(root.id, status);
    yield* refuseSpawned(root);
    const replayKey = registryKeys.start(fence.fence);
    if ((yield* replayed(root, replayKey)) !== undefined) return attempts;
    const attemptsMax = root.row.attempts_max;
    if (hasUsedAttempts({ attempts, attemptsMax })) throw processAttemptsUsed(root.id, attempts);
    const type = coreTypes.started;
    const draft = { type, at, hash: "", replayKey };
    return (yield* appendToProcess(root, draft)).state.attempts;
  },
});
