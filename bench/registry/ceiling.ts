import { closeSync, fdatasyncSync, openSync } from "node:fs";
import { loadDriver } from "../../src/backends/sqlite/drivers.ts";

type SqlValue = string | bigint | null;
type Row = Readonly<Record<string, unknown>>;

/** An event with the wake it caused, ready to be bound by hand. */
interface EventRows {
  readonly event: readonly SqlValue[];
  readonly process: readonly SqlValue[];
  readonly batch: readonly SqlValue[];
  readonly item: readonly SqlValue[];
}

/** What the store wrote, event by event. */
export function writtenEvents(path: string): readonly EventRows[] {
  const connection = loadDriver(undefined).open(path, { readOnly: true });
  const all = (text: string): readonly Row[] =>
    connection.prepare(text).all() as Row[];
  const events = all(`
    SELECT process, sequence, at, type, replay_key, hash, body, payload, wake FROM holdfast_process_event
    WHERE sequence > 0 ORDER BY key`);
  const batches = all(`
    SELECT id, session, process, sequence, class, delivery, slot, available_at, enqueued_at
    FROM holdfast_queue_batch ORDER BY key`);
  const items = all(
    `SELECT batch, ordinal, kind, payload FROM holdfast_queue_item ORDER BY key`,
  );
  connection.close();
  return events.map((event, index) => ({
    event: bound(Object.values(event)),
    process: bound([event["at"], event["sequence"], event["process"]]),
    batch: bound(Object.values(batches[index] ?? {})),
    item: bound(Object.values(items[index] ?? {}).slice(1)),
  }));
}

function bound(values: readonly unknown[]): readonly SqlValue[] {
  return values.map((value) =>
    typeof value === "number" ? BigInt(value) : (value as SqlValue),
  );
}

/**
 * The same rows by statements prepared by hand, in a plain loop with as many
 * events per transaction and one flush each: what SQLite itself can do with
 * these tables. It looks up the replay key, the source and the session, as
 * whoever writes this by hand must too. Answers with events per second.
 */
export function handWrittenEvents(
  path: string,
  rows: readonly EventRows[],
  eventsPerTransaction: number,
): number {
  const connection = loadDriver(undefined).open(path, { readOnly: false });
  connection.exec("PRAGMA synchronous = normal");
  connection.exec("PRAGMA wal_autocheckpoint = 0");
  connection.exec("PRAGMA cache_size = -16384");
  const prepare = (text: string): ReturnType<typeof connection.prepare> =>
    connection.prepare(text);
  const begin = prepare("BEGIN IMMEDIATE");
  const commit = prepare("COMMIT");
  const process = prepare(
    "SELECT sequence, status, event_types FROM holdfast_process WHERE key = ?",
  );
  const replay = prepare(
    "SELECT sequence FROM holdfast_process_event WHERE process = ? AND replay_key = ?",
  );
  const session = prepare(
    "SELECT key FROM holdfast_session WHERE key = ? AND deleted_at IS NULL",
  );
  const queued = prepare(
    "SELECT key FROM holdfast_queue_batch WHERE session = ? AND process = ? AND sequence = ?",
  );
  const batch = prepare(`
    INSERT INTO holdfast_queue_batch
      (id, session, process, sequence, class, delivery, slot, available_at, enqueued_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING key`);
  const item = prepare(
    "INSERT INTO holdfast_queue_item (batch, ordinal, kind, payload) VALUES (?, ?, ?, ?)",
  );
  const event = prepare(`
    INSERT INTO holdfast_process_event (process, sequence, at, type, replay_key, hash, body, payload, wake)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const state = prepare(
    "UPDATE holdfast_process SET updated_at = ?, sequence = ? WHERE key = ?",
  );
  connection.exec("UPDATE holdfast_tick SET n = n + 1");
  const log = openSync(`${path}-wal`, "r+");
  const startedMs = performance.now();
  for (let done = 0; done < rows.length;) {
    begin.run();
    for (
      let inTransaction = 0;
      inTransaction < eventsPerTransaction && done < rows.length;
      inTransaction += 1, done += 1
    ) {
      const row = rows[done] as EventRows;
      const [own = null, , , , replayKey = null] = row.event;
      const [, woken = null, name = null, sequence = null] = row.batch;
      process.get(own);
      replay.get(own, replayKey);
      session.get(woken);
      queued.get(woken, name, sequence);
      const { key } = batch.get(...row.batch) as { readonly key: bigint };
      item.run(key, ...row.item);
      event.run(...row.event);
      state.run(...row.process);
    }
    commit.run();
    fdatasyncSync(log);
  }
  const elapsedMs = performance.now() - startedMs;
  closeSync(log);
  connection.close();
  return (rows.length * 1_000) / elapsedMs;
}
