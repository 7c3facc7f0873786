import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { compared, inScratch } from "../scratch.ts";
import { handWrittenLoop } from "./ceiling.ts";
import { appendLoad, prepareHeads } from "./load.ts";
import { size } from "../sizes.ts";

const operations = size(2_000, 20);
const rounds = size(5, 1);

/** One caller that awaits each operation; the ceiling is one FULL commit each. */
export function sequential(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const database = await openSqlite(join(folder, `ours-${round}.db`));
      const heads = await prepareHeads(database, 1);
      values.push(await appendLoad(database, heads, operations));
      await database.close();
      ceilings.push(
        handWrittenLoop({
          path: join(folder, `ceiling-${round}.db`),
          operations,
          heads: 1,
          rowsPerCommit: 1,
          synchronous: "full",
        }),
      );
    }
    return {
      ...compared(values, ceilings),
    };
  });
}
