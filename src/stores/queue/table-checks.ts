import type { Encoded } from "../../model/values/encoded.ts";
import { isPolicy } from "../../model/queue.ts";
import { integersOf, textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { isUnchanged } from "../context.ts";
import { inSessions } from "../session-checks.ts";
import { byKey, distinct, tableCheck } from "../table-check.ts";
import type { TableCheck } from "../table-check.ts";
import { itemId } from "./batch-row.ts";
import type { BatchRow } from "./batch-row.ts";

interface OwnedBatch extends BatchRow {
  readonly session: number;
  readonly last_fence: number | null;
  readonly open_turn: string | null;
}

/** Tests whether batches that are named like wakes of processes belong to existing events. */
export type WakesOf = (batches: readonly string[]) => Tx<(batch: string) => boolean>;

const batch = (wakesOf: WakesOf): TableCheck =>
  tableCheck<OwnedBatch>({
    table: "holdfast_queue_batch",
    select: sql`
    SELECT t.key, t.id, t.session, t.source_key, t.process, t.sequence, t.class, t.delivery, t.slot, t.merge_key,
      t.available_at, t.enqueued_at, t.claim, t.claim_fence, t.claim_size, t.turn, t.failed_turns, t.is_held_back, l.fence AS last_fence, s.open_turn`,
    from: sql`FROM holdfast_queue_batch t LEFT JOIN holdfast_session_lease l ON l.session = t.session
      LEFT JOIN holdfast_session s ON s.key = t.session`,
    ...byKey,
    keyOf: ({ id }) => id,
    judge(row) {
      if (!isPolicy(row)) return "Its class, delivery or slot is unknown.";
      const claim = [row.claim, row.turn ?? row.claim_fence, row.claim_size];
      if (claim.some((part) => part === null) && claim.some((part) => part !== null))
        return "It is claimed but lacks parts of the claim.";
      if (row.turn !== null && row.turn !== row.open_turn)
        return "It is claimed by a turn that is not open.";
      return (row.claim_fence ?? 0) > (row.last_fence ?? 0)
        ? "It is claimed under a fence that was never issued."
        : undefined;
    },
    *partners(found) {
      const counts = yield* itemCounts(found);
      const wakes = yield* wakesOf(found.map(({ id }) => id));
      return yield* inSessions(found, (row) => {
        const items = counts.get(row.key);
        if (items === undefined) return "It has no items.";
        if (items.last !== items.count - 1) return "It lacks items.";
        return wakes(row.id)
          ? undefined
          : "The process event behind this wake is missing or differs.";
      });
    },
  });

interface ItemCount {
  readonly batch: number;
  readonly count: number;
  readonly last: number;
}

function* itemCounts(found: readonly OwnedBatch[]): Tx<ReadonlyMap<number, ItemCount>> {
  const counts = yield* rows<ItemCount>(sql`
    SELECT batch, COUNT(*) AS count, MAX(ordinal) AS last FROM holdfast_queue_item
    WHERE batch IN ${integersOf(found.map(({ key }) => key))} GROUP BY batch`);
  return new Map(counts.map((each) => [each.batch, each]));
}

interface OwnedItem {
  readonly key: number;
  readonly batch: number;
  readonly batch_id: string | null;
  readonly ordinal: number;
  readonly payload: Encoded;
  readonly checksum: string;
}

const item = tableCheck<OwnedItem>({
  table: "holdfast_queue_item",
  select: sql`SELECT t.key, t.batch, b.id AS batch_id, t.ordinal, t.kind, t.payload, t.checksum`,
  from: sql`FROM holdfast_queue_item t LEFT JOIN holdfast_queue_batch b ON b.key = t.batch`,
  ...byKey,
  weight: sql`length(t.payload)`,
  keyOf: (row) => itemId(row.batch_id ?? String(row.batch), row.ordinal),
  judge(row, { decode, bytes }) {
    if (row.batch_id === null) return "Its batch is missing.";
    if (!isUnchanged({ bytes }, { text: row.payload, checksum: row.checksum }))
      return "Its payload does not match its hash.";
    decode(row.payload);
    return undefined;
  },
});

interface ConsumedRow {
  readonly session: number;
  readonly source_key: string;
}

const consumed = tableCheck<ConsumedRow>({
  table: "holdfast_queue_consumed",
  select: sql`SELECT t.session, t.source_key, t.at`,
  from: sql`FROM holdfast_queue_consumed t`,
  order: sql`t.session, t.source_key`,
  behind: (last) => sql`(t.session, t.source_key) > (${last.session}, ${last.source_key})`,
  keyOf: (row) => `${row.session}/${row.source_key}`,
  partners: (found) => inSessions(found),
});

interface WakeMarkRow {
  readonly session: number;
  readonly process: string;
}

const wakeMark = tableCheck<WakeMarkRow>({
  table: "holdfast_queue_wake_mark",
  select: sql`SELECT t.session, t.process, t.sequence`,
  from: sql`FROM holdfast_queue_wake_mark t`,
  order: sql`t.session, t.process`,
  behind: (last) => sql`(t.session, t.process) > (${last.session}, ${last.process})`,
  keyOf: (row) => `${row.session}/${row.process}`,
  partners: (found) => inSessions(found),
});

interface CompletedRow {
  readonly session: number;
  readonly number: number;
  readonly batches: string;
}

const completed = tableCheck<CompletedRow>({
  table: "holdfast_queue_completed",
  select: sql`SELECT t.session, t.number, t.fence, t.claim, t.batches`,
  from: sql`FROM holdfast_queue_completed t`,
  order: sql`t.session, t.number`,
  behind: (last) => sql`(t.session, t.number) > (${last.session}, ${last.number})`,
  weight: sql`length(t.batches)`,
  keyOf: (row) => `${row.session}/${row.number}`,
  judge: (row) =>
    Array.isArray(JSON.parse(row.batches)) ? undefined : "It has no list of batches.",
  *partners(found) {
    const ids = new Set(found.flatMap(batchesOf));
    const queued = yield* rows<{ session: number; id: string }>(sql`
      SELECT session, id FROM holdfast_queue_batch
      WHERE session IN ${integersOf(distinct(found, ({ session }) => session))} AND id IN ${textsOf([...ids])}`);
    const waiting = new Set(queued.map(({ session, id }) => `${session}/${id}`));
    return yield* inSessions(found, (row) =>
      batchesOf(row).some((id) => waiting.has(`${row.session}/${id}`))
        ? "A batch that it completed is still in the queue."
        : undefined,
    );
  },
});

function batchesOf({ batches }: CompletedRow): readonly string[] {
  try {
    const ids: unknown = JSON.parse(batches);
    return Array.isArray(ids) ? ids.map(String) : [];
  } catch {
    return [];
  }
}

export function queueChecks(wakesOf: WakesOf): readonly TableCheck[] {
  return [batch(wakesOf), item, consumed, wakeMark, completed];
}
