import { corruptRow } from "../../../model/corrupt-row.ts";
import type { Encoded } from "../../../model/values/encoded.ts";
import { isFence, type LeaseFence } from "../../../model/lease.ts";
import {
  attachmentsGone,
  revisionConflict,
  sessionMismatch,
  turnConflict,
} from "../../../model/session/errors.ts";
import { parseSessionId } from "../../../model/ids/session-id.ts";
import {
  componentHashesOf,
  firstDifference,
  nodePlaces,
  turnIdentity,
  usageGiven,
  type NodeChoice,
  type TurnClaim,
  type TurnIdentity,
  type TurnPartHashes,
} from "../../../model/session/turn.ts";
import type { SessionHandle, UsageEntry } from "../../../model/session/session.ts";
import { checkedCount, givenFlag, givenInvalid, givenObject } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { assertedRun } from "../../../sql/asserted-run.ts";
import { afterwards, row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { stampAttachments } from "../../attachment/attachment-row.ts";
import { assertFence, releaseLease } from "../../lease/parts.ts";
import { onlyWait, type Call } from "../../method.ts";
import { consumeClaims, type ClaimHolder } from "../../queue/parts.ts";
import { assertTurn, closeTurn } from "../../queue/turn-row.ts";
import type { SessionContext } from "../context.ts";
import { lockedHead, type SessionHeadRow } from "../head-row.ts";
import { writeUsage } from "../read/usage.ts";
import { checkedId, sessionNamed } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import { checkTurn, type TurnDraft } from "./draft.ts";
import { encodedParts } from "./encode.ts";
import { appendNodes, chosenLeaf, type PreparedNode } from "./nodes.ts";
import { chosenFrame, writeState, type PreparedComponent, type PreparedFrame } from "./state.ts";

/** A turn whose values are encoded and hashed. */
interface CommitTurn {
  readonly session: SessionRef;
  readonly turn: string;
  readonly at: number;
  readonly identity: TurnIdentity;
  /**
   * Proof that the caller holds the session's lease. Only a turn that was committed before needs
   * none.
   */
  readonly fence: LeaseFence | undefined;
  /** Releases the lease of `fence` in the same transaction. */
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
  /**
   * The current time less the grace period. Replaced blobs that were stored on their own after it
   * stay.
   */
  readonly putUntil: number;
}

/**
 * Encodes and hashes all data of a commit, so that no value can fail it inside the transaction.
 *
 * @throws HoldfastError `TURN_INVALID`, `NODE_EXISTS`, `SESSION_MISMATCH`, `NOT_SERIALIZABLE`,
 *   `VALUE_TOO_LARGE` …
 */
export function givenCommit(
  context: SessionContext,
  handle: SessionHandle,
  draft: TurnDraft,
  wait?: WaitOptions,
): Call<CommitTurn> {
  const session = sessionNamed(handle);
  const { generation } = session;
  if (generation === undefined)
    throw givenInvalid(
      "session",
      "a handle with id and generation, as create and open return it",
      handle,
    );
  const { turn: name } = givenObject("the turn", draft);
  const turn = checkedId("The id of a turn", name);
  if (draft.session !== undefined && draft.session !== session.id)
    throw sessionMismatch(session.id, parseSessionId(draft.session));
  checkTurn(draft);
  const { nodes = [], components = {}, expectedRevision, fence } = draft;
  if (expectedRevision !== undefined) checkedCount("expectedRevision", expectedRevision);
  const owner = { session: session.id, generation, turn };
  const places = nodePlaces(session.id, nodes);
  const at = context.clock.now();
  // Encoded before anything is hashed, since the encoding error names the part.
  const { blobs, ...parts } = encodedParts(context, owner, draft, places, at);
  const hashes = componentHashesOf(context.hash, components);
  const input = {
    session,
    turn,
    at,
    identity: turnIdentity(context.hash, owner, draft, places, hashes),
    // Copies: the hashed values are the stored ones, even if the caller changes its draft.
    fence: isFence(fence) ? { ...fence } : undefined,
    release: givenFlag("release", draft.release) ?? false,
    expectedRevision,
    ...parts,
    components: Object.entries(components).map(([part, component]) => ({
      name: part,
      version: component?.version ?? 0,
      hash: hashes.get(part) ?? "",
      blob: blobs.get(part) ?? null,
    })),
    leaf: draft.leaf && { ...draft.leaf },
    usage: (draft.usage ?? []).map(usageGiven),
    claims: (draft.claims ?? []).map(({ claim, batches }) => ({
      claim,
      batches: [...batches],
    })),
    attachments: [...(draft.attachments ?? [])],
    currentFrame: draft.currentFrame,
    putUntil: at - context.graceMs,
  };
  return { input, wait: onlyWait(wait) };
}
/** The answer of a commit. A repeated commit returns the same answer with another `kind`. */
export interface TurnOutcome {
  /** `replayed`: the turn was committed before, and this call changed nothing. */
  readonly kind: "committed" | "replayed";
  readonly revision: number;
  readonly leaf: string | null;
  /** The ids of the new nodes, in the order of the draft. */
  readonly nodes: readonly string[];
  /**
   * The parts of the checkpoint that the turn changed. Unchanged parts keep their revision and are
   * left out.
   */
  readonly changed: Readonly<
    Record<string, { readonly version: number; readonly revision: number }>
  >;
}

type TurnResult = Omit<TurnOutcome, "kind">;

/**
 * Commits a turn: nodes, checkpoint, usage, consumed queue batches, attachments, head and lease,
 * all or nothing. A repeated commit returns the recorded answer, even without a lease and after
 * later turns.
 *
 * @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED`, `TURN_CONFLICT`, `LEASE_LOST`,
 *   `REVISION_CONFLICT`, `CLAIM_LOST`, `NODE_EXISTS`, `NODE_PARENT_UNKNOWN`, `NODE_NOT_FOUND`,
 *   `ATTACHMENT_NOT_FOUND`.
 */
export const commitTurn = storeOperation("commitTurn", {
  snapshotSafe: true,
  key: (input) => input.session.id,
  *one(context: SessionContext, input: CommitTurn): Tx<TurnOutcome> {
    const { fence, release, expectedRevision } = input;
    const head = yield* lockedHead(input.session);
    const recorded = yield* recordedResult(head, input);
    if (recorded !== undefined) {
      if (release && fence !== undefined) yield* releaseLease(context, head, fence);
      return { kind: "replayed", ...recorded };
    }
    const holder = yield* holderOf(context, head, fence);
    if ((expectedRevision ?? head.revision) !== head.revision)
      throw revisionConflict(head.id, expectedRevision ?? 0, head.revision);
    const result = yield* applyTurn(head, input, holder);
    if (release && fence !== undefined) yield* releaseLease(context, head, fence);
    if ("turn" in holder) yield* settleTurn(context, head, input);
    yield* afterwards({ durable: context.afterCommit });
    return { kind: "committed", ...result };
  },
});

/**
 * The party that commits: the holder of the lease, or the run that takes the open turn.
 * @throws HoldfastError `LEASE_LOST`
 */
function* holderOf(
  context: SessionContext,
  head: SessionHeadRow,
  fence: LeaseFence | undefined,
): Tx<ClaimHolder> {
  if (fence === undefined && (yield* assertedRun()) !== undefined)
    return { turn: (yield* assertTurn(context, head)).turn };
  yield* assertFence(context, head, fence);
  return { fence: fence?.fence ?? 0 };
}

/** Closes the turn whose run gives it up with its commit. Otherwise the run continues it. */
function* settleTurn(
  context: SessionContext,
  head: SessionHeadRow,
  { release, at, claims }: CommitTurn,
): Tx<void> {
  const batch = claims.length > 0 ? null : head.turn_batch;
  if (release)
    return yield* closeTurn(context, { ...head, turn_batch: batch }, { at, hasCommitted: true });
  if (batch !== head.turn_batch)
    yield* run(sql`UPDATE holdfast_session SET turn_batch = NULL WHERE key = ${head.key}`);
}

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
    // An imported session keeps its receipts, whose hashes name the session that they were made in.
    // There only the parts decide.
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
  throw corruptRow("holdfast_session_turn", `${session}/${turn}`, "has a receipt that is not JSON");
}

/**
 * Stamps the attachments of a turn. History would refer to nothing if a sweep came before the
 * commit.
 * @throws HoldfastError `ATTACHMENT_NOT_FOUND`
 */
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

function* applyTurn(head: SessionHeadRow, input: CommitTurn, holder: ClaimHolder): Tx<TurnResult> {
  const { turn, at } = input;
  const revision = head.revision + 1;
  yield* consumeClaims(head, holder, input.claims, at);
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
