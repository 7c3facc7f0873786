import { batchesPerClaimMax } from "../../model/queue.ts";
import type { LeaseFence } from "../../model/lease.ts";
import type { Boundary } from "../../model/queue.ts";
import { newToken } from "../../model/token.ts";
import { checkedCount, checkedText, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { Lease } from "../lease/acquire.ts";
import { endingExpired } from "../lease/expire.ts";
import { givenLease } from "../lease/parts.ts";
import { sessionNamed } from "../session/session-name.ts";
import type { SessionName } from "../session/session-name.ts";
import type { SessionRef } from "../session/session-row.ts";
import {
  checkedBatchIds,
  checkedBoundary,
  checkedClaim,
  checkedClaims,
} from "./checks.ts";
import { abandonClaim, claimWork } from "./claim.ts";
import type { ClaimedWork, QueueClaimRef, WantedWork } from "./claim.ts";
import { completeWithoutCommit } from "./complete.ts";
import { readBatch } from "./context.ts";
import type { QueueContext } from "./context.ts";
import { waitForWork } from "./wait.ts";

export interface ClaimKey {
  /**
   * Names the claim for its caller, so that making it twice is making it once:
   * after `OUTCOME_UNKNOWN`, repeat it with the same key and the same lease,
   * and get what it took the first time. Each new claim needs a new key.
   * Without one, what a lost answer took is claimed until the lease ends.
   */
  readonly key?: string;
}

export interface QueueClaimOptions extends WaitOptions, ClaimKey {
  /** Whether a turn is running: `idle`, so none, unless told. */
  readonly boundary?: Boundary;
}

/** Taking work from a queue, and being done with it. */
export interface QueueClaims {
  /**
   * Claims the batches at the front that go into one turn: at most `max`, or
   * nothing when the front is a command or has to wait for the boundary.
   * @throws HoldfastError `LEASE_LOST`, or `CORRUPT_ROW` when a payload cannot be read: then nothing stays claimed
   */
  claimTurn(
    lease: Lease,
    options?: QueueClaimOptions & { readonly max?: number },
  ): Promise<ClaimedWork<unknown> | undefined>;
  /** Claims the batch at the front if it is a command. @throws HoldfastError `LEASE_LOST`, `CORRUPT_ROW` */
  claimCommand(
    lease: Lease,
    options?: WaitOptions & ClaimKey,
  ): Promise<ClaimedWork<unknown> | undefined>;
  /** Claims exactly these batches if they are at the front in this order. @throws HoldfastError `LEASE_LOST`, `CORRUPT_ROW` */
  claimBatches(
    lease: Lease,
    ids: readonly string[],
    options?: QueueClaimOptions,
  ): Promise<ClaimedWork<unknown> | undefined>;
  /** Gives claimed batches back, to be claimed again at once; tells how many. */
  abandon(
    session: SessionName,
    claim: QueueClaimRef,
    wait?: WaitOptions,
  ): Promise<number>;
  /** Consumes claimed work outside of any commit: for work that leaves nothing behind in its session. May be repeated under the same lease, until 256 other claims have been completed in this way. @throws HoldfastError `LEASE_LOST`, `CLAIM_LOST` */
  completeWithoutCommit(
    lease: Lease,
    claims: readonly QueueClaimRef[],
    wait?: WaitOptions,
  ): Promise<void>;
  /** Resolves when there is something to claim at the boundary. Somebody else may be faster: claim, and wait again. */
  waitForWork(
    session: SessionName,
    options?: Omit<QueueClaimOptions, "key">,
  ): Promise<void>;
}

export function queueClaims(around: QueueContext): QueueClaims {
  const { database } = around;
  const claimed = (
    lease: Lease,
    want: WantedWork,
    options?: WaitOptions & ClaimKey,
  ): Promise<ClaimedWork<unknown> | undefined> =>
    claimReadable(around, lease, want, options);
  return {
    async claimTurn(lease, options) {
      const { boundary, max = batchesPerClaimMax } = optionsOf(options);
      const range = { min: 0, max: batchesPerClaimMax };
      const want = {
        kind: "turn",
        boundary: checkedBoundary(boundary),
        max: checkedCount("max", max, range),
      } as const;
      return claimed(lease, want, options);
    },
    claimCommand: async (lease, options) =>
      claimed(lease, { kind: "command" }, options),
    async claimBatches(lease, ids, options) {
      const boundary = checkedBoundary(optionsOf(options).boundary);
      const wanted = checkedBatchIds(ids);
      return claimed(lease, { kind: "these", boundary, ids: wanted }, options);
    },
    abandon: async (session, claim, wait) =>
      database.write(
        abandonClaim,
        { session: sessionNamed(session), claim: checkedClaim(claim) },
        wait,
      ),
    async completeWithoutCommit(lease, claims, wait) {
      const shown = shownBy(lease);
      const checked = checkedClaims(claims);
      return endingExpired(around, shown, (now) =>
        database.write(
          completeWithoutCommit,
          { ...shown, claims: checked, now },
          wait,
        ),
      );
    },
    waitForWork: async (session, options) =>
      waitForWork(
        around,
        sessionNamed(session),
        checkedBoundary(optionsOf(options).boundary),
        waitOf(options),
      ),
  };
}

function shownBy(given: Lease): {
  readonly session: SessionRef;
  readonly fence: LeaseFence;
} {
  const { of: session, fence } = givenLease(given);
  return { session, fence };
}

async function claimReadable(
  around: QueueContext,
  lease: Lease,
  want: WantedWork,
  options?: WaitOptions & ClaimKey,
): Promise<ClaimedWork<unknown> | undefined> {
  const { database } = around;
  const shown = shownBy(lease);
  const { key } = optionsOf(options);
  const claim = tokenOf(around, lease, key);
  const mayBeRepeated = key !== undefined;
  const work = await endingExpired(around, shown, (now) =>
    database.write(
      claimWork,
      { ...shown, want, claim, mayBeRepeated, now },
      waitOf(options),
    ),
  );
  if (work === undefined) return undefined;
  try {
    const batches = work.batches.map((batch) => readBatch(around, batch));
    return { ...work, batches };
  } catch (error) {
    // Else it would stay claimed by somebody who never got it.
    await givenBack(around, lease, work.ref);
    throw error;
  }
}

/** Nobody but the holder of the lease can know it, whatever key it was made from. */
function tokenOf(
  { database, entropy }: QueueContext,
  lease: Lease,
  key: string | undefined,
): string {
  return key === undefined
    ? newToken(entropy)
    : database.sha256Hex(
        `${lease.token} ${checkedText("The key of a claim", key)}`,
      );
}

const attemptsMax = 3;

/** Tries more than once. What stays claimed even so is free with the end of the lease. */
async function givenBack(
  { database }: QueueContext,
  { session }: Lease,
  claim: QueueClaimRef,
): Promise<void> {
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1)
    try {
      await database.write(abandonClaim, { session, claim });
      return;
    } catch {
      await database.pause();
    }
}

function waitOf({ signal, timeout }: WaitOptions = {}): WaitOptions {
  return { signal, timeout };
}
