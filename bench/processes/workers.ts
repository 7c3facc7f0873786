import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { prepareHeads } from "../kernel/load.ts";
import { compiled } from "../../test/compile-children.ts";
import type { AppendOrder, AppendReport } from "./appender.ts";

/** Divides callers over processes, lets all append at once, and collects their reports. */
export async function appendInProcesses(options: {
  readonly folder: string;
  readonly name: string;
  readonly callers: number;
  readonly each: number;
  readonly processes: number;
}): Promise<readonly AppendReport[]> {
  const path = join(options.folder, `${options.name}.db`);
  const database = await openSqlite(path);
  const heads = await prepareHeads(database, options.callers);
  await database.close();
  const children = await Promise.all(
    Array.from({ length: options.processes }, async () => {
      const child = fork(compiled("processes/appender.ts", "bench"), [], {
        execArgv: [],
      });
      await once(child, "message");
      return child;
    }),
  );
  return Promise.all(
    children.map(async (child, index) => {
      const own = heads.filter((_, at) => at % options.processes === index);
      const order: AppendOrder = { path, heads: own, each: options.each };
      const reported = once(child, "message") as Promise<[AppendReport]>;
      child.send(order);
      const [report] = await reported;
      return report;
    }),
  );
}

/** Operations per second of all together: none counts longer than the slowest. */
export function together(reports: readonly AppendReport[]): number {
  const operations = reports.reduce((sum, report) => sum + report.operations, 0);
  const elapsedMs = Math.max(...reports.map((report) => report.elapsedMs));
  return (operations * 1_000) / elapsedMs;
}
