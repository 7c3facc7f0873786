import { createHash } from "node:crypto";
import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import type { RawConnection } from "../../src/backends/sqlite/drivers/drivers.ts";
import { handWritten } from "../hand-written.ts";

/** The parameters of each statement of a commit, in the order in which they are bound. */
interface CommitRows {
  readonly head: readonly unknown[];
  readonly blob: readonly unknown[];
  readonly replaced: readonly unknown[];
  readonly component: readonly unknown[];
  readonly usage: readonly unknown[];
  readonly nodes: readonly (readonly unknown[])[];
  readonly receipt: readonly unknown[];
}

type Row = Readonly<Record<string, unknown>>;

/** What the store wrote, commit by commit, ready to be bound by hand. */
export function writtenRows(path: string): readonly CommitRows[] {
  const connection = loadDriver(undefined).open(path, { readOnly: true });
  const all = (text: string): readonly Row[] => connection.prepare(text).all() as Row[];
  const byTurn = (rows: readonly Row[]): ReadonlyMap<string, Row[]> => {
    const found = new Map<string, Row[]>();
    for (const row of rows) {
      const name = nameOf(row);
      const group = found.get(name);
      if (group === undefined) found.set(name, [row]);
      else group.push(row);
    }
    return found;
  };
  const usage = all(`
    SELECT session, turn, ordinal, at, source, model, input_tokens, output_tokens,
      cache_read_tokens, cache_write_tokens, reasoning_tokens
    FROM holdfast_session_usage ORDER BY key`);
  const nodes = byTurn(
    all(`
      SELECT session, id, parent, depth, skip, far, messages, turn, at, kind, role, payload, checksum, key FROM holdfast_session_node ORDER BY key`),
  );
  const receipts = byTurn(
    all(`SELECT session, turn, hash, parts, result, committed_at FROM holdfast_session_turn`),
  );
  // A commit removes the blob it replaces, so only the last one of each session
  // is left; the others were as long and stood under other hashes.
  const blobs = new Map(
    all(`
      SELECT c.session, b.hash, b.kind, b.encoding, b.size, b.put_at, b.content
      FROM holdfast_session_component c JOIN holdfast_blob b ON b.hash = c.blob`).map(
      ({ session, ...blob }) => [session, blob],
    ),
  );
  const firsts = new Map(
    all(`SELECT key, first_user_message FROM holdfast_session`).map((row) => [
      row["key"],
      row["first_user_message"],
    ]),
  );
  const rows = usage.map((entry): CommitRows => {
    const name = nameOf(entry);
    const { session, at } = entry;
    const receipt = receipts.get(name)?.[0] ?? {};
    const own = nodes.get(name) ?? [];
    const { revision } = JSON.parse(String(receipt["result"])) as {
      revision: number;
    };
    const blob = {
      ...blobs.get(session),
      hash: hashOf(session, revision),
    };
    const values = [revision, own.at(-1)?.["key"], at, firsts.get(session)];
    return {
      head: bound([...values, session, revision - 1]),
      blob: bound(blobColumns.map((column) => (blob as Row)[column])),
      replaced: bound([hashOf(session, revision - 1)]),
      component: bound([session, "tools", 1, revision, blob["hash"]]),
      usage: bound(Object.values(entry)),
      nodes: own.map((node) => bound(Object.values(node).slice(0, -1))),
      receipt: bound(Object.values(receipt)),
    };
  });
  connection.close();
  return rows;
}

const blobColumns = ["hash", "kind", "encoding", "size", "put_at", "content"];

/** A hash of its own for the blob of each revision. */
function hashOf(session: unknown, revision: number): string {
  return createHash("sha256")
    .update(`${String(session)} ${revision}`)
    .digest("hex");
}

function nameOf(row: Row): string {
  return `${String(row["session"])} ${String(row["turn"])}`;
}

function bound(values: readonly unknown[]): readonly unknown[] {
  return values.map((value) => (typeof value === "number" ? BigInt(value) : value));
}

/**
 * The same rows by statements prepared by hand, as many commits per
 * transaction. Answers with commits per second.
 */
export function handWrittenCommits(
  path: string,
  rows: readonly CommitRows[],
  commitsPerTransaction: number,
): number {
  const times = { inAll: rows.length, perTransaction: commitsPerTransaction };
  return handWritten(path, times, (connection) => {
    const claimed = claimedBatches(connection);
    const write = commitByHand(connection);
    return (index) => {
      const row = rows[index] as CommitRows;
      write(row, claimed.get(row.usage[0])?.shift() as Row);
    };
  });
}

/** By session, in the order of the queue. */
function claimedBatches(connection: RawConnection): ReadonlyMap<unknown, Row[]> {
  const batches = connection
    .prepare(
      `SELECT key, session, claim, claim_fence, source_key FROM holdfast_queue_batch ORDER BY key`,
    )
    .all() as Row[];
  const bySession = new Map<unknown, Row[]>();
  for (const batch of batches) {
    const session = BigInt(batch["session"] as number);
    const line = bySession.get(session);
    if (line === undefined) bySession.set(session, [batch]);
    else line.push(batch);
  }
  return bySession;
}

function commitByHand(connection: RawConnection): (row: CommitRows, batch: Row) => void {
  const head = connection.prepare(`
    UPDATE holdfast_session SET revision = ?, leaf = ?, active_at = ?, node_count = node_count + 3,
      user_message_count = user_message_count + 1, first_user_message = ?
    WHERE key = ? AND revision = ?`);
  const items = connection.prepare(`DELETE FROM holdfast_queue_item WHERE batch = ?`);
  const batches = connection.prepare(
    `DELETE FROM holdfast_queue_batch WHERE key = ? AND claim = ? AND claim_fence = ?`,
  );
  const consumed = connection.prepare(
    `INSERT INTO holdfast_queue_consumed (session, source_key, at) VALUES (?, ?, ?)`,
  );
  const blob = connection.prepare(`
    INSERT INTO holdfast_blob (hash, kind, encoding, size, put_at, content) VALUES (?, ?, ?, ?, ?, ?)`);
  const replaced = connection.prepare(`DELETE FROM holdfast_blob WHERE hash = ?`);
  const component = connection.prepare(`
    INSERT INTO holdfast_session_component (session, name, version, revision, hash, blob) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, name) DO UPDATE SET
      version = excluded.version, revision = excluded.revision, hash = excluded.hash, blob = excluded.blob`);
  const usage = connection.prepare(`
    INSERT INTO holdfast_session_usage
      (session, turn, ordinal, at, source, model, input_tokens, output_tokens,
       cache_read_tokens, cache_write_tokens, reasoning_tokens)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const node = connection.prepare(`
    INSERT INTO holdfast_session_node (session, id, parent, depth, skip, far, messages, turn, at, kind, role, payload, checksum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const receipt = connection.prepare(`
    INSERT INTO holdfast_session_turn (session, turn, hash, parts, result, committed_at) VALUES (?, ?, ?, ?, ?, ?)`);
  const run = (statement: typeof head, values: readonly unknown[]): number | bigint =>
    statement.run(...(values as never[])).changes;
  return (row, batch) => {
    const key = BigInt(batch["key"] as number);
    const fence = BigInt(batch["claim_fence"] as number);
    if (Number(run(head, row.head)) !== 1) throw new Error("Another revision is there.");
    run(items, [key]);
    if (Number(run(batches, [key, batch["claim"], fence])) !== 1)
      throw new Error("The claim is lost.");
    run(consumed, [row.usage[0], batch["source_key"], row.usage[3]]);
    run(blob, row.blob);
    run(component, [...row.component, row.blob[0]]);
    run(replaced, row.replaced);
    run(usage, row.usage);
    for (const values of row.nodes) run(node, values);
    run(receipt, row.receipt);
  };
}
