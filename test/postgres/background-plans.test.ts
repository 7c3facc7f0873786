import { expect, test } from "vitest";
import { backgroundPaths, statementsOf } from "../fixtures/background-paths.ts";
import { withNewPlace } from "./place.ts";
import type { Shell } from "./place.ts";
import { planOf, plans } from "./plans.ts";

const spawned = 20_000;

/** Running processes of which nearly all run as executions, most of the others begun, few of a kind beside many that have ended, and many handles of one session. */
async function fill(shell: Shell): Promise<void> {
  await shell.unsafe(`
    INSERT INTO holdfast_process
      (id, hash, parts, kind, definition, disposition, execution, created_at, updated_at, sequence, status, started_at,
       wait, attempts, is_pruning)
    SELECT 'p' || v, 'h', '{}', CASE WHEN v % 50 = 0 THEN 'k' ELSE 'k' || v % 50 END,
      CASE WHEN v % 50 = 0 THEN 'd' ELSE 'd' || v % 50 END, 'rerunnable',
      CASE WHEN v % 20 > 0 THEN v END, 1, 1, 0, 'running',
      CASE WHEN v % 400 > 0 THEN 1 END, CASE WHEN v % 100 = 1 THEN '{}' END, 0, 0
    FROM generate_series(1, ${spawned}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_process
      (id, hash, parts, kind, definition, disposition, execution, created_at, updated_at, sequence, status, started_at, attempts,
       ended_at, ended_sequence, is_pruning)
    SELECT 'z' || v, 'h', '{}', CASE WHEN v % 4 = 0 THEN 'k' ELSE 'k' || v % 50 END,
      CASE WHEN v % 4 = 0 THEN 'd' ELSE 'd' || v % 50 END, 'rerunnable',
      CASE WHEN v % 20 > 0 THEN v END, 1, 1, 1, 'completed', 1, 1, 1, 1, 0
    FROM generate_series(1, ${spawned}) AS numbers (v)`);
  await shell.unsafe(`
    INSERT INTO holdfast_process_lease (process, fence, given_back)
    SELECT key, 1, 0 FROM holdfast_process WHERE key % 2 = 0`);
  await shell.unsafe(`
    INSERT INTO holdfast_process_grant (process, session, generation, frame, granted_at)
    SELECT key, CASE WHEN key % 20 = 0 THEN 's' ELSE 's' || key % 100 END, 1, '', 1 FROM holdfast_process`);
  await shell.unsafe(`
    INSERT INTO holdfast_process_event (process, sequence, at, type, hash, body)
    SELECT key, 0, 1, 'process.registered', '', '{}' FROM holdfast_process`);
  await shell.unsafe("ANALYZE");
}

test("worklists and handles are found by indexes", () =>
  withNewPlace(async (place) => {
    await place.open();
    const shell = place.shell();
    await fill(shell);
    for (const path of backgroundPaths)
      for (const statement of statementsOf(path))
        for (const kind of plans) {
          const plan = (await planOf(shell, statement, kind)).join("\n");
          expect([path.name, kind, plan]).toEqual([
            path.name,
            kind,
            expect.stringContaining(path.index),
          ]);
          expect(plan).not.toMatch(/Seq Scan on \S+ [pgmoe]\b|Sort Key: [pge]\./);
        }
  }));
