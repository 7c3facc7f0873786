/**
 * Every node knows its parent and two ancestors further up: the nearest one
 * whose depth is a multiple of 64, and of 4,096. All of it follows from the
 * parent's row, so appending looks nothing up, and climbing a path of n nodes
 * takes about n / 4,096 + 128 steps: 100,000 nodes in at most 152, where the
 * walk over parents took 100,000.
 */
export const skipSpan = 64;
export const farSpan = 4_096;

/** Where a node is in its graph. */
export interface NodePoint {
  readonly key: number;
  readonly depth: number;
  /** The key of the nearest ancestor whose depth is a multiple of 64; null at a root. */
  readonly skip: number | null;
  /** The same for 4,096. */
  readonly far: number | null;
  /** How many messages of users there are from the root to here. */
  readonly messages: number;
}

/** What is counted as a message of a user. */
export function isUserMessage(node: {
  readonly kind: string;
  readonly role?: string | null;
}): boolean {
  return node.kind === "message" && node.role === "user";
}

/** Where a node goes that follows another one, or none. */
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
