import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import type { Database } from "../../src/sql/database.ts";
import { earliestTimer, expiredTimers } from "../../test/fixtures/execution-operations.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { insertExecutions, numbers, seeded } from "./seed.ts";
import { size } from "../sizes.ts";

const future = size(1_000_000, 1_000);
const rounds = size(200, 2);

/** A timer that fires and finds nothing to do, with a million delays ahead. */
export function timers(): Promise<object> {
  return inScratch(async (folder) => {
    const sleepers = [];
    for (const delays of [10, future]) {
      const path = join(folder, `${delays}.db`);
      await seeded(path, [
        insertExecutions(1_000, 1, "locked"),
        `${numbers(delays)}
        INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
        SELECT 'Delay_old-' || (i % 1000 + 1) || '.o:1_' || i, i % 1000 + 1, 'o:1', 8000000000000 + (i * 7919) % 1000003, 0
        FROM numbers`,
      ]);
      sleepers.push({ database: await openSqlite(path), ms: [] as number[] });
    }
    for (let round = 0; round < rounds; round += 1)
      for (const { database, ms } of sleepers) ms.push(await tick(database));
    for (const { database } of sleepers) await database.close();
    const [ofFew = Number.NaN, ofMany = Number.NaN] = sleepers.map(({ ms }) => median(ms));
    return {
      value: rounded(ofMany),
      unit: "ms for an empty tick with 1,000,000 delays ahead",
      ceiling: rounded(ofFew),
      ratio: rounded(ofMany / ofFew),
      rounds,
      note: "ceiling is the same with 10 delays; aim under 1 ms",
    };
  });
}

async function tick(database: Database): Promise<number> {
  const startedMs = performance.now();
  const { timers: expired } = await database.read(expiredTimers, {
    at: Date.now(),
    limit: 100,
  });
  const earliest = await database.read(earliestTimer, undefined);
  const elapsedMs = performance.now() - startedMs;
  if (expired.length > 0 || earliest === undefined) throw new Error("The tick was not empty.");
  return elapsedMs;
}
