import { nodeExists, turnInvalid } from "./errors.ts";
import { tokenKinds } from "./session.ts";
import type { NewUsage, UsageEntry } from "./session.ts";

/** A node to append. */
export interface NewNode {
  /**
   * The id of the node. By default it is derived from session, generation, turn and position in the
   * turn.
   */
  readonly id?: string;
  /**
   * The parent, by id or by its position in this turn; null makes a root. By default a node follows
   * the previous node of this turn, and the first node follows the leaf.
   */
  readonly parent?: NodeChoice | null;
  /** `message`, or any kind of the host's own. */
  readonly kind: string;
  readonly role?: string | null;
  readonly frame?: string | null;
  readonly causedBy?: string | null;
  readonly payload: unknown;
}

export type NodeChoice = { readonly id: string } | { readonly ordinal: number };

/** A frame as the head will store it. */
export interface NewFrame {
  readonly id: string;
  readonly reason: string;
  readonly data?: unknown;
  /** Null removes it. By default the stored state under the same id is kept. */
  readonly state?: unknown;
}

/** The new form of a part of the checkpoint. */
interface NewComponent {
  readonly version: number;
  readonly value: unknown;
}

/** The batches of a queue claim that the turn completes. */
export interface TurnClaim {
  readonly claim: string;
  readonly batches: readonly string[];
}

/** The changes of a turn. Omitted parts stay unchanged. */
export interface TurnContent {
  readonly nodes?: readonly NewNode[];
  /** The node at which the conversation continues; defaults to the last new node. */
  readonly leaf?: NodeChoice | null;
  /** Parts of the checkpoint by name; null removes a part. */
  readonly components?: Readonly<Record<string, NewComponent | null>>;
  readonly usage?: readonly NewUsage[];
  readonly claims?: readonly TurnClaim[];
  /** The attachments that this turn refers to. */
  readonly attachments?: readonly string[];
  readonly config?: unknown;
  /** All frames, in order. */
  readonly frames?: readonly NewFrame[];
  readonly currentFrame?: string | null;
}

/** The resolved parent of a new node. */
export type NodePlace =
  | { readonly kind: "root" }
  | { readonly kind: "leaf" }
  | { readonly kind: "ordinal"; readonly ordinal: number }
  | { readonly kind: "id"; readonly id: string };

/**
 * Returns the place of each node of a turn. A parent id that an earlier node of the same turn has
 * refers to that node.
 *
 * @throws HoldfastError `NODE_EXISTS` for a repeated id, `TURN_INVALID` for a node that would be
 * its own ancestor.
 */
export function nodePlaces(session: string, nodes: readonly NewNode[]): readonly NodePlace[] {
  const ordinals = new Map<string, number>();
  nodes.forEach(({ id }, ordinal) => {
    if (id === undefined) return;
    if (ordinals.has(id)) throw nodeExists(session, id);
    ordinals.set(id, ordinal);
  });
  return nodes.map(({ parent }, ordinal) => {
    if (parent === null) return { kind: "root" };
    if (parent === undefined)
      return ordinal === 0 ? { kind: "leaf" } : { kind: "ordinal", ordinal: ordinal - 1 };
    const within = "ordinal" in parent ? parent.ordinal : ordinals.get(parent.id);
    if (within === undefined && "id" in parent) return { kind: "id", id: parent.id };
    if (!isOrdinal(within, nodes.length))
      throw turnInvalid(
        `node ${ordinal} names node ${String(within)} of this turn as its parent, and the turn has ${nodes.length}.`,
        { part: "nodes", ordinal },
      );
    if (within >= ordinal)
      throw turnInvalid(
        `node ${ordinal} would be its own ancestor: its parent is node ${within} of this turn. A parent comes first.`,
        { part: "nodes", ordinal, reason: "cycle" },
      );
    return { kind: "ordinal", ordinal: within };
  });
}

function isOrdinal(value: unknown, length: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < length;
}

/** The parts in the order in which a conflict names them. */
const turnParts = ["nodes", "components", "usage", "claims", "attachments", "head"] as const;

export type TurnPart = (typeof turnParts)[number];

/** A hash for each part that a turn has. */
export type TurnPartHashes = Readonly<Partial<Record<TurnPart, string>>>;

export interface TurnIdentity {
  readonly hash: string;
  readonly parts: TurnPartHashes;
}

/** Returns equal hashes for equal values of one domain; see `ValueCodec.hash`. */
export type HashValue = (domain: string, version: number, value: unknown) => string;

/**
 * Returns the identity of a turn, equal when the turn is committed again. It covers the session and
 * the turn id, the payloads and parents of its nodes, and all its other changes. Each payload is
 * hashed by itself, so that hashing adds no nesting. The ids of its nodes are not part of it, nor
 * are the time, the revision and the lease of the commit.
 */
export function turnIdentity(
  hash: HashValue,
  owner: {
    readonly session: string;
    readonly generation: number;
    readonly turn: string;
  },
  content: TurnContent,
  places: readonly NodePlace[],
  componentHashes: ReadonlyMap<string, string>,
): TurnIdentity {
  const facts = turnFacts(hash, content, places, componentHashes);
  const parts: Partial<Record<TurnPart, string>> = {};
  for (const part of turnParts)
    if (facts[part] !== undefined) parts[part] = hash(`session-turn-${part}`, 1, facts[part]);
  const { session, generation, turn } = owner;
  return {
    hash: hash("session-turn", 1, [session, generation, turn, parts]),
    parts,
  };
}

function turnFacts(
  hash: HashValue,
  content: TurnContent,
  places: readonly NodePlace[],
  componentHashes: ReadonlyMap<string, string>,
): Partial<Record<TurnPart, unknown>> {
  const { nodes, components, usage, claims, attachments } = content;
  const valueHash = (value: unknown): string => hash("session-value", 1, value);
  return {
    ...(some(nodes) && {
      nodes: nodes.map((node, ordinal) => [
        node.kind,
        node.role ?? null,
        node.frame ?? null,
        node.causedBy ?? null,
        places[ordinal],
        valueHash(node.payload),
      ]),
    }),
    ...(components &&
      Object.keys(components).length > 0 && {
        components: Object.entries(components)
          .toSorted(([left], [right]) => (left < right ? -1 : 1))
          .map(([name, component]) => [
            name,
            component && [component.version, componentHashes.get(name)],
          ]),
      }),
    ...(some(usage) && {
      usage: usage
        .map(usageGiven)
        .map((entry) => [entry.source, entry.model, ...tokenKinds.map((kind) => entry[kind])]),
    }),
    ...(some(claims) && {
      claims: claims.map(({ claim, batches }) => [claim, ...batches]),
    }),
    ...(some(attachments) && {
      attachments: [...new Set(attachments)].toSorted(),
    }),
    ...headFacts(content, valueHash),
  };
}

function headFacts(
  { leaf, config, frames, currentFrame }: TurnContent,
  valueHash: (value: unknown) => string,
): { readonly head?: unknown } {
  const head = {
    ...(leaf !== undefined && { leaf }),
    ...(config !== undefined && { config: valueHash(config) }),
    ...(currentFrame !== undefined && { currentFrame }),
    ...(frames !== undefined && {
      frames: frames.map(({ id, reason, data, state }) => [
        id,
        reason,
        valueHash(data),
        state === undefined ? "kept" : valueHash(state),
      ]),
    }),
  };
  return Object.keys(head).length === 0 ? {} : { head };
}

function some<T>(list: readonly T[] | undefined): list is readonly T[] {
  return list !== undefined && list.length > 0;
}

/** Returns an entry with all its counts. */
export function usageGiven({ source, model, ...counts }: NewUsage): UsageEntry {
  const {
    inputTokens = 0,
    outputTokens = 0,
    cacheReadTokens = 0,
    cacheWriteTokens = 0,
    reasoningTokens = 0,
  } = counts;
  return {
    source,
    model,
    inputTokens,
    outputTokens,
    cacheReadTokens,
    cacheWriteTokens,
    reasoningTokens,
  };
}

/** Returns the first part in which two turns differ, if any. */
export function firstDifference(
  recorded: TurnPartHashes,
  given: TurnPartHashes,
): TurnPart | undefined {
  return turnParts.find((part) => recorded[part] !== given[part]);
}

/** Returns hashes by name that reveal whether a part of the checkpoint has changed. */
export function componentHashesOf(
  hash: HashValue,
  components: TurnContent["components"] = {},
): ReadonlyMap<string, string> {
  const hashes = new Map<string, string>();
  for (const [name, component] of Object.entries(components))
    if (component !== null) hashes.set(name, hash("session-value", 1, component.value));
  return hashes;
}

/** Returns the ids of nodes without an id from the caller, by their position in the turn. */
export function derivedNodeIds(
  sha256Hex: (text: string) => string,
  owner: {
    readonly session: string;
    readonly generation: number;
    readonly turn: string;
  },
): (ordinal: number) => string {
  const { session, generation, turn } = owner;
  let prefix: string | undefined;
  return (ordinal) => {
    const text = JSON.stringify([session, generation, turn]);
    prefix ??= sha256Hex(`holdfast:session-node:1:${text}`).slice(0, 32);
    return `n_${prefix}_${ordinal}`;
  };
}
