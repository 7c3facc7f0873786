import { loadDriver } from "../../src/backends/sqlite/drivers/drivers.ts";
import { handWritten } from "../hand-written.ts";

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
  const all = (text: string): readonly Row[] => connection.prepare(text).all() as Row[];
  const events = all(`
    SELECT process, sequence, at, type, replay_key, hash, body, payload, wake FROM holdfast_process_event
    WHERE sequence > 0 ORDER BY key`);
  const batches = all(`
    SELECT id, session, process, sequence, class, delivery, slot, available_at, enqueued_at
    FROM holdfast_queue_batch ORDER BY key`);
  const items = all(
    `SELECT batch, ordinal, kind, payload, checksum FROM holdfast_queue_item ORDER BY key`,
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
  return values.map((value) => (typeof value === "number" ? BigInt(value) : (value as SqlValue)));
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
  const times = { inAll: rows.length, perTransaction: eventsPerTransaction };
  return handWritten(path, times, (connection) => {
    const prepare = (text: string): ReturnType<typeof connection.prepare> =>
      connection.prepare(text);
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
      "INSERT INTO holdfast_queue_item (batch, ordinal, kind, payload, checksum) VALUES (?, ?, ?, ?, ?)",
    );
    const event = prepare(`
    INSERT INTO holdfast_process_event (process, sequence, at, type, replay_key, hash, body, payload, wake)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
    const state = prepare("UPDATE holdfast_process SET updated_at = ?, sequence = ? WHERE key = ?");
    return (index) => {
      const row = rows[index] as EventRows;
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
    };
  });
}
