import type { SessionNode } from "../../../model/session/session.ts";
import { givenList } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { checkedId, sessionNamed, type SessionName } from "../../session-name.ts";
import type { SessionRef } from "../../session-row.ts";
import type { SessionContext } from "../context.ts";
import { livingHead } from "../head-row.ts";
import { nodeColumns, shownNodes, type NodeRow } from "../node-row.ts";
import { nodeView } from "./graph.ts";

interface LoadNodes {
  readonly session: SessionRef;
  readonly ids: readonly string[];
}

/** Payloads may have two megabytes each. */
const idsMax = 100;

/** @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`, `ID_MALFORMED` */
export function givenNodes(
  _: SessionContext,
  session: SessionName,
  ids: readonly string[],
  wait?: WaitOptions,
): Call<LoadNodes> {
  const named = givenList("ids", ids, idsMax).map((id) => checkedId("The id of a node", id));
  const input = { session: sessionNamed(session), ids: [...new Set(named)] };
  return { input, wait: onlyWait(wait) };
}

/** Reads the named nodes that the session shows, in any order. */
export const loadNodes = storeOperation("loadNodes", {
  key: (input) => input.session.id,
  *one(_: SessionContext, { session, ids }: LoadNodes): Tx<readonly NodeRow[]> {
    const shown = yield* shownNodes(yield* livingHead(session), ids);
    if (shown.length === 0) return [];
    return yield* rows<NodeRow>(sql`
      SELECT ${nodeColumns} FROM holdfast_session_node n
      WHERE n.key IN ${integersOf(shown.map(({ key }) => key))}`);
  },
});

/** Puts them into the order of the ids. @throws HoldfastError `CORRUPT_ROW` */
export function shownLoadedNodes(
  context: SessionContext,
  found: readonly NodeRow[],
  { ids }: LoadNodes,
): readonly SessionNode[] {
  const views = new Map(found.map((each) => [each.id, nodeView(context, each)]));
  return ids.flatMap((id) => views.get(id) ?? []);
}
