import { expect, test } from "vitest";
import { queuePaths, sessionKey, statementsOf } from "../fixtures/queue-paths.ts";
import { withNewPlace } from "./place.ts";
import type { Shell } from "./place.ts";
import { planOf, plans } from "./plans.ts";

/** What stands before the session asked for: 19 other sessions with most of the rows. */
const others = 60_000;
const own = 3_000;

/** Batches, some of them claimed, some for later, each with an item, and what is remembered of as many. */
async function fill(shell: Shell): Promise<void> {
  await shell.unsafe(`
    INSERT INTO holdfast_queue_batch
      (id, session, source_key, process, sequence, class, delivery, slot, available_at, enqueued_at,
        claim, claim_fence, claim_size)
    SELECT 'b' || v, CASE WHEN v <= ${others} THEN v % 19 + 1 ELSE ${sessionKey} END,
      CASE WHEN v % 3 = 0 THEN 's' || v END, CASE WHEN v % 3 = 1 THEN 'p' END, CASE WHEN v % 3 = 1 THEN v END,
      'turn', 'earliestSafeBoundary', 'join', CASE WHEN v % 50 = 0 THEN v ELSE 0 END, 1,
      CASE WHEN v % 40 = 0 THEN 'c' || v END, CASE WHEN v % 40 = 0 THEN 7 END, CASE WHEN v % 40 = 0 THEN 1 END
    FROM generate_series(1, ${others + own}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_queue_item (batch, ordinal, kind, payload, checksum)
    SELECT key, 0, 'k', '1', 'c' FROM holdfast_queue_batch`);
  await shell.unsafe(`
    INSERT INTO holdfast_queue_consumed (session, source_key, at)
    SELECT v % 20 + 1, 'c' || v, v FROM generate_series(1, ${others}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_queue_wake_mark (session, process, sequence)
    SELECT v % 20 + 1, 'p' || v, v FROM generate_series(1, ${others}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_queue_completed (session, number, fence, claim, batches)
    SELECT v % 20 + 1, v, 7, 'c' || v, '[]' FROM generate_series(1, ${others}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_session_lease (session, fence, given_back)
    SELECT v, 7, 0 FROM generate_series(1, ${others}) AS numbers (v)`);
  await shell.unsafe("ANALYZE");
}

function isFault(step: string): boolean {
  return (
    /Seq Scan on holdfast_queue_/.test(step) ||
    // Found by the session, not filtered: along the primary key lie the batches of all sessions.
    /Filter:.*\bsession\b/.test(step) ||
    step.includes("Sort Key")
  );
}

test("no hot path of the queue walks over other sessions' rows, and none sorts", () =>
  withNewPlace(async (place) => {
    await place.open();
    const shell = place.shell();
    await fill(shell);
    const faults: string[] = [];
    for (const path of queuePaths)
      for (const statement of statementsOf(path))
        for (const plan of plans)
          for (const step of await planOf(shell, statement, plan))
            if (isFault(step)) faults.push(`${path.name} (${plan}): ${step}`);
    expect(faults).toEqual([]);
  }));
