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
      value: rounded(many),
      unit: `percent of one processor over ${seconds} s`,
      sleepers,
      withTen: rounded(few),
      note: "aim: under 1",
    };
  });
}

async function usage(path: string, count: number): Promise<number> {
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
  const cpu = cpuMeter();
  await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
  const micros = cpu();
  await holdfast.close();
  return micros / seconds / 10_000;
}
