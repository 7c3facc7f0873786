import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { sessions } from "../../src/stores/session/sessions.ts";
import type { Sessions } from "../../src/stores/session/sessions.ts";
import { numbers, seeded } from "../executions/seed.ts";
import { checksum } from "../../src/host/hash.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

const few = 1_000;
const many = size(100_000, 2_000);
const pathNodes = 200;
const rounds = size(200, 2);

/** Where the nodes of a branch lie: one after the other, or each on a page of its own. */
type Layout = "together" | "scattered";

/** Does reading the active path of a large session cost what it costs in a small one? */
export function read(): Promise<object> {
  return inScratch(async (folder) => {
    const together = await compareSessions(folder, "together");
    const scattered = await compareSessions(folder, "scattered");
    return {
      value: rounded(together.ofMany),
      unit: `ms to read a path of ${pathNodes} among 100,000 nodes`,
      ceiling: rounded(together.ofFew),
      ratio: rounded(together.ofMany / together.ofFew),
      scatteredRatio: rounded(scattered.ofMany / scattered.ofFew),
      rounds,
      note: "ceiling is the same among 1,000 nodes; aim ≤ 1.5; scattered: all branches grew at once, so each node is on a page of its own",
    };
  });
}

async function compareSessions(
  folder: string,
  layout: Layout,
): Promise<{ readonly ofFew: number; readonly ofMany: number }> {
  const opened = [];
  for (const nodes of [few, many]) {
    const path = join(folder, `${layout}-${nodes}.db`);
    await seeded(path, [insertSession(nodes), insertNodes(nodes, layout)]);
    const database = await openSqlite(path);
    opened.push({ database, store: sessions(database), ms: [] as number[] });
  }
  for (let round = 0; round < rounds; round += 1)
    for (const { store, ms } of opened) ms.push(await readPath(store));
  for (const { database } of opened) await database.close();
  const [ofFew = Number.NaN, ofMany = Number.NaN] = opened.map(({ ms }) => median(ms));
  return { ofFew, ofMany };
}

/** Its leaf is the node inserted last: the end of the last branch. */
function insertSession(nodes: number): string {
  return `INSERT INTO holdfast_session
    (key, id, generation, created_at, name, revision, leaf, node_count, user_message_count, active_at)
    VALUES (1, 'large', 1, 0, 'large', 1, ${nodes}, ${nodes}, 0, 0)`;
}

const payload = `{"role":"user","content":"${"a message. ".repeat(25)}"}`;

/** Branches of `pathNodes` each, in the order in which the layout inserts them. */
function insertNodes(nodes: number, layout: Layout): string {
  const branches = nodes / pathNodes;
  const [depth, step] =
    layout === "together" ? [`(i - 1) % ${pathNodes}`, 1] : [`(i - 1) / ${branches}`, branches];
  return `${numbers(nodes)}
    INSERT INTO holdfast_session_node
      (key, session, id, parent, depth, messages, turn, at, kind, role, payload, checksum)
    SELECT i, 1, printf('n_%032x', (i * 7919) % 1000003), CASE WHEN ${depth} = 0 THEN NULL ELSE i - ${step} END,
      ${depth}, 0, 'turn-' || i, 0, 'message', 'user', '${payload}', '${checksum(payload)}'
    FROM numbers`;
}

async function readPath(store: Sessions): Promise<number> {
  const startedMs = performance.now();
  const { nodes, hasMore } = await store.path("large");
  const elapsedMs = performance.now() - startedMs;
  if (nodes.length !== pathNodes || hasMore) throw new Error(`The path has ${nodes.length} nodes.`);
  return elapsedMs;
}
