import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { numbers, seeded } from "../executions/seed.ts";
import { cpuMeter, inScratch, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { stepping } from "./load.ts";

const sleepers = size(1_000_000, 1_000);
const seconds = size(10, 0.05);

/** A worker with a million workflows that sleep: what it costs to have them. */
export function idle(): Promise<object> {
  return inScratch(async (folder) => {
    const few = await usage(join(folder, "few.db"), 10);
    const many = await usage(join(folder, "many.db"), sleepers);
    return {
      value: rounded(many.later),
      unit: `percent of one processor over ${seconds} s`,
      sleepers,
      withTen: rounded(few.later),
      afterOpening: { many: rounded(many.first), withTen: rounded(few.first) },
      note: "aim: under 1; afterOpening is the ten seconds before, in which V8 gives back what opening took",
    };
  });
}

/** Eight seconds after something has happened V8 collects its garbage, once: 20 to 60 ms that are no part of idling. */
async function usage(
  path: string,
  count: number,
): Promise<{ readonly first: number; readonly later: number }> {
  await seeded(path, [
    `${numbers(count)}
    INSERT INTO holdfast_execution
      (key, id, role, function, input_hash, created_at, scheduled_at, version, lifecycle, failures, deaths, responses,
       history_from, state, due_at, backoff_ms)
    SELECT i, 'sleeper-' || i, 'workflow', 'stepping', 'hash', i, i, 3, 'active', 0, 0, 0, 0, 'blocked', NULL, 100
    FROM numbers`,
    `${numbers(count)}
    INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
    SELECT 'Delay_sleeper-' || i || '.o:1_1', i, 'o:1', 8000000000000 + (i * 7919) % 1000003, 0
    FROM numbers`,
  ]);
  const holdfast = await openHoldfast(path);
  await holdfast.work([stepping]);
  await new Promise((resolve) => setTimeout(resolve, seconds * 100));
  const first = await percent();
  const later = await percent();
  await holdfast.close();
  return { first, later };
}

async function percent(): Promise<number> {
  const cpu = cpuMeter();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  return cpu() / seconds / 10_000;
}
