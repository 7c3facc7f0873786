/**
 * The distance to the ancestors that every node knows besides its parent: the nearest one whose
 * depth is a multiple of 64, and of 4,096. Both follow from the parent's row, so an append needs no
 * lookup. Climbing a path of n nodes takes about n / 4,096 + 128 steps: at most 152 for 100,000
 * nodes, where a walk over parents takes 100,000.
 */
export const skipSpan = 64;
export const farSpan = 4_096;

/** The position of a node in its graph. */
export interface NodePoint {
  readonly key: number;
  readonly depth: number;
  /** The key of the nearest ancestor whose depth is a multiple of 64; null at a root. */
  readonly skip: number | null;
  /** The key of the nearest ancestor whose depth is a multiple of 4,096; null at a root. */
  readonly far: number | null;
  /** The number of users' messages from the root to this node. */
  readonly messages: number;
}

/** True for a node that counts as a message of a user. */
export function isUserMessage(node: {
  readonly kind: string;
  readonly role?: string | null;
}): boolean {
  return node.kind === "message" && node.role === "user";
}

/** Returns the position of a node after a parent, or of a root. */
export function pointAfter(
  parent: NodePoint | undefined,
  node: { readonly kind: string; readonly role?: string | null },
): Omit<NodePoint, "key"> {
  const own = isUserMessage(node) ? 1 : 0;
  if (parent === undefined) return { depth: 0, skip: null, far: null, messages: own };
  return {
    depth: parent.depth + 1,
    skip: parent.depth % skipSpan === 0 ? parent.key : parent.skip,
    far: parent.depth % farSpan === 0 ? parent.key : parent.far,
    messages: parent.messages + own,
  };
}
