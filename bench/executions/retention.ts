import { monitorEventLoopDelay } from "node:perf_hooks";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import type { Executions } from "../../src/stores/execution/executions.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { appendSteps, lockedTargets, throughStore } from "./load.ts";
import { size } from "../sizes.ts";

const trees = size(1_500, 100);
const callers = size(50, 4);
const each = size(200, 20);
const rounds = size(3, 1);

interface Round {
  readonly rowsPerSecond: number;
  readonly longestPauseMs: number;
  readonly appendsPerSecond: number;
  readonly appendsAlone: number;
}

/** Removes finished runs, each with a child, while others append; how fast, and how long is the loop held? */
export function retention(): Promise<object> {
  return inScratch(async (folder) => {
    const found: Round[] = [];
    for (let round = 0; round < rounds; round += 1)
      found.push(await removeUnderLoad(join(folder, `retention-${round}.db`)));
    const middle = (of: (round: Round) => number): number => rounded(median(found.map(of)));
    return {
      value: middle(({ rowsPerSecond }) => rowsPerSecond),
      unit: "rows removed/s",
      longestPauseMs: middle(({ longestPauseMs }) => longestPauseMs),
      appendsPerSecond: middle(({ appendsPerSecond }) => appendsPerSecond),
      ceiling: middle(({ appendsAlone }) => appendsAlone),
      ratio: middle((round) => round.appendsPerSecond / round.appendsAlone),
      rounds,
      note: "ceiling and ratio: appends of 50 callers while nothing is removed, and while it is",
    };
  });
}

async function removeUnderLoad(path: string): Promise<Round> {
  const database = await openSqlite(path);
  const log = executions(database);
  for (let first = 0; first < trees; first += 100)
    await Promise.all(Array.from({ length: 100 }, (_, n) => finishedTree(log, first + n)));
  const lanes = (await lockedTargets(log, callers)).map((target) => [target]);
  const appendsAlone = await appendSteps(throughStore(log), lanes, each);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedMs = performance.now();
  const appending = appendSteps(throughStore(log), lanes, each);
  const { rows } = await log.removeFinished({
    function: "bench/tree",
    keepNewest: 0,
  });
  const elapsedMs = performance.now() - startedMs;
  const appendsPerSecond = await appending;
  delay.disable();
  await database.close();
  return {
    rowsPerSecond: (rows * 1_000) / elapsedMs,
    longestPauseMs: delay.max / 1e6,
    appendsPerSecond,
    appendsAlone,
  };
}

async function finishedTree(log: Executions, n: number): Promise<void> {
  const id = `tree-${n}`;
  await log.create({ id, function: "bench/tree" });
  await log.create({ id: `${id}.o:1_1`, function: "bench/leaf" });
  await log.append(
    id,
    1,
    Array.from({ length: 20 }, (_, call) => ({
      kind: "stepFinished" as const,
      name: "step",
      outcome: "completed" as const,
      value: { done: true, call },
      call,
    })),
  );
  await log.finish(`${id}.o:1_1`, 1, { kind: "completed", value: 1 });
  await log.finish(id, 21, { kind: "completed", value: 2 });
}
