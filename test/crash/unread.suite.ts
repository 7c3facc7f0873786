import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { isHoldfastError } from "../../src/model/errors.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import type { Run } from "../../src/runtime/client/run-handle.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";
import { collector, message, type Collecting } from "./unread-collector.ts";

export interface UnreadPlan {
  readonly holdfast: Holdfast;
  /** What a worker process is told of the database. */
  readonly place: string;
  readonly runs: number;
  readonly rounds: number;
  /** How often the worker process is killed and replaced. */
  readonly kills: number;
}

interface Outcome {
  readonly acknowledged: number;
  readonly unread: number;
}

/**
 * Sends messages at random around the timeouts of receives in another process.
 * Each message that was acknowledged is received once, in order, or counted as
 * unread by the end of its run.
 */
export async function losesNoMessage(plan: UnreadPlan): Promise<Outcome> {
  const random = seededRandom(seed);
  const workers = new ReplacedWorker(plan.place);
  const given = Array.from({ length: plan.runs }, () => ({
    rounds: plan.rounds,
    timeoutMs: 2 + Math.floor(random() * 12),
  }));
  const runs = await plan.holdfast.startMany(
    collector,
    given.map((input) => ({ input })),
  );
  await workers.begin();
  const killing = killedAtTimes(workers, plan.kills);
  const outcomes = await Promise.all(
    runs.map((run, index) => outcomeOf(plan.holdfast, run, given[index] as Collecting, random)),
  );
  await killing;
  expect(await workers.end()).toBe(0);
  return outcomes.reduce((sum, each) => ({
    acknowledged: sum.acknowledged + each.acknowledged,
    unread: sum.unread + each.unread,
  }));
}

async function outcomeOf(
  { executions }: Holdfast,
  run: Run<readonly number[]>,
  { timeoutMs }: Collecting,
  random: () => number,
): Promise<Outcome> {
  const sent: number[] = [];
  for (let n = 0; ; n += 1)
    try {
      await run.signal(message, n);
      sent.push(n);
      await sleep(random() * 2.5 * timeoutMs);
    } catch (error) {
      if (isHoldfastError(error) && error.code === "EXECUTION_FINISHED") break;
      throw error;
    }
  const result = await executions.waitForResult(run.id);
  if (result.kind !== "completed") throw new Error(`It ended as ${result.kind}.`);
  const { unread = 0 } = result;
  const received = result.value as readonly number[];
  expect(received.toSorted((a, b) => a - b)).toEqual(sent.slice(0, sent.length - unread));
  return { acknowledged: sent.length, unread };
}

async function killedAtTimes(workers: ReplacedWorker, kills: number): Promise<void> {
  for (let kill = 0; kill < kills; kill += 1) {
    await sleep(400);
    await workers.replace();
  }
}

/** A worker process that is started again when it was killed. */
class ReplacedWorker {
  readonly #place: string;
  #child: Child | undefined;

  constructor(place: string) {
    this.#place = place;
    onTestFinished(() => this.#child?.kill());
  }

  async begin(): Promise<void> {
    this.#child = new Child("unread-worker.ts", [this.#place]);
    await this.#child.reported(1);
  }

  async replace(): Promise<void> {
    this.#child?.kill();
    await this.#child?.ended;
    await this.begin();
  }

  async end(): Promise<unknown> {
    this.#child?.tell("end");
    return this.#child?.ended;
  }
}
