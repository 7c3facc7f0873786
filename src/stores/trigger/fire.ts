import { scheduledOccurrence, scheduleSource } from "../../model/trigger.ts";
import { row } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { ProcessCodec } from "../process/context.ts";
import type { DueInstant } from "../schedule/fire.ts";
import { recordOccurrence } from "./record.ts";
import type { RecordOccurrence, RecordOccurrenceOutcome } from "./record.ts";

/** What the process of a schedule is told: which instant it is for, and which ones before it were passed over. */
export interface SchedulePayload {
  readonly instant: number;
  readonly skipped: { readonly from: number; readonly before: number } | null;
}

/**
 * Records that the schedule of a subscription has come to an instant. The
 * instant is part of the key, so that it happens once. Nothing is recorded for
 * a subscription that is gone while its schedule is still being removed.
 */
export function* fireTrigger(
  codec: ProcessCodec,
  due: DueInstant,
): Tx<RecordOccurrenceOutcome | undefined> {
  const listens = yield* row(sql`
    SELECT key FROM holdfast_trigger_subscription
    WHERE source_type = ${scheduleSource} AND source_key = ${due.name} AND is_enabled = 1 LIMIT 1`);
  if (listens === undefined) return undefined;
  return yield* recordOccurrence(occurrenceAt(codec, due));
}

function occurrenceAt(
  codec: ProcessCodec,
  { name, instant, at, skipped }: DueInstant,
): RecordOccurrence {
  const value: SchedulePayload = { instant, skipped: skipped ?? null };
  return {
    key: scheduledOccurrence(name, instant),
    source: { type: scheduleSource, key: name },
    payload: {
      encoded: codec.encode(value),
      // One instant is one occurrence, whatever was passed over before it.
      hash: codec.hash("occurrence", 1, { instant }),
    },
    occurredAt: instant,
    at,
    codec,
  };
}
