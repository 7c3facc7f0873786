import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";
import type { OwnerId } from "../../src/kernel.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import { recordDeath } from "../../src/stores/owner/owner.ts";
import { seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

const hour = 3_600_000;
const from = Date.UTC(2026, 9, 9, 12);
const to = Date.UTC(2026, 10, 9, 12);

/** 02:30 in Berlin. On 25 October clocks show it twice, and the first counts. */
const instants: readonly string[] = [
  ...datesOf("2026-10", 10, 25).map((date) => `${date}T00:30:00Z`),
  ...datesOf("2026-10", 26, 31).map((date) => `${date}T01:30:00Z`),
  ...datesOf("2026-11", 1, 9).map((date) => `${date}T01:30:00Z`),
];

function datesOf(month: string, first: number, last: number) {
  return Array.from(
    { length: last - first + 1 },
    (_, index) => `${month}-${String(first + index).padStart(2, "0")}`,
  );
}

export interface SchedulePlan {
  readonly holdfast: Holdfast;
  /** What a worker process is told of the database, and where it notes its effects. */
  readonly place: string;
  readonly effects: string;
  /** In how many steps the month passes; in each a process is killed. */
  readonly steps: number;
}

/**
 * Two processes fire the same four schedules over a month. At each step of
 * time one of them is killed while it fires, and once both, so that nobody is
 * there for a while. Every instant is started once, or skipped and counted.
 * Tells how many instants the month had.
 */
export async function schedulesSurviveKills(plan: SchedulePlan): Promise<number> {
  const { place, effects, steps } = plan;
  writeFileSync(effects, "");
  const random = seededRandom(seed);
  const worker = (at: number): Child => new Child("scheduled-worker.ts", [place, effects, at]);
  const workers: [Child, Child] = [worker(from), worker(from)];
  try {
    for (let step = 1; step <= steps; step += 1) {
      const at = Math.round(from + ((to - from) * step) / steps);
      await Promise.all(workers.map((each) => each.reported(1)));
      const isDowntime = step === Math.ceil(steps / 2);
      for (const victim of isDowntime ? [0, 1] : [random() < 0.5 ? 0 : 1]) {
        workers[victim]?.tell(String(at - hour));
        await new Promise((go) => setTimeout(go, random() * 60));
        workers[victim]?.kill();
        await workers[victim]?.ended;
        expect(workers[victim]?.failures).toBe("");
        await bury(plan.holdfast, workers[victim]?.lines[0]);
        workers[victim] = worker(at - hour);
      }
      await told(workers[step % 2 === 0 ? 0 : 1], at);
    }
    for (const each of workers) {
      await told(each, to);
      each.tell("end");
      expect(await each.ended).toBe(0);
      expect(each.failures).toBe("");
    }
  } finally {
    for (const each of workers) {
      each.kill();
      await each.ended;
    }
  }
  await eachInstantOnce(plan);
  return instants.length;
}

/** On Postgres nothing proves a death, and leases end by the clock, which is set by days here: so who kills tells. */
async function bury({ database }: Holdfast, owner: string | undefined): Promise<void> {
  await database.write(recordDeath, {
    owner: owner as OwnerId,
    now: Date.now(),
  });
}

async function eachInstantOnce({ holdfast, effects }: SchedulePlan): Promise<void> {
  const { items } = await holdfast.schedules.list();
  expect(items.map(({ name }) => name)).toEqual(["allow", "cancelPrevious", "queue", "skip"]);
  for (const { name, skipped, waiting } of items) {
    expect(waiting).toBe(0);
    const all = instants.map((instant) => `${name}@${instant}`);
    const { items: runs } = await holdfast.runs.list({
      tag: `schedule:${name}`,
      limit: 1_000,
    });
    const ids = runs.map(({ id }) => id as string).toSorted();
    expect(all).toEqual(expect.arrayContaining(ids));
    expect(ids.length + (skipped?.count ?? 0)).toBe(all.length);
    if (name === "allow" || name === "queue") expect(ids).toEqual(all);
  }
  // One after the other, though a step that was cut off is done again.
  const queued = readFileSync(effects, "utf8")
    .split("\n")
    .filter((line) => line.startsWith("queue@"));
  const order = queued.filter((line, index) => line !== queued[index - 1]);
  expect(order).toEqual(instants.map((instant) => `queue@${instant}`));
  const { damaged } = await holdfast.maintenance.check();
  expect(damaged).toEqual([]);
}

/** Sets the clock of a process, and waits until it has dealt with what is due. */
async function told(child: Child | undefined, instant: number): Promise<void> {
  await child?.reported(1);
  child?.tell(String(instant));
  await child?.until(() => child.lines.includes(`done ${instant}`));
  expect(child?.failures).toBe("");
}
