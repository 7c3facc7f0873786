import { statSync } from "node:fs";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { sessions } from "../../src/stores/session/sessions.ts";
import { compared, cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { handWrittenCommits, writtenRows } from "./ceiling.ts";
import { commitAll, conversationsIn } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const each = size(20, 2);
const rounds = size(7, 1);

/** Turn commits of many sessions at once, full durability, through the store. */
export function commit(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    const cpuMicros: number[] = [];
    const ceilingCpuMicros: number[] = [];
    let commitsPerTransaction = 0;
    for (let round = 0; round < rounds; round += 1) {
      const path = join(folder, `ours-${round}.db`);
      const database = await openSqlite(path);
      const conversations = await conversationsIn(database, callers, each);
      const before = database.stats();
      const cpu = cpuMeter();
      values.push(await commitAll(sessions(database), conversations));
      cpuMicros.push(cpu() / (callers * each));
      const after = database.stats();
      commitsPerTransaction = Math.round(
        (after.calls - before.calls) / (after.commits - before.commits),
      );
      await database.close();

      const ceilingPath = join(folder, `ceiling-${round}.db`);
      const other = await openSqlite(ceilingPath);
      await conversationsIn(other, callers, each);
      await other.close();
      const rows = writtenRows(path);
      const ceilingCpu = cpuMeter();
      ceilings.push(handWrittenCommits(ceilingPath, rows, commitsPerTransaction));
      ceilingCpuMicros.push(ceilingCpu() / (callers * each));
    }
    return {
      ...compared(values, ceilings),
      unit: "commits/s",
      // On a busy machine the loop waits for its flushes and we do not; this says what each costs.
      cpuMicrosPerCommit: rounded(median(cpuMicros)),
      ceilingCpuMicrosPerCommit: rounded(median(ceilingCpuMicros)),
      cpuRatio: rounded(median(ceilingCpuMicros) / median(cpuMicros)),
      commitsPerTransaction,
      walBytesPerCommit: await walBytesPerCommit(folder),
      note: "ceiling writes the same rows, already encoded and hashed, and checks the revision and the claim; aim ≥ 0.4",
    };
  });
}

/** With a log that is never restarted, so that its length is what was written. */
async function walBytesPerCommit(folder: string): Promise<number> {
  const path = join(folder, "wal.db");
  const limits = { walBytes: 1_073_741_824 };
  const database = await openSqlite(path, { limits });
  const conversations = await conversationsIn(database, callers, each);
  const length = (): number => statSync(`${path}-wal`).size;
  const before = length();
  await commitAll(sessions(database), conversations);
  const written = length() - before;
  await database.close();
  return Math.round(written / (callers * each));
}
