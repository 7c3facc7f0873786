import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { effects } from "../../src/stores/effect/effects.ts";
import { appendLoad, prepareHeads } from "../kernel/load.ts";
import { compared, cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { executeAll, turnsIn } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const each = size(20, 2);
const rounds = size(7, 1);

/** Effects of many turns at once, full durability: each is read, claimed, run and finished. */
export function execute(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    const cpuMicros: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const database = await openSqlite(join(folder, `ours-${round}.db`));
      const turns = await turnsIn(database, callers);
      const cpu = cpuMeter();
      values.push(await executeAll(effects(database), turns, each));
      cpuMicros.push(cpu() / (callers * each));
      await database.close();

      const kernel = await openSqlite(join(folder, `kernel-${round}.db`));
      const heads = await prepareHeads(kernel, callers);
      ceilings.push((await appendLoad(kernel, heads, 2 * each)) / 2);
      await kernel.close();
    }
    return {
      ...compared(values, ceilings),
      unit: "effects/s",
      cpuMicrosPerEffect: rounded(median(cpuMicros)),
      note: "ceiling is two operations of the kernel by as many callers; aim ≥ 0.5",
    };
  });
}
