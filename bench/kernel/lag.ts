import { join } from "node:path";
import { openSqliteWith } from "../../src/backends/sqlite/open.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { appendLoad, prepareHeads } from "./load.ts";
import { size } from "../sizes.ts";

const callers = size(50, 4);
const each = size(60, 4);
const rounds = size(3, 1);
const flushDelayMs = 5;

interface Measured {
  readonly perSecond: number;
  readonly lagsMs: readonly number[];
}

/** How late a 1 ms timer fires while a load runs. */
async function lagDuring(load: () => Promise<number>): Promise<Measured> {
  const lagsMs: number[] = [];
  let dueMs = performance.now() + 1;
  let timer = setTimeout(function sample() {
    const nowMs = performance.now();
    lagsMs.push(Math.max(0, nowMs - dueMs));
    dueMs = nowMs + 1;
    timer = setTimeout(sample, 1);
  }, 1);
  const perSecond = await load();
  clearTimeout(timer);
  return { perSecond, lagsMs };
}

/** With a disk whose every flush takes 5 ms longer: is the event loop free, and what does that cost? */
export function lag(): Promise<object> {
  return inScratch(async (folder) => {
    const run = async (place: "thread" | "inline" | undefined, round: number) => {
      const tuning = {
        ...(place && { place }),
        faults: { delayMs: flushDelayMs },
      };
      const database = await openSqliteWith(
        join(folder, `${place}-${round}.db`),
        {},
        { flush: tuning },
      );
      const heads = await prepareHeads(database, callers);
      const measured = await lagDuring(() => appendLoad(database, heads, each));
      await database.close();
      return measured;
    };
    const ours: Measured[] = [];
    const blocking: Measured[] = [];
    for (let round = 0; round < rounds; round += 1) {
      ours.push(await run(undefined, round));
      blocking.push(await run("inline", round));
    }
    const percentile = (lags: readonly number[], share: number): number =>
      rounded(lags.toSorted((a, b) => a - b)[Math.floor(lags.length * share)] ?? Number.NaN);
    const lagsMs = ours.flatMap((round) => round.lagsMs);
    const blockingLagsMs = blocking.flatMap((round) => round.lagsMs);
    return {
      value: percentile(lagsMs, 0.5),
      unit: "ms of event-loop lag, p50",
      p99: percentile(lagsMs, 0.99),
      max: rounded(Math.max(...lagsMs)),
      ceiling: percentile(blockingLagsMs, 0.5),
      ratio: rounded(
        median(
          ours.map((round, index) => round.perSecond / (blocking[index]?.perSecond ?? Number.NaN)),
        ),
      ),
      perSecond: Math.round(median(ours.map((round) => round.perSecond))),
      blockingPerSecond: Math.round(median(blocking.map((round) => round.perSecond))),
      note: "ceiling is the p50 with blocking flushes; ratio is our throughput against theirs",
    };
  });
}
