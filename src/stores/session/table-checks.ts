import { verifiedBlob } from "../../model/blob.ts";
import type { StoredBlob } from "../../model/blob.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { parseSessionId } from "../../model/ids/session-id.ts";
import { integersOf, textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { blobsThere, readBlobs } from "../blob/blob-row.ts";
import { isUnchanged } from "../context.ts";
import { inSessions, type OwnedRow } from "../session-checks.ts";
import { sessionsOfKeys } from "../session-row.ts";
import { byKey, distinct, tableCheck, type CheckTools, type TableCheck } from "../table-check.ts";
import type { ComponentRow, FrameRow } from "./state-row.ts";

interface SessionRow {
  readonly key: number;
  readonly id: string;
  readonly deleted_at: number | null;
  readonly forked_from: number | null;
  readonly fork_node: number | null;
  readonly fork_top: number | null;
  readonly leaf: number | null;
  readonly config: Encoded | null;
  readonly current_frame: string | null;
  readonly first_user_message: Encoded | null;
  readonly open_turn: string | null;
  /** The session and state of the run of that turn. */
  readonly turn_session: number | null;
  readonly turn_state: string | null;
}

const session = tableCheck<SessionRow>({
  table: "holdfast_session",
  select: sql`
    SELECT t.key, t.id, t.deleted_at, t.forked_from, t.fork_node, t.fork_top, t.leaf, t.config, t.current_frame, t.first_user_message,
      t.open_turn, x.session AS turn_session, x.state AS turn_state`,
  from: sql`FROM holdfast_session t LEFT JOIN holdfast_execution x ON x.id = t.open_turn`,
  ...byKey,
  weight: sql`COALESCE(length(t.config), 0) + COALESCE(length(t.first_user_message), 0)`,
  keyOf: ({ key }) => String(key),
  judge(row, { decode }) {
    parseSessionId(row.id);
    if (row.config !== null) decode(row.config);
    if (row.first_user_message !== null) decode(row.first_user_message);
    if (row.open_turn === null) return undefined;
    if (row.turn_session !== row.key) return "The run of its open turn is missing.";
    return row.turn_state === "finished" ? "The run of its open turn has ended." : undefined;
  },
  *partners(found) {
    const living = found.filter((row) => row.deleted_at === null);
    const nodes = yield* nodesThere([
      ...distinct(living, ({ leaf }) => leaf),
      ...distinct(living, (row) => row.fork_node),
    ]);
    const sources = yield* sessionsOfKeys(distinct(living, (row) => row.forked_from));
    const frames = yield* rows<{ session: number; id: string }>(sql`
      SELECT f.session, f.id FROM holdfast_session s
        JOIN holdfast_session_frame f ON f.session = s.key AND f.id = s.current_frame
      WHERE s.key IN ${integersOf(living.map(({ key }) => key))}`);
    const framed = new Set(frames.map((frame) => frame.session));
    return (row) => {
      if (row.deleted_at !== null) return undefined;
      const { leaf, fork_node: forkNode, forked_from: source } = row;
      if (leaf !== null && !nodes.has(leaf)) return "Its leaf is missing.";
      if (forkNode !== null && isShared(row) && !nodes.has(forkNode))
        return "The node that it was forked at is missing.";
      if (source !== null && !sources.has(source))
        return "The session that it was forked from is missing.";
      return row.current_frame !== null && !framed.has(row.key)
        ? "Its current frame is missing."
        : undefined;
    };
  },
});

/**
 * False for a fork that has hidden all its shared nodes: its top then lies behind the node that it
 * was forked at.
 */
function isShared({ fork_node: node, fork_top: top }: SessionRow): boolean {
  return node !== null && (top ?? 0) <= node;
}

function* nodesThere(keys: readonly number[]): Tx<ReadonlySet<number>> {
  if (keys.length === 0) return new Set();
  const found = yield* rows<{ readonly key: number }>(sql`
    SELECT key FROM holdfast_session_node WHERE key IN ${integersOf(keys)}`);
  return new Set(found.map(({ key }) => key));
}

interface OwnedNode extends OwnedRow {
  readonly key: number;
  readonly parent: number | null;
  readonly parent_depth: number | null;
  readonly depth: number;
  readonly turn: string;
  readonly payload: Encoded | null;
  readonly checksum: string | null;
  /** 1 when its parent was removed from a session, which is not damage. */
  readonly follows_removed: number;
}

const node = tableCheck<OwnedNode>({
  table: "holdfast_session_node",
  select: sql`
    SELECT t.key, t.session, t.id, t.parent, p.depth AS parent_depth, t.depth, t.turn, t.payload, t.checksum,
      CASE WHEN EXISTS (SELECT 1 FROM holdfast_session_tombstone m WHERE m.node = t.parent) THEN 1 ELSE 0 END AS follows_removed`,
  from: sql`FROM holdfast_session_node t LEFT JOIN holdfast_session_node p ON p.key = t.parent`,
  ...byKey,
  weight: sql`COALESCE(length(t.payload), 0)`,
  keyOf: ({ key }) => String(key),
  judge(row, { decode, bytes }) {
    const { payload: text, checksum } = row;
    if (text === null) return "It has no payload.";
    if (!isUnchanged({ bytes }, { text, checksum: checksum ?? "" }))
      return "Its payload does not match its hash.";
    decode(text);
    const depth = row.parent === null ? 0 : (row.parent_depth ?? -1) + 1;
    const isKnown = row.parent === null || row.parent_depth !== null;
    return isKnown && depth !== row.depth ? "Its depth does not follow its parent's." : undefined;
  },
  *partners(found) {
    const receipts = yield* receiptsOf(found);
    return yield* inSessions(found, (row, { isImported }) => {
      // A fork copies shared nodes without the receipts of their source.
      if (!isImported && !receipts.has(receiptName(row)))
        return "The turn that appended it has no receipt.";
      const isLost = row.parent !== null && row.parent_depth === null;
      return isLost && row.follows_removed === 0
        ? "Its parent is missing and was not removed."
        : undefined;
    });
  },
});

interface OfTurn {
  readonly session: number;
  readonly turn: string;
}

function receiptName({ session: owner, turn: name }: OfTurn): string {
  return `${owner}/${name}`;
}

/** The receipts of the turns that wrote these rows. */
function* receiptsOf(found: readonly OfTurn[]): Tx<ReadonlySet<string>> {
  const receipts = yield* rows<OfTurn>(sql`
    SELECT session, turn FROM holdfast_session_turn
    WHERE session IN ${integersOf(distinct(found, (row) => row.session))}
      AND turn IN ${textsOf(distinct(found, (row) => row.turn))}`);
  return new Set(receipts.map(receiptName));
}

interface MarkRow {
  readonly session: number;
  readonly node: number;
}

const tombstone = tableCheck<MarkRow>({
  table: "holdfast_session_tombstone",
  select: sql`SELECT t.session, t.node`,
  from: sql`FROM holdfast_session_tombstone t`,
  order: sql`t.session, t.node`,
  behind: (last) => sql`(t.session, t.node) > (${last.session}, ${last.node})`,
  keyOf: (row) => `${row.session}/${row.node}`,
  partners: (found) => inSessions(found),
});

interface OwnedFrame extends FrameRow, OwnedRow {}

const frame = tableCheck<OwnedFrame>({
  table: "holdfast_session_frame",
  select: sql`SELECT t.session, t.id, t.ordinal, t.hash, t.payload, t.blob`,
  from: sql`FROM holdfast_session_frame t`,
  order: sql`t.session, t.id`,
  behind: (last) => sql`(t.session, t.id) > (${last.session}, ${last.id})`,
  weight: sql`length(t.payload)`,
  keyOf: (row) => `${row.session}/${row.id}`,
  judge: (row, { decode, agrees }) =>
    agrees("session-frame", 1, decode(row.payload), row.hash)
      ? undefined
      : "Its content does not match its hash.",
  *partners(found) {
    const there = yield* blobsThere(distinct(found, ({ blob }) => blob));
    const owned = yield* inSessions(found);
    return (row, tools) =>
      owned(row, tools) ?? (row.blob !== null && !there.has(row.blob) ? noBlob : undefined);
  },
});

const noBlob = "The blob that it refers to is missing.";

interface OwnedComponent extends ComponentRow, OwnedRow {}

/** The hash covers the value in its blob, so the blob is read with it. */
const component = tableCheck<OwnedComponent>({
  table: "holdfast_session_component",
  select: sql`SELECT t.session, t.name, t.version, t.revision, t.hash, t.blob`,
  from: sql`FROM holdfast_session_component t LEFT JOIN holdfast_blob b ON b.hash = t.blob`,
  order: sql`t.session, t.name`,
  behind: (last) => sql`(t.session, t.name) > (${last.session}, ${last.name})`,
  weight: sql`COALESCE(b.size, 0)`,
  keyOf: (row) => `${row.session}/${row.name}`,
  *partners(found) {
    const stored = yield* readBlobs(distinct(found, ({ blob }) => blob));
    const blobs = new Map(stored.map((blob) => [blob.hash, blob]));
    const owned = yield* inSessions(found);
    return (row, tools) => {
      const blob = blobs.get(row.blob);
      if (blob === undefined) return noBlob;
      return owned(row, tools) ?? faultOfComponent(row, blob, tools);
    };
  },
});

function faultOfComponent(
  { hash }: OwnedComponent,
  blob: StoredBlob,
  tools: CheckTools,
): string | undefined {
  const content = verifiedBlob(tools.bytes, blob);
  const value = tools.decode(new TextDecoder().decode(content) as Encoded);
  return tools.agrees("session-value", 1, value, hash)
    ? undefined
    : "Its value does not match its hash.";
}

interface UsageRow extends OfTurn {
  readonly key: number;
}

const usage = tableCheck<UsageRow>({
  table: "holdfast_session_usage",
  select: sql`
    SELECT t.key, t.session, t.turn, t.ordinal, t.at, t.source, t.model, t.input_tokens, t.output_tokens,
      t.cache_read_tokens, t.cache_write_tokens, t.reasoning_tokens`,
  from: sql`FROM holdfast_session_usage t`,
  ...byKey,
  keyOf: ({ key }) => String(key),
  *partners(found) {
    const receipts = yield* receiptsOf(found);
    return yield* inSessions(found, (row) =>
      receipts.has(receiptName(row)) ? undefined : "The turn that wrote it has no receipt.",
    );
  },
});

interface ReceiptRow extends OfTurn {
  readonly hash: string;
  readonly parts: string;
  readonly result: string;
}

const turn = tableCheck<ReceiptRow>({
  table: "holdfast_session_turn",
  select: sql`SELECT t.session, t.turn, t.hash, t.parts, t.result, t.committed_at`,
  from: sql`FROM holdfast_session_turn t`,
  order: sql`t.session, t.turn`,
  behind: (last) => sql`(t.session, t.turn) > (${last.session}, ${last.turn})`,
  weight: sql`length(t.parts) + length(t.result)`,
  keyOf: receiptName,
  judge(row) {
    const result: unknown = JSON.parse(row.result);
    return typeof result === "object" && result !== null && "nodes" in result
      ? undefined
      : "It is not a valid receipt.";
  },
  partners: (found) =>
    inSessions(found, (row, { id, generation, isImported }, { agrees }) => {
      // Those that were imported name the session they were made in.
      if (isImported) return undefined;
      const parts: unknown = JSON.parse(row.parts);
      return agrees("session-turn", 1, [id, generation, row.turn, parts], row.hash)
        ? undefined
        : "Its parts do not match its hash.";
    }),
});

export const sessionChecks: readonly TableCheck[] = [
  session,
  node,
  tombstone,
  frame,
  component,
  usage,
  turn,
];
