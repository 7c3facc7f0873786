import { statSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { openSqlite } from "../../src/sqlite.ts";
import { appendEntry } from "../../test/fixtures/append-entry.ts";
import { payload } from "../kernel/load.ts";

/** What a benchmark asks of a process that shares the file. */
export interface AppendOrder {
  readonly path: string;
  readonly heads: readonly number[];
  readonly each: number;
}

/** What it answers. */
export interface AppendReport {
  readonly operations: number;
  readonly elapsedMs: number;
  readonly longestWaitMs: number;
  /** The largest size of the log's file that was seen. */
  readonly walBytesMax: number;
  /** Operations per second over the first and the last tenth. */
  readonly firstPerSecond: number;
  readonly lastPerSecond: number;
  readonly loopDelayMs: {
    readonly p50: number;
    readonly p99: number;
    readonly max: number;
  };
}

process.on("message", (order: AppendOrder) => void append(order));
process.send?.("ready");

async function append({ path, heads, each }: AppendOrder): Promise<void> {
  const database = await openSqlite(path);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const operations = heads.length * each;
  const startedMs = performance.now();
  let longestWaitMs = 0;
  let walBytesMax = 0;
  let done = 0;
  let firstMs = 0;
  let lastFromMs = 0;
  await Promise.all(
    heads.map(async (head) => {
      for (let version = 0; version < each; version += 1) {
        const calledMs = performance.now();
        await database.write(appendEntry, {
          head,
          expectedVersion: version,
          payload,
        });
        const nowMs = performance.now();
        longestWaitMs = Math.max(longestWaitMs, nowMs - calledMs);
        done += 1;
        if (done === Math.floor(operations / 10)) firstMs = nowMs - startedMs;
        if (done === operations - Math.floor(operations / 10)) lastFromMs = nowMs;
        // The file never shrinks, so that few looks suffice.
        if (done % 1_000 === 0) walBytesMax = Math.max(walBytesMax, statSync(`${path}-wal`).size);
      }
    }),
  );
  const endedMs = performance.now();
  delay.disable();
  const report: AppendReport = {
    operations,
    elapsedMs: endedMs - startedMs,
    longestWaitMs,
    walBytesMax,
    firstPerSecond: (operations * 100) / firstMs,
    lastPerSecond: (operations * 100) / (endedMs - lastFromMs),
    loopDelayMs: {
      p50: delay.percentile(50) / 1e6,
      p99: delay.percentile(99) / 1e6,
      max: delay.max / 1e6,
    },
  };
  await database.close();
  process.send?.(report);
  process.disconnect();
}
