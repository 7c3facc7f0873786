import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import type { Run } from "../../src/runtime/client/run-handle.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

/** Only its name matters here: the processes have the code. */
const tenSteps = workflow("ten-steps", async (_, start: number) => start);
const stepsPerRun = 10;
const workersMax = 3;
/** So many runs a process has in hand, each with one step that may be cut off. */
const runsPerWorker = 20;

export interface KillPlan {
  readonly holdfast: Holdfast;
  /** What a worker process is told of the database, and where it notes its effects. */
  readonly place: string;
  readonly effects: string;
  /** How long every third step takes: together they last longer than the kills. */
  readonly pauseMs: number;
  readonly runs: number;
  readonly kills: number;
  /** Done after a kill, such as a restart of the server; true when the locks of all may be lost by it. */
  readonly after?: (kill: number) => Promise<boolean>;
}

/**
 * Three processes work; again and again one of them is killed and replaced.
 * All runs end with the right result, no step that was recorded ran again, and
 * what was interrupted ran once more for each kill at most. Tells how many
 * ended.
 */
export async function survivesKills(plan: KillPlan): Promise<number> {
  const { place, effects, pauseMs } = plan;
  writeFileSync(effects, "");
  const newWorker = (): Child => new Child("runtime-worker.ts", [place, effects, pauseMs]);
  const workers = Array.from({ length: workersMax }, newWorker);
  try {
    await Promise.all(workers.map((worker) => worker.reported(1)));
    return await endedRightly(plan, workers, newWorker);
  } finally {
    for (const worker of workers) {
      worker.kill();
      await worker.ended;
    }
  }
}

async function endedRightly(
  { holdfast, effects, runs, kills, after }: KillPlan,
  workers: Child[],
  newWorker: () => Child,
): Promise<number> {
  const random = seededRandom(seed);
  const started = await holdfast.startMany(
    tenSteps,
    Array.from({ length: runs }, (_, index) => ({
      input: index,
      id: `run-${index}`,
    })),
  );
  const ended = Promise.all(started.map(resultOf));
  let interruptions = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50 + random() * 150));
    const victim = Math.floor(random() * workers.length);
    workers[victim]?.kill();
    await workers[victim]?.ended;
    workers[victim] = newWorker();
    const isForAll = (await after?.(kill)) ?? false;
    interruptions += isForAll ? workersMax : 1;
  }
  const sumOfSteps = (stepsPerRun * (stepsPerRun - 1)) / 2;
  const letGoOn = unparking(holdfast);
  try {
    expect(await ended).toEqual(started.map((_, index) => index + sumOfSteps));
  } finally {
    await letGoOn.stop();
  }
  for (const worker of workers) {
    worker.kill();
    await worker.ended;
    expect(worker.failures).toBe("");
  }
  const { times, repeated } = readEffects(effects);
  expect(repeated).toEqual([]);
  expect(times.size).toBe(runs * stepsPerRun);
  const again = [...times.values()].reduce((sum, count) => sum + count - 1, 0);
  expect(again).toBeLessThanOrEqual(interruptions * runsPerWorker);
  // The log has each step once.
  for (const run of started.slice(0, 50)) {
    const { items } = await run.events({ kinds: ["stepFinished"] });
    expect(items).toHaveLength(stepsPerRun);
  }
  return started.length;
}

/**
 * Kills that come faster than a step ends may hit the same run five times
 * while it runs alone, which parks it. An operator who knows the cause unparks
 * such runs. The crash loops prove that slower kills park nothing.
 */
function unparking(holdfast: Holdfast): { stop(): Promise<void> } {
  let isOver = false;
  const going = (async () => {
    while (!isOver) {
      await holdfast.runs.unparkAll({});
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  return {
    async stop() {
      isOver = true;
      await going;
    },
  };
}

/** A wait is cut off with the connection it is on; asking again is the remedy. */
async function resultOf(run: Run<number>): Promise<number> {
  for (;;)
    try {
      return await run.result();
    } catch (error) {
      if (!isHoldfastError(error) || !error.retryable) throw error;
    }
}

/** How often each step was done, and those that were done again when their outcome was known. */
function readEffects(file: string): {
  readonly times: ReadonlyMap<string, number>;
  readonly repeated: readonly string[];
} {
  const times = new Map<string, number>();
  const recorded = new Set<string>();
  const repeated: string[] = [];
  for (const line of readFileSync(file, "utf8").trim().split("\n")) {
    const [run, step, isRecorded] = line.split(" ");
    const key = `${run} ${step}`;
    if (isRecorded !== undefined) recorded.add(key);
    else {
      times.set(key, (times.get(key) ?? 0) + 1);
      if (recorded.has(key)) repeated.push(key);
    }
  }
  return { times, repeated };
}
