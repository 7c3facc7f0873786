import { isLive } from "../../model/lease.ts";
import type { OwnerId } from "../../model/ids/prefixed-id.ts";
import { mayStartWith, type Boundary } from "../../model/queue.ts";
import { row, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { leaseState } from "../lease/lease-row.ts";
import { leaseChanged } from "../lease/topics.ts";
import { optionsAndWait } from "../method.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { livingSession, type SessionRef } from "../session-row.ts";
import { waitUntil } from "../wait.ts";
import { policyOf } from "./batch-row.ts";
import { claimable, type ClaimOptions } from "./claim.ts";
import { checkedBoundary, type QueueContext } from "./context.ts";
import { queueWork } from "./topics.ts";

interface AskAhead {
  readonly session: SessionRef;
  readonly boundary: Boundary;
}

type WorkAhead =
  | { readonly kind: "ready" }
  | {
      readonly kind: "nothing";
      /** The instant of the next look if no hint comes first. */
      readonly again: number | undefined;
      /** The process that holds the lease of the claimed batches. */
      readonly claimedBy: OwnerId | null;
    };

/**
 * Tests whether something can be claimed at the front of a queue, or returns the instant at which
 * that may change.
 */
export const workAhead = storeOperation("workAhead", {
  key: (input) => input.session.id,
  *one({ clock }: QueueContext, { session: ref, boundary }: AskAhead): Tx<WorkAhead> {
    const session = yield* livingSession(ref);
    const now = clock.now();
    const state = yield* leaseState(session);
    const lease = state.kind === "held" && isLive(state.lease, now) ? state.lease : undefined;
    const fence = lease?.fence ?? 0;
    const [head] = yield* claimable(session.key, fence, now, 1);
    // Without a running turn a command can be claimed as well as turn work.
    if (head !== undefined && (boundary === "idle" || mayStartWith(policyOf(head), boundary)))
      return { kind: "ready" };
    const later = yield* earliestAfter(session.key, now);
    const isHeldUp = lease !== undefined && (yield* hasClaims(session.key, fence));
    return {
      kind: "nothing",
      again: earlier(later, isHeldUp ? lease.expiresAt : undefined),
      claimedBy: isHeldUp ? lease.process : null,
    };
  },
});

/** The earliest future instant at which a batch becomes available. */
function* earliestAfter(session: number, now: number): Tx<number | undefined> {
  const found = yield* row<{ readonly available_at: number }>(sql`
    SELECT available_at FROM holdfast_queue_batch
    WHERE session = ${session} AND available_at > 0 AND available_at > ${now}
    ORDER BY available_at LIMIT 1`);
  return found?.available_at;
}

function* hasClaims(session: number, fence: number): Tx<boolean> {
  const found = yield* row(sql`
    SELECT key FROM holdfast_queue_batch
    WHERE session = ${session} AND claim IS NOT NULL AND claim_fence = ${fence} LIMIT 1`);
  return found !== undefined;
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

/**
 * Resolves when a session has something that can be claimed at a boundary: enqueued, available by
 * now, released, or left by a process that died. Another worker may claim it first: on an empty
 * claim, wait again.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, and the errors of `waitUntil`.
 */
export async function waitForWork(
  context: QueueContext,
  name: SessionName,
  given?: Omit<ClaimOptions, "key">,
): Promise<void> {
  const { database, clock } = context;
  const session = sessionNamed(name);
  const { options, wait } = optionsAndWait(given, ["boundary"]);
  const boundary = checkedBoundary(options.boundary);
  return waitUntil<void>(
    database,
    {
      what: `work for session "${session.id}"`,
      clock,
      interests: [
        { operation: queueWork, key: session.id },
        { operation: leaseChanged, key: session.id },
      ],
      async look() {
        const input = { session, boundary };
        const ahead = await database.read(workAhead(context), input);
        const isThere =
          ahead.kind === "ready" ||
          (ahead.claimedBy !== null && (await database.liveness(ahead.claimedBy)) === "dead");
        return isThere ? { isThere, value: undefined } : { isThere: false, again: ahead.again };
      },
    },
    wait,
  );
}
