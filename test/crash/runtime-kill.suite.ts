import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import type { Run } from "../../src/runtime/client/run-handle.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { whenLogStands } from "../conformance/runtime/log-growth.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

/** Only their names matter here: the processes have the code. */
const tenSteps = workflow("ten-steps", async (_, start: number) => start);
const guilty = workflow("guilty", async () => undefined);
const stepsPerRun = 10;
const workersMax = 3;
/** Few places, so that hundreds of runs ask for each; each run in hand has one step that may be cut off. */
const placesPerWorker = 1 + (seed % 3);

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
 * Three processes with 1 to 3 places work; again and again one of them is
 * killed, and one run kills each process that begins it. Whoever dies is
 * replaced. All other runs end with the right result, no step that was recorded
 * ran again, and what was interrupted ran once more for each death at most.
 * Tells how many ended.
 */
export async function survivesKills(plan: KillPlan): Promise<number> {
  const { holdfast, effects, runs } = plan;
  writeFileSync(effects, "");
  const started = await holdfast.startMany(
    tenSteps,
    Array.from({ length: runs }, (_, index) => ({
      input: index,
      id: `run-${index}`,
    })),
  );
  const killer = await holdfast.start(guilty);
  const workers = new Workers(plan);
  const letGoOn = unparking(holdfast);
  let stopWatching = (): void => undefined;
  try {
    const stands = new Promise<never>((_, reject) => {
      const { database } = holdfast;
      stopWatching = whenLogStands(database, () => reject(new Error("No log grows any more.")));
    });
    const ended = Promise.all([
      Promise.all(started.map(resultOf)),
      killedAgainAndAgain(plan, workers),
    ]);
    const [results, lostForAll] = await Promise.race([ended, stands, workers.failed]);
    const sumOfSteps = (stepsPerRun * (stepsPerRun - 1)) / 2;
    expect(results).toEqual(started.map((_, index) => index + sumOfSteps));
    await workers.end();
    const { times, repeated } = readEffects(effects);
    expect(repeated).toEqual([]);
    expect(times.size).toBe(runs * stepsPerRun);
    const again = [...times.values()].reduce((sum, count) => sum + count - 1, 0);
    const interruptions = workers.deaths + lostForAll * workersMax;
    expect(again).toBeLessThanOrEqual(interruptions * placesPerWorker);
  } finally {
    stopWatching();
    await letGoOn.stop();
    await workers.end();
  }
  await killer.cancel({ force: true });
  // The log has each step once.
  for (const run of started.slice(0, 50)) {
    const { items } = await run.events({ kinds: ["stepFinished"] });
    expect(items).toHaveLength(stepsPerRun);
  }
  return started.length;
}

/** Processes that are replaced whenever they die. */
class Workers {
  readonly #args: readonly (string | number)[];
  readonly #living: (Child | undefined)[] = [];
  readonly #lanes: readonly Promise<void>[];
  /** Rejects when a process said that something went wrong. */
  readonly failed: Promise<never>;
  #fail: (error: Error) => void = () => undefined;
  #isOver = false;
  deaths = 0;

  constructor({ place, effects, pauseMs }: KillPlan) {
    this.#args = [place, effects, pauseMs, placesPerWorker];
    this.failed = new Promise((_, reject) => (this.#fail = reject));
    this.failed.catch(() => undefined);
    this.#lanes = Array.from({ length: workersMax }, (_, index) => this.#lane(index));
  }

  /** Kills one that works. */
  async kill(index: number): Promise<void> {
    const victim = this.#living[index];
    await victim?.reported(1);
    victim?.kill();
    await victim?.ended;
  }

  async end(): Promise<void> {
    this.#isOver = true;
    for (const child of this.#living) child?.kill();
    await Promise.all(this.#lanes);
  }

  async #lane(index: number): Promise<void> {
    while (!this.#isOver) {
      const child = new Child("runtime-worker.ts", this.#args);
      this.#living[index] = child;
      await child.ended;
      this.deaths += 1;
      if (child.failures !== "") this.#fail(new Error(child.failures));
    }
  }
}

/** Tells how often the locks of all may have been lost. */
async function killedAgainAndAgain({ kills, after }: KillPlan, workers: Workers): Promise<number> {
  const random = seededRandom(seed);
  let lostForAll = 0;
  for (let kill = 0; kill < kills; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50 + random() * 150));
    await workers.kill(Math.floor(random() * workersMax));
    if ((await after?.(kill)) === true) lostForAll += 1;
  }
  return lostForAll;
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
      await holdfast.runs.unparkAll({ function: tenSteps.name });
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
