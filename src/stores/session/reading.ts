import type { StoredBlob } from "../../model/blob.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import type {
  SessionComponent,
  SessionFrame,
  SessionNode,
  UsageEntry,
} from "../../model/session.ts";
import { checkedCount, optionsOf } from "../../model/shape.ts";
import type { WaitOptions } from "../../sql/database.ts";
import type { Damaged } from "../damage.ts";
import { checkedId } from "./checks.ts";
import { cursorInvalid, cursorPlace, cursorText } from "../cursor.ts";
import type { SessionSurroundings } from "./context.ts";
import { leafOf } from "./head-row.ts";
import { loadNode, readGraph, readPath } from "./graph/graph.ts";
import type { PathPage } from "./graph/graph.ts";
import type { NodeRow } from "./node-row.ts";
import { readCheckpoint, readHead, readSession } from "./read.ts";
import type { StoredHead } from "./read.ts";
import { readValue, siftValues } from "./sifted.ts";
import { sessionNamed } from "./session-name.ts";
import type { SessionName } from "./session-name.ts";
import type { ComponentRow } from "./turn/turn-components.ts";
import { blobMissing } from "./turn/turn-components.ts";
import type { FrameRow } from "./turn/turn-frames.ts";
import { UsageSums, sumUsage } from "./usage.ts";
import type { SummedPage } from "./usage.ts";

/** Where a session stands. */
export interface SessionHead {
  readonly id: string;
  readonly generation: number;
  readonly revision: number;
  readonly config: unknown;
  readonly frames: readonly SessionFrame[];
  readonly currentFrame: string | null;
  readonly leaf: string | null;
  readonly nodeCount: number;
}

export type SessionComponents = Readonly<Record<string, SessionComponent>>;

export interface SessionPath {
  /** Root first. */
  readonly nodes: readonly SessionNode[];
  /** The node it leads to, also when it is not shown. */
  readonly leaf: string | null;
  /** True when older nodes were left out; read on with `leaf` set to the first node's parent. */
  readonly hasMore: boolean;
}

export interface SessionPathOptions extends WaitOptions {
  /** Where the way ends: where the conversation goes on unless told. */
  readonly leaf?: string;
  /** The newest so many nodes: 10,000 unless told, and at most. */
  readonly limit?: number;
}

export interface SessionGraphOptions extends WaitOptions {
  /** `next` of the page before. */
  readonly after?: string;
  /** 500 unless told. */
  readonly limit?: number;
}

export interface SessionGraphPage {
  readonly items: readonly SessionNode[];
  /** Rows that cannot be read, by the ids of their nodes: the page goes on past them. */
  readonly damaged: readonly Damaged[];
  /** Where to go on; undefined at the end. */
  readonly next: string | undefined;
}

export interface LoadedSession {
  readonly head: SessionHead;
  readonly path: SessionPath;
  readonly components: SessionComponents;
}

/** Reading sessions; each answer shows one moment. All throw `SESSION_NOT_FOUND`, `SESSION_DELETED`, and `CORRUPT_ROW` for damage. */
export interface SessionReads {
  head(session: SessionName, options?: WaitOptions): Promise<SessionHead>;
  /** Head, active path and checkpoint at one moment. */
  load(
    session: SessionName,
    options?: SessionPathOptions,
  ): Promise<LoadedSession>;
  /** The way from a root to a leaf. Nodes that were removed end it. */
  path(
    session: SessionName,
    options?: SessionPathOptions,
  ): Promise<SessionPath>;
  /** Every branch, in the order of insertion. @throws HoldfastError `CURSOR_INVALID` */
  graph(
    session: SessionName,
    options?: SessionGraphOptions,
  ): Promise<SessionGraphPage>;
  node(
    session: SessionName,
    id: string,
    options?: WaitOptions,
  ): Promise<SessionNode | undefined>;
  components(
    session: SessionName,
    options?: WaitOptions,
  ): Promise<SessionComponents>;
  /** Sums per source and model, in the order of their first use. @throws HoldfastError `USAGE_OVERFLOW` */
  usage(
    session: SessionName,
    options?: WaitOptions,
  ): Promise<readonly UsageEntry[]>;
}

/** Some milliseconds of reading. */
const usagePerPage = 2_000;

export function sessionReads(around: SessionSurroundings): SessionReads {
  const { database } = around;
  return {
    async head(session, options) {
      const ref = sessionNamed(session);
      return headOf(around, await database.read(readHead, ref, options));
    },
    async load(session, options) {
      const { input, wait } = pathInput(session, optionsOf(options));
      const found = await database.read(readSession, input, wait);
      return {
        head: headOf(around, found),
        path: pathOf(around, found.path),
        components: componentsOf(around, found.components, found.blobs),
      };
    },
    async path(session, options) {
      const { input, wait } = pathInput(session, optionsOf(options));
      return pathOf(around, await database.read(readPath, input, wait));
    },
    graph: async (session, options) =>
      graphRead(around, session, optionsOf(options)),
    async node(session, id, options) {
      const input = {
        session: sessionNamed(session),
        id: checkedId("A node", id),
      };
      const found = await database.read(loadNode, input, options);
      return found && nodeOf(around, found);
    },
    async components(session, options) {
      const ref = sessionNamed(session);
      const found = await database.read(readCheckpoint, ref, options);
      return componentsOf(around, found.components, found.blobs);
    },
    usage: (session, options) => usageRead(around, session, options),
  };
}

/** In pages, so that a long ledger holds nobody up: those before the entry that was the last one at first. */
async function usageRead(
  { database }: SessionSurroundings,
  session: SessionName,
  options?: WaitOptions,
): Promise<readonly UsageEntry[]> {
  const sums = new UsageSums();
  const { id, generation: given } = sessionNamed(session);
  let generation = given;
  let after: number | undefined = 0;
  let until: number | undefined;
  while (after !== undefined) {
    // A session that is deleted and created meanwhile is another one.
    const ref = { id, ...(generation !== undefined && { generation }) };
    const input = { session: ref, after, until, limit: usagePerPage };
    const page: SummedPage = await database.read(sumUsage, input, options);
    sums.add(page.sums);
    ({ next: after, until, generation } = page);
  }
  return sums.entries();
}

function pathInput(
  session: SessionName,
  { leaf, limit = 10_000, ...wait }: SessionPathOptions,
): {
  readonly input: Parameters<typeof readPath>[0];
  readonly wait: WaitOptions;
} {
  return {
    input: {
      session: sessionNamed(session),
      leaf: leaf === undefined ? undefined : checkedId("A leaf", leaf),
      limit: checkedCount("limit", limit, { min: 1, max: 10_000 }),
    },
    wait,
  };
}

async function graphRead(
  around: SessionSurroundings,
  session: SessionName,
  options: SessionGraphOptions,
): Promise<SessionGraphPage> {
  const { after: cursor, limit = 500, ...wait } = options;
  const ref = sessionNamed(session);
  const owner = `graph:${ref.id}`;
  const place = cursor === undefined ? [] : cursorPlace(owner, cursor);
  const [generation, after = 0] = place as readonly number[];
  if (!place.every(Number.isSafeInteger)) throw cursorInvalid("malformed");
  const {
    nodes,
    hasMore,
    generation: found,
  } = await around.database.read(
    readGraph,
    {
      session: ref,
      after,
      ...(generation !== undefined && { generation }),
      limit: checkedCount("limit", limit, { min: 1, max: 10_000 }),
    },
    wait,
  );
  const { items, damaged } = siftValues(
    "holdfast_session_node",
    nodes,
    (node) => nodeOf(around, node),
  );
  return {
    items,
    damaged,
    next: hasMore ? cursorText(owner, [found, nodes.at(-1)?.key]) : undefined,
  };
}

function nodeOf({ decode }: SessionSurroundings, found: NodeRow): SessionNode {
  const { payload } = found;
  if (payload === null)
    throw corruptRow(
      "holdfast_session_node",
      found.key,
      `(node "${found.id}") has no payload`,
    );
  return {
    id: found.id,
    parent: found.parent_id,
    turn: found.turn,
    at: found.at,
    kind: found.kind,
    role: found.role,
    frame: found.frame,
    causedBy: found.caused_by,
    payload: readValue("holdfast_session_node", found.key, () =>
      decode(payload),
    ),
  };
}

function pathOf(around: SessionSurroundings, page: PathPage): SessionPath {
  const { nodes, leaf, hasMore } = page;
  return { nodes: nodes.map((node) => nodeOf(around, node)), leaf, hasMore };
}

function headOf(
  around: SessionSurroundings,
  { head, frames, blobs }: StoredHead,
): SessionHead {
  const { config } = head;
  return {
    id: head.id,
    generation: head.generation,
    revision: head.revision,
    config:
      config === null
        ? null
        : readValue("holdfast_session", head.key, () => around.decode(config)),
    frames: frames.map((frame) => frameOf(around, head.key, frame, blobs)),
    currentFrame: head.current_frame,
    leaf: leafOf(head)?.id ?? null,
    nodeCount: head.node_count,
  };
}

function frameOf(
  around: SessionSurroundings,
  session: number,
  { id, payload, blob }: FrameRow,
  blobs: ReadonlyMap<string, StoredBlob>,
): SessionFrame {
  const table = "holdfast_session_frame";
  const key = `${session}/${id}`;
  const read = readValue(table, key, () => around.decode(payload));
  if (!isFramePayload(read))
    throw corruptRow(table, key, "holds no reason and no data");
  return {
    id,
    reason: read.reason,
    data: read.data,
    state: blob === null ? null : valueOf(around, blobs.get(blob), table, key),
  };
}

function isFramePayload(
  value: unknown,
): value is { readonly reason: string; readonly data: unknown } {
  return (
    typeof value === "object" &&
    value !== null &&
    "data" in value &&
    "reason" in value &&
    typeof value.reason === "string"
  );
}

function componentsOf(
  around: SessionSurroundings,
  components: readonly ComponentRow[],
  blobs: ReadonlyMap<string, StoredBlob>,
): SessionComponents {
  return Object.fromEntries(
    components.map(({ name, version, revision, blob }) => {
      const table = "holdfast_session_component";
      const value = valueOf(around, blobs.get(blob), table, name);
      return [name, { version, revision, value }];
    }),
  );
}

function valueOf(
  around: SessionSurroundings,
  blob: StoredBlob | undefined,
  table: string,
  key: string,
): unknown {
  if (blob === undefined) throw blobMissing(table, key);
  return readValue(table, key, () => around.readBlob(blob));
}
