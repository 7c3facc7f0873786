import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { compared, inScratch } from "../scratch.ts";
import { handWrittenLoop } from "./ceiling.ts";
import { appendLoad, prepareHeads } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(1_000, 10);
const each = size(40, 4);
const rounds = size(5, 1);

/** Many callers at once on a file, full durability. */
export function concurrent(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    let rowsPerCommit = 0;
    for (let round = 0; round < rounds; round += 1) {
      const database = await openSqlite(join(folder, `ours-${round}.db`));
      const heads = await prepareHeads(database, callers);
      const before = database.stats();
      values.push(await appendLoad(database, heads, each));
      const after = database.stats();
      await database.close();
      rowsPerCommit = Math.round((after.calls - before.calls) / (after.commits - before.commits));
      ceilings.push(
        handWrittenLoop({
          path: join(folder, `ceiling-${round}.db`),
          operations: callers * each,
          heads: callers,
          rowsPerCommit,
          synchronous: "normal",
        }),
      );
    }
    return {
      ...compared(values, ceilings),
      rowsPerCommit,
    };
  });
}
