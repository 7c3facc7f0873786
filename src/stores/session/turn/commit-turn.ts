import type { Now } from "../../../model/clock.ts";
import type { Encoded } from "../../../model/encoded.ts";
import type { LeaseFence } from "../../../model/lease.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import {
  attachmentsGone,
  revisionConflict,
  turnConflict,
} from "../../../model/session-errors.ts";
import { firstDifference } from "../../../model/session-turn.ts";
import type {
  NodeChoice,
  TurnClaim,
  TurnIdentity,
  TurnPartHashes,
} from "../../../model/session-turn.ts";
import type { UsageEntry } from "../../../model/session.ts";
import { row, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { stampAttachments } from "../../attachment/attachment-row.ts";
import { assertFenceAt, endLease } from "../../lease/parts.ts";
import { consumeClaims } from "../../queue/complete.ts";
import { lockedHead } from "../head-row.ts";
import type { SessionHeadRow } from "../head-row.ts";
import type { SessionRef } from "../session-row.ts";
import type { Manifest, PreparedComponent } from "./turn-components.ts";
import { chosenFrame } from "./turn-frames.ts";
import type { PreparedFrame } from "./turn-frames.ts";
import { appendNodes, chosenLeaf } from "./turn-nodes.ts";
import type { PreparedNode } from "./turn-nodes.ts";
import { writeState } from "./turn-state.ts";
import { writeUsage } from "../usage.ts";

/** A turn whose values are encoded and hashed. */
export interface CommitTurn {
  readonly session: SessionRef;
  readonly turn: string;
  readonly at: number;
  /** When its fence is judged. */
  readonly now: Now;
  readonly identity: TurnIdentity;
  /** Proof that the session's lease is held. Only a turn that was committed before needs none. */
  readonly fence: LeaseFence | undefined;
  /** Gives the lease of `fence` back in the same transaction. */
  readonly release: boolean;
  readonly expectedRevision: number | undefined;
  readonly nodes: readonly PreparedNode[];
  readonly leaf: NodeChoice | null | undefined;
  readonly userMessages: number;
  readonly firstUserMessage: Encoded | null;
  readonly components: readonly PreparedComponent[];
  readonly usage: readonly UsageEntry[];
  readonly claims: readonly TurnClaim[];
  readonly attachments: readonly string[];
  readonly config: Encoded | undefined;
  readonly frames: readonly PreparedFrame[] | undefined;
  readonly currentFrame: string | null | undefined;
  /** Blobs that the turn replaces and that somebody put on their own after this instant stay: the time now less the grace period. */
  readonly putUntil: number;
}

/** What a commit answers, word for word also when it is repeated. */
export interface TurnResult {
  readonly revision: number;
  readonly leaf: string | null;
  /** The ids of the new nodes, in the order in which they were given. */
  readonly nodes: readonly string[];
  /** The parts of the checkpoint that the turn changed; others keep their revision, and unchanged ones are not among them. */
  readonly changed: Manifest;
}

export interface TurnOutcome extends TurnResult {
  /** `replayed`: it was committed before, and nothing was changed now. */
  readonly kind: "committed" | "replayed";
}

/**
 * Commits a turn: nodes, checkpoint, usage, consumed queue batches,
 * attachments, head and lease, all or nothing. Repeating it answers what it
 * answered, also without a lease and after the session has moved on.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `TURN_CONFLICT`,
 *   `LEASE_LOST`, `REVISION_CONFLICT`, `CLAIM_LOST`, `NODE_EXISTS`,
 *   `NODE_PARENT_UNKNOWN`, `NODE_NOT_FOUND`, `ATTACHMENT_NOT_FOUND`.
 */
export const commitTurn: Operation<CommitTurn, TurnOutcome> = plainOperation(
  "commitTurn",
  {
    snapshotSafe: true,
    key: (input: CommitTurn) => input.session.id,
    *one(input) {
      const head = yield* lockedHead(input.session);
      const recorded = yield* recordedResult(head, input);
      if (recorded !== undefined) {
        if (input.release && input.fence !== undefined)
          yield* endLease(head, input.fence);
        return { kind: "replayed", ...recorded };
      }
      yield* assertFenceAt(head, input.fence, input.now());
      const { expectedRevision = head.revision } = input;
      if (expectedRevision !== head.revision)
        throw revisionConflict(head.id, expectedRevision, head.revision);
      const result = yield* applyTurn(head, input);
      if (input.release && input.fence !== undefined)
        yield* endLease(head, input.fence);
      return { kind: "committed", ...result };
    },
  },
);

function* recordedResult(
  { key, id }: SessionHeadRow,
  { turn, identity }: CommitTurn,
): Tx<TurnResult | undefined> {
  const found = yield* row<{
    readonly hash: string;
    readonly parts: string;
    readonly result: string;
  }>(sql`
    SELECT hash, parts, result FROM holdfast_session_turn WHERE session = ${key} AND turn = ${turn}`);
  if (found === undefined) return undefined;
  if (found.hash !== identity.hash) {
    // A session that was imported keeps its receipts, whose hashes name the
    // session they were made in: there the parts alone decide.
    const parts = readReceipt(found.parts, key, turn) as TurnPartHashes;
    const part = firstDifference(parts, identity.parts);
    if (part !== undefined) throw turnConflict(id, turn, part);
  }
  return readReceipt(found.result, key, turn) as TurnResult;
}

function readReceipt(text: string, session: number, turn: string): object {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Reported below, without the text.
  }
  throw corruptRow(
    "holdfast_session_turn",
    `${session}/${turn}`,
    "holds a receipt that is not JSON",
  );
}

/** History would refer to nothing: a sweep may have come before the commit. @throws HoldfastError `ATTACHMENT_NOT_FOUND` */
function* commitAttachmentsOf(
  head: SessionHeadRow,
  given: readonly string[],
  at: number,
): Tx<void> {
  if (given.length === 0) return;
  const ids = [...new Set(given)];
  const missing = yield* stampAttachments(head, ids, at);
  if (missing.length > 0) throw attachmentsGone(head.id, missing);
}

function* applyTurn(head: SessionHeadRow, input: CommitTurn): Tx<TurnResult> {
  const { turn, at } = input;
  const revision = head.revision + 1;
  if (input.fence !== undefined)
    yield* consumeClaims(head, input.fence, input.claims, at);
  const { components, frames, putUntil } = input;
  const changed = yield* writeState({
    session: head.key,
    revision,
    components,
    frames,
    putUntil,
  });
  yield* writeUsage(head.key, turn, at, input.usage);
  const appended = yield* appendNodes(head, turn, at, input.nodes);
  const leaf = yield* chosenLeaf(head, appended, input.leaf);
  const frame = yield* chosenFrame(head.key, head.current_frame, input);
  yield* run(sql`
    UPDATE holdfast_session SET
      revision = ${revision}, leaf = ${leaf?.key ?? null}, active_at = ${Math.max(head.active_at, at)},
      config = ${input.config === undefined ? head.config : input.config},
      current_frame = ${frame},
      node_count = node_count + ${appended.length},
      user_message_count = user_message_count + ${input.userMessages},
      first_user_message = ${head.first_user_message ?? input.firstUserMessage}
    WHERE key = ${head.key}`);
  yield* commitAttachmentsOf(head, input.attachments, at);
  const result: TurnResult = {
    revision,
    leaf: leaf?.id ?? null,
    nodes: appended.map(({ id }) => id),
    changed,
  };
  const { hash, parts } = input.identity;
  yield* run(sql`
    INSERT INTO holdfast_session_turn (session, turn, hash, parts, result, committed_at)
    VALUES (${head.key}, ${turn}, ${hash}, ${JSON.stringify(parts)}, ${JSON.stringify(result)}, ${at})`);
  return result;
}
