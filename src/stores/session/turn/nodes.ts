import type { CheckedText } from "../../../model/values/encoded.ts";
import {
  nodeExists,
  nodeNotFound,
  nodeParentUnknown,
  turnInvalid,
} from "../../../model/session/errors.ts";
import { pointAfter } from "../../../model/session/ancestry.ts";
import type { NodeChoice, NodePlace } from "../../../model/session/turn.ts";
import { row } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { leafOf } from "../head-row.ts";
import type { SessionHeadRow } from "../head-row.ts";
import { inheritedNodes, shownNode } from "../node-row.ts";
import type { NamedPoint } from "../node-row.ts";

/** A node whose values are ready to be stored. */
export interface PreparedNode {
  readonly id: string;
  /** False when the store generated the id, which no other node has. */
  readonly isNamed: boolean;
  readonly place: NodePlace;
  readonly kind: string;
  readonly role: string | null;
  readonly frame: string | null;
  readonly causedBy: string | null;
  readonly payload: CheckedText;
}

/** Appends the nodes of a turn. @throws HoldfastError `NODE_EXISTS`, `NODE_PARENT_UNKNOWN` */
export function* appendNodes(
  head: SessionHeadRow,
  turn: string,
  at: number,
  nodes: readonly PreparedNode[],
): Tx<readonly NamedPoint[]> {
  const appended: NamedPoint[] = [];
  const named = nodes.filter(({ isNamed }) => isNamed).map(({ id }) => id);
  const [taken] = yield* inheritedNodes(head, named);
  if (taken !== undefined) throw nodeExists(head.id, taken.id);
  for (const [ordinal, node] of nodes.entries()) {
    const parent = yield* parentOf(head, node.place, appended, ordinal);
    const point = pointAfter(parent, node);
    const inserted = yield* row<{ readonly key: number }>(sql`
      INSERT INTO holdfast_session_node
        (session, id, parent, depth, skip, far, messages, turn, at, kind, role, frame, caused_by, payload,
         checksum)
      VALUES (${head.key}, ${node.id}, ${parent?.key ?? null}, ${point.depth}, ${point.skip}, ${point.far},
        ${point.messages}, ${turn}, ${at},
        ${node.kind}, ${node.role}, ${node.frame}, ${node.causedBy},
        ${node.payload.text}, ${node.payload.checksum})
      ON CONFLICT (session, id) DO NOTHING RETURNING key`);
    if (inserted === undefined) throw nodeExists(head.id, node.id);
    appended.push({ key: inserted.key, id: node.id, ...point });
  }
  return appended;
}

function* parentOf(
  head: SessionHeadRow,
  place: NodePlace,
  appended: readonly NamedPoint[],
  ordinal: number,
): Tx<NamedPoint | undefined> {
  switch (place.kind) {
    case "root":
      return undefined;
    case "leaf":
      return leafOf(head);
    case "ordinal":
      return appended[place.ordinal];
    default: {
      const found = yield* shownNode(head, place.id);
      if (found === undefined) throw nodeParentUnknown(head.id, place.id, ordinal);
      return found;
    }
  }
}

/**
 * The leaf of the conversation after a turn.
 * @throws HoldfastError `NODE_NOT_FOUND`, `TURN_INVALID`
 */
export function* chosenLeaf(
  head: SessionHeadRow,
  appended: readonly NamedPoint[],
  choice: NodeChoice | null | undefined,
): Tx<NamedPoint | undefined> {
  if (choice === undefined) return appended.at(-1) ?? leafOf(head);
  if (choice === null) return undefined;
  if ("ordinal" in choice) {
    const chosen = appended[choice.ordinal];
    if (chosen !== undefined) return chosen;
    throw turnInvalid(
      `its leaf is node ${String(choice.ordinal)} of this turn, but the turn has ${appended.length}.`,
      { part: "leaf", ordinal: choice.ordinal },
    );
  }
  const found = yield* shownNode(head, choice.id);
  if (found === undefined) throw nodeNotFound(head.id, choice.id);
  return found;
}
