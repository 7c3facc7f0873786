import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import type { Holdfast } from "../../src/runtime/holdfast.ts";
import { workflow } from "../../src/runtime/definitions.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

/** Only its name matters here: the processes have the code. */
const tenSteps = workflow("ten-steps", async (_, start: number) => start);
const stepsPerRun = 10;

export interface KillPlan {
  readonly holdfast: Holdfast;
  /** What a worker process is told: a path or URL, a file for its effects, and options. */
  readonly args: readonly [place: string, effects: string, options: string];
  readonly runs: number;
  readonly kills: number;
  /** Done between two kills, such as a restart of the server. */
  readonly between?: (kill: number) => Promise<void>;
}

/**
 * Three processes work; again and again one of them is killed and replaced.
 * All runs end with the right result, no step that was recorded ran again, and
 * what was interrupted ran once more for each kill at most.
 */
export async function survivesKills({
  holdfast,
  args,
  runs,
  kills,
  between,
}: KillPlan): Promise<number> {
  const random = seededRandom(seed);
  const [, effects] = args;
  writeFileSync(effects, "");
  const workers = [0, 1, 2].map(() => new Child("runtime-worker.ts", args));
  await Promise.all(workers.map((worker) => worker.reported(1)));
  const started = await holdfast.startMany(
    tenSteps,
    Array.from({ length: runs }, (_, index) => ({
      input: index,
      id: `run-${index}`,
    })),
  );
  const ended = Promise.all(
    started.map((run) => run.result({ timeout: "50s" })),
  );
  for (let kill = 0; kill < kills; kill += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50 + random() * 150));
    const victim = Math.floor(random() * workers.length);
    workers[victim]?.kill();
    await workers[victim]?.ended;
    await between?.(kill);
    workers[victim] = new Child("runtime-worker.ts", args);
  }
  const sumOfSteps = (stepsPerRun * (stepsPerRun - 1)) / 2;
  expect(await ended).toEqual(started.map((_, index) => index + sumOfSteps));
  for (const worker of workers) {
    worker.kill();
    await worker.ended;
    expect(worker.errors).toBe("");
  }
  const times = new Map<string, number>();
  for (const line of readFileSync(effects, "utf8").trim().split("\n"))
    times.set(line, (times.get(line) ?? 0) + 1);
  expect(times.size).toBe(runs * stepsPerRun);
  const again = [...times.values()].reduce((sum, count) => sum + count - 1, 0);
  // Each kill interrupts what one process had in hand: at most one step of each of its runs.
  expect(again).toBeLessThanOrEqual(kills * 20);
  // The log has each step once.
  for (const run of started.slice(0, 50)) {
    const { items } = await holdfast.executions.events(run.id, {
      kinds: ["stepFinished"],
    });
    expect(items).toHaveLength(stepsPerRun);
  }
  return started.length;
}
