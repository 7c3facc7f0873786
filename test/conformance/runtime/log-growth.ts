import type { Database } from "../../../src/sql/database.ts";
import { row } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";

const lookMs = 1_000;
/** So often the log is found as it was before its runs count as stuck. A busy machine delays looks as it delays runs. */
const looksMax = 30;

/** Calls back once no log of a database has grown for many looks, unless the returned function is called first. */
export function whenLogStands(database: Database, stands: () => void): () => void {
  let before = -1;
  let same = 0;
  let isOver = false;
  const look = async (): Promise<void> => {
    const size = await logSize(database);
    if (isOver) return;
    same = size === before ? same + 1 : 0;
    before = size;
    if (same < looksMax) timer = setTimeout(again, lookMs);
    else stands();
  };
  const again = (): void => void look();
  let timer = setTimeout(again, lookMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}

/** The number of events in all logs. */
async function logSize(database: Database): Promise<number> {
  const found = await database.read("log size", () =>
    row<{ readonly size: number | null }>(sql`
      SELECT CAST(SUM(version) AS BIGINT) AS size FROM holdfast_execution`),
  );
  return found?.size ?? 0;
}
