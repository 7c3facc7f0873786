import { expect, test } from "vitest";
import { manualClock } from "../../src/model/time/clock.ts";
import { run, sql, type Statement, type Database } from "../../src/kernel.ts";
import { rejection } from "../conformance/backend.ts";
import { writeEveryRow } from "../conformance/every-row.ts";
import { withFolder } from "./place.ts";

/** What no operation of ours writes, by the table whose check refuses it. */
const unsound: Readonly<Record<string, readonly Statement[]>> = {
  holdfast_execution: [
    sql`UPDATE holdfast_execution SET role = 'odd'`,
    sql`UPDATE holdfast_execution SET state = 'odd'`,
    sql`UPDATE holdfast_execution SET lifecycle = 'odd'`,
    sql`UPDATE holdfast_execution SET lifecycle = 'paused' WHERE state = 'finished'`,
    sql`UPDATE holdfast_execution SET state = 'pending', due_at = NULL`,
    sql`UPDATE holdfast_execution SET state = 'pending', due_at = 1, seen = 1, wake_at = NULL`,
    sql`UPDATE holdfast_execution SET state = 'locked', executor = NULL`,
    sql`UPDATE holdfast_execution SET is_alone = 1 WHERE state <> 'locked'`,
    sql`UPDATE holdfast_execution SET is_alone = 0 WHERE state = 'locked'`,
    sql`UPDATE holdfast_execution SET alone_deaths = deaths + 1`,
    sql`UPDATE holdfast_execution SET state = 'blocked', inbox = 'o:1', ordinal = NULL`,
    sql`UPDATE holdfast_execution SET state = 'finished', lifecycle = 'active', result_kind = NULL`,
    sql`UPDATE holdfast_execution SET state = 'finished', lifecycle = 'active', finished_at = 1, result_kind = 'odd'`,
  ],
  holdfast_execution_response: [sql`UPDATE holdfast_execution_response SET kind = 'odd'`],
  holdfast_execution_delay: [sql`UPDATE holdfast_execution_delay SET is_paused = 2`],
  holdfast_execution_log: [sql`UPDATE holdfast_execution_log SET level = 'odd'`],
  holdfast_session: [
    sql`UPDATE holdfast_session SET fork_node = 1, fork_top = NULL`,
    sql`UPDATE holdfast_session SET deleted_at = NULL, reclaimed_at = 1`,
    sql`UPDATE holdfast_session SET deleted_at = NULL, importing_at = 1`,
    sql`UPDATE holdfast_session SET node_count = -1`,
  ],
  holdfast_session_usage: [sql`UPDATE holdfast_session_usage SET input_tokens = -1`],
  holdfast_session_lease: [sql`UPDATE holdfast_session_lease SET token = 't', owner = NULL`],
  holdfast_queue_batch: [
    sql`UPDATE holdfast_queue_batch SET slot = 'odd'`,
    sql`UPDATE holdfast_queue_batch SET claim = 'c', claim_fence = NULL`,
  ],
  holdfast_blob: [
    sql`UPDATE holdfast_blob SET encoding = 'odd'`,
    sql`UPDATE holdfast_blob SET size = -1`,
  ],
  holdfast_attachment_copy: [sql`UPDATE holdfast_attachment_copy SET state = 'odd'`],
  holdfast_process: [
    sql`UPDATE holdfast_process SET status = 'odd'`,
    sql`UPDATE holdfast_process SET disposition = 'odd'`,
    sql`UPDATE holdfast_process SET status = 'running', ended_sequence = 1`,
    sql`UPDATE holdfast_process SET status = 'completed', ended_sequence = NULL`,
    sql`UPDATE holdfast_process SET is_pruning = 2`,
  ],
  holdfast_process_lease: [sql`UPDATE holdfast_process_lease SET token = 't', owner = NULL`],
  holdfast_effect: [
    sql`UPDATE holdfast_effect SET status = 'odd'`,
    sql`UPDATE holdfast_effect SET status = 'completed', outcome = NULL`,
  ],
  holdfast_await_event: [
    sql`UPDATE holdfast_await_event SET state = 'odd'`,
    sql`UPDATE holdfast_await_event SET state = 'open', settled_at = 1`,
    sql`UPDATE holdfast_await_event SET state = 'resolved', settled_at = 1, hash = NULL`,
  ],
  holdfast_schedule: [
    sql`UPDATE holdfast_schedule SET catch_up = 'odd'`,
    sql`UPDATE holdfast_schedule SET catch_up_max = 0`,
  ],
  holdfast_schedule_function: [
    sql`UPDATE holdfast_schedule_function SET overlap = 'odd'`,
    sql`UPDATE holdfast_schedule_function SET role = 'external'`,
    sql`UPDATE holdfast_schedule_function SET is_paused = 2`,
    sql`UPDATE holdfast_schedule_function SET skips = -1`,
    sql`UPDATE holdfast_schedule_function SET skip_reason = 'full'`,
  ],
  holdfast_trigger_subscription: [sql`UPDATE holdfast_trigger_subscription SET is_enabled = 2`],
};

/** Tries each on rows of every kind; those that no check refuses. */
async function unrefused(database: Database): Promise<readonly string[]> {
  const passed: string[] = [];
  for (const [table, statements] of Object.entries(unsound))
    for (const statement of statements) {
      const { code, details } = await rejection(database.write("unsound", () => run(statement)));
      const isRefused =
        code === "CONSTRAINT_VIOLATED" && details?.["constraint"] === `${table}_sound`;
      if (!isRefused) passed.push(statement.template.sqlite);
    }
  return passed;
}

test("the checks of our tables refuse what no operation writes", () =>
  withFolder(async (folder) => {
    const clock = manualClock(1_000_000);
    const database = await folder.open({ clock });
    await writeEveryRow(database, clock);
    expect(await unrefused(database)).toEqual([]);
  }));
