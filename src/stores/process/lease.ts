import { instantOf } from "../../model/clock.ts";
import type { Now } from "../../model/clock.ts";
import {
  decideLease,
  expiryAt,
  givenBackBefore,
  extended,
  isSameLease,
  lossOf,
} from "../../model/lease.ts";
import type {
  HeldLease,
  LeaseFence,
  LeaseHolder,
  LeaseLoss,
  LeaseOwner,
  ProvenDeath,
} from "../../model/lease.ts";
import {
  processAttemptsUsed,
  processPruned,
  processTerminal,
} from "../../model/process-errors.ts";
import { coreTypes } from "../../model/process-event-type.ts";
import type { ProcessId } from "../../model/process-id.ts";
import { registryKeys } from "../../model/process-replay-key.ts";
import { hasUsedAttempts } from "../../model/process.ts";
import { announce, plainOperation } from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { readingOf } from "../lease/renew.ts";
import type { LeaseReading } from "../lease/renew.ts";
import { appendToProcess } from "./append-to.ts";
import { replayed } from "./event-row.ts";
import {
  clearProcessLease,
  expireProcessLease,
  processLease,
  writeProcessLease,
} from "./lease-row.ts";
import { foundProcess, lockedProcess } from "./process-row.ts";
import { processLeaseChanged } from "./topics.ts";
import { refuseStale } from "./wait-state.ts";

/** A lease of a process in the hands of its holder. */
export interface ProcessLease extends LeaseFence {
  readonly id: ProcessId;
  readonly claimedAt: number;
  readonly expiresAt: number;
}

export type ProcessLeaseOutcome =
  | { readonly kind: "acquired"; readonly lease: ProcessLease }
  | { readonly kind: "busy"; readonly holder: LeaseHolder };

export interface ClaimProcess {
  readonly process: ProcessId;
  readonly owner: LeaseOwner;
  readonly token: string;
  readonly now: Now;
  readonly ttlMs: number;
  /** The holder that was seen, and whose process has provably died since. */
  readonly death?: ProvenDeath | undefined;
}

/**
 * Takes the lease of a running process when nobody holds it, or when its
 * holder has died. Whoever claims again what it has gets a new lease, and the
 * one before is over: of two workers of one incarnation the later one works.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`
 */
export const claimProcess: Operation<ClaimProcess, ProcessLeaseOutcome> =
  plainOperation("claimProcess", {
    key: (input: ClaimProcess) => input.process,
    *one({ process, owner, token, now: clock, ttlMs, death }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      const { status, prunedAt } = root.state;
      if (prunedAt !== null) throw processPruned(root.id);
      if (status !== "running") throw processTerminal(root.id, status);
      const before = yield* processLease(root);
      const decision = decideLease(before, owner, now, death);
      if (decision.kind === "busy") return decision;
      const lease: HeldLease = {
        ...owner,
        fence:
          decision.kind === "reenter"
            ? decision.lease.fence + 1
            : decision.fence,
        givenBack: givenBackBefore(before),
        token,
        claimedAt: now,
        renewedAt: now,
        expiresAt: expiryAt(now, ttlMs),
      };
      yield* writeProcessLease(root, lease);
      yield* announce(processLeaseChanged, root.id);
      return { kind: "acquired", lease: leaseOf(root.id, lease) };
    },
  });

function leaseOf(
  id: ProcessId,
  { owner, incarnation, token, fence, claimedAt, expiresAt }: HeldLease,
): ProcessLease {
  return { id, owner, incarnation, token, fence, claimedAt, expiresAt };
}

export interface RenewProcessLease {
  readonly process: ProcessId;
  readonly fence: LeaseFence;
  readonly now: Now;
  readonly ttlMs: number;
}

export type ProcessRenewal =
  | { readonly kind: "renewed"; readonly lease: ProcessLease }
  | { readonly kind: "lost"; readonly reason: LeaseLoss };

/** Extends a lease; one that is found to have run out is ended for good. @throws HoldfastError `PROCESS_NOT_FOUND` */
export const renewProcessLease: Operation<RenewProcessLease, ProcessRenewal> =
  plainOperation("renewProcessLease", {
    key: (input: RenewProcessLease) => input.process,
    *one({ process, fence, now: clock, ttlMs }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      const state = yield* processLease(root);
      const reason = lossOf(state, fence, now);
      if (reason === "expired") {
        yield* expireProcessLease(root.key, now);
        yield* announce(processLeaseChanged, root.id);
      }
      if (reason !== undefined) return { kind: "lost", reason };
      if (state.kind === "free") return { kind: "lost", reason: "released" };
      const lease = extended(state.lease, now, ttlMs);
      yield* writeProcessLease(root, lease);
      return { kind: "renewed", lease: leaseOf(root.id, lease) };
    },
  });

export interface ReleaseProcessLease {
  readonly process: ProcessId;
  readonly fence: LeaseFence;
}

/** Gives a lease back; false, and no error, when it was no longer held. @throws HoldfastError `PROCESS_NOT_FOUND` */
export const releaseProcessLease: Operation<ReleaseProcessLease, boolean> =
  plainOperation("releaseProcessLease", {
    key: (input: ReleaseProcessLease) => input.process,
    *one({ process, fence }) {
      const root = yield* lockedProcess(process);
      const state = yield* processLease(root);
      if (state.kind === "free" || !isSameLease(state.lease, fence))
        return false;
      yield* clearProcessLease(root.key);
      yield* announce(processLeaseChanged, root.id);
      return true;
    },
  });

/** Who works on a process, and whether the end of a lease is still to be recorded. @throws HoldfastError `PROCESS_NOT_FOUND` */
export const readProcessLease: Operation<
  { readonly process: ProcessId; readonly now: number },
  LeaseReading & { readonly key: number }
> = plainOperation("readProcessLease", {
  key: (input: { readonly process: ProcessId; readonly now: number }) =>
    input.process,
  *one({ process, now }) {
    const root = yield* foundProcess(process);
    return { key: root.key, ...readingOf(yield* processLease(root), now) };
  },
});

export interface StartProcess {
  readonly process: ProcessId;
  readonly fence: LeaseFence;
  readonly now: Now;
}

/**
 * Records that the holder of the lease begins to work: once for each lease.
 * Answers how often it was begun.
 *
 * @throws HoldfastError `PROCESS_NOT_FOUND`, `PROCESS_PRUNED`, `PROCESS_TERMINAL`, `PROCESS_LEASE_LOST`, `PROCESS_ATTEMPTS_USED`
 */
export const startProcess: Operation<StartProcess, number> = plainOperation(
  "startProcess",
  {
    key: (input: StartProcess) => input.process,
    *one({ process, fence, now: clock }) {
      const root = yield* lockedProcess(process);
      const now = instantOf(clock);
      yield* refuseStale(root, fence, now);
      const { status, attempts } = root.state;
      if (status !== "running") throw processTerminal(root.id, status);
      const replayKey = registryKeys.start(fence.fence);
      if ((yield* replayed(root, replayKey)) !== undefined) return attempts;
      const attemptsMax = root.row.attempts_max;
      if (hasUsedAttempts({ attempts, attemptsMax }))
        throw processAttemptsUsed(root.id, attempts);
      const type = coreTypes.started;
      const draft = { type, at: now, hash: "", replayKey };
      return (yield* appendToProcess(root, draft)).state.attempts;
    },
  },
);
