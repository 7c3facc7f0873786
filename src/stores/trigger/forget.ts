import { scheduleSource, triggerSchedules } from "../../model/trigger.ts";
import { integersOf, lockRow, textsOf } from "../../sql/dialect.ts";
import { rows, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { forgetSchedules } from "../schedule/put.ts";
import { ownSource } from "./subscribe.ts";

/**
 * Removes at most so many rows of what a deleted session has subscribed to:
 * schedules and their occurrences, deliveries, subscriptions. Fewer means that
 * nothing is left. Processes are not touched: they may be others' by now.
 */
export function* forgetTriggersOf(
  sessionKey: number,
  rowsMax: number,
): Tx<number> {
  // Subscriptions are locked in the order of `record`, and before their schedules, as by whoever fires one.
  const found = yield* rows<{
    readonly key: number;
    readonly name: string;
  }>(sql`
    SELECT key, name FROM holdfast_trigger_subscription
    WHERE session = ${sessionKey} ORDER BY session, name LIMIT ${rowsMax} ${lockRow}`);
  if (found.length === 0) return 0;
  const keys = found.map(({ key }) => key);
  const names = found.map(({ name }) => ownSource(sessionKey, name).key);
  // First, so that no instant is recorded while the rest is removed slice by slice.
  let removed = yield* forgetSchedules(triggerSchedules, names, rowsMax);
  // Occurrences are locked before their deliveries, as by whoever removes old ones.
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_occurrence WHERE key IN (
        SELECT key FROM holdfast_trigger_occurrence
        WHERE source_type = ${scheduleSource} AND source_key IN ${textsOf(names)}
        ORDER BY key LIMIT ${rowsMax - removed})`);
  if (removed < rowsMax)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_delivery WHERE (occurrence, subscription) IN (
        SELECT occurrence, subscription FROM holdfast_trigger_delivery
        WHERE subscription IN ${integersOf(keys)} ORDER BY subscription, occurrence LIMIT ${rowsMax - removed})`);
  // Last, since the rest is found through them.
  const last = keys.slice(0, rowsMax - removed);
  if (last.length > 0)
    removed += yield* run(sql`
      DELETE FROM holdfast_trigger_subscription WHERE key IN ${integersOf(last)}`);
  return removed;
}
