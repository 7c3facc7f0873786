import { statSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import type { Executions } from "../../src/stores/execution/executions.ts";
import { compared, cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { handWrittenAppends } from "./ceiling.ts";
import { appendSteps, lockedTargets, throughStore } from "./load.ts";
import type { Target } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(1_000, 10);
const each = size(40, 4);
const rounds = size(5, 1);

/** Step events of many executions at once, full durability, through the store. */
export function append(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    const cpuMicros: number[] = [];
    const ceilingCpuMicros: number[] = [];
    let rowsPerCommit = 0;
    for (let round = 0; round < rounds; round += 1) {
      const database = await openSqlite(join(folder, `ours-${round}.db`));
      const log = executions(database);
      const targets = await lockedTargets(log, callers);
      const before = database.stats();
      const cpu = cpuMeter();
      values.push(await appendAll(log, targets));
      cpuMicros.push(cpu() / (callers * each));
      const after = database.stats();
      rowsPerCommit = Math.round((after.calls - before.calls) / (after.commits - before.commits));
      await database.close();
      const path = join(folder, `ceiling-${round}.db`);
      const ceilingTargets = await ceilingIn(path);
      const ceilingCpu = cpuMeter();
      ceilings.push(
        handWrittenAppends({
          path,
          targets: ceilingTargets,
          each,
          rowsPerCommit,
        }),
      );
      ceilingCpuMicros.push(ceilingCpu() / (callers * each));
    }
    return {
      ...compared(values, ceilings),
      // On a busy machine the loop waits for its flushes and we do not; this says what each costs.
      cpuMicrosPerAppend: rounded(median(cpuMicros)),
      ceilingCpuMicrosPerAppend: rounded(median(ceilingCpuMicros)),
      cpuRatio: rounded(median(ceilingCpuMicros) / median(cpuMicros)),
      rowsPerCommit,
      walBytesPerAppend: await walBytesPerAppend(folder),
    };
  });
}

function appendAll(log: Executions, targets: readonly Target[]): Promise<number> {
  const shares = targets.map((target) => [target]);
  return appendSteps(throughStore(log), shares, each);
}

async function ceilingIn(path: string): Promise<readonly Target[]> {
  const database = await openSqlite(path);
  const targets = await lockedTargets(executions(database), callers);
  await database.close();
  return targets;
}

/** With a log that is never restarted, so that its length is what was written. */
async function walBytesPerAppend(folder: string): Promise<number> {
  const path = join(folder, "wal.db");
  const limits = { walBytes: 1_073_741_824 };
  const database = await openSqlite(path, { limits });
  const log = executions(database);
  const targets = await lockedTargets(log, callers);
  const length = (): number => statSync(`${path}-wal`).size;
  const before = length();
  await appendAll(log, targets);
  const written = length() - before;
  await database.close();
  return Math.round(written / (callers * each));
}
