import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import { activity, workflow } from "../../src/runtime/definition/definitions.ts";
import { type Database, rows, sql } from "../../src/kernel.ts";
import { whenLogStands } from "../conformance/runtime/log-growth.ts";
import { isDeep, seed, seededRandom } from "../depth.ts";
import { Child } from "./child.ts";

/** Only their names matter here: the processes have the code. */
const innocent = workflow("innocent", async (_, n: number) => n);
const killer = workflow("killer", async (_, afterMs: number) => afterMs);
const calling = workflow("calling", async (_, afterMs: number) => afterMs);
const stumbler = workflow("stumbling", async (_, steps: number) => steps);
const plain = activity("plain", async (_, n: number) => n);

export interface CrashLoopPlan {
  readonly holdfast: Holdfast;
  readonly database: Database;
  /** Told to the worker processes: the database, and the file where steps note that they begin. */
  readonly place: string;
  readonly effects: string;
}

const innocents = isDeep ? 60 : 12;
const stepMs = isDeep ? 1_000 : 200;

/** One seed in four has a place for each run; with the others 1 to 3 runs take all places. */
function placesOf(number: number): number {
  return (number >> 1) % 4 || 100;
}

/** Outlasts what a busy machine needs to hear of a step and to kill its process. */
const longMs = 3_000;

/**
 * Rules of crash loops. The first one is tested each time; of the others a
 * short run takes one, by its seed.
 */
export function crashLoopSuite(
  withPlan: (body: (plan: CrashLoopPlan) => Promise<void>) => Promise<void>,
): void {
  const others = [
    {
      title: "a run that records a step between its kills completes, and all beside it do",
      parkedWrongly: stumbling,
    },
    { title: "seven Ctrl-C in one step park nothing", parkedWrongly: interrupts },
    {
      title: "a kill after a worker was told to close convicts nobody, however often",
      parkedWrongly: killsWhileClosing,
    },
    {
      title: "healthy workers that are killed again and again park nothing",
      parkedWrongly: killsOfHealthyWorkers,
    },
  ];
  test("[E55] runs that kill their process are parked, also one that comes while another is tried, and innocent ones complete", () =>
    withPlan(async (plan) => {
      expect(await killers(plan)).toEqual([]);
    }));

  for (const { title, parkedWrongly } of isDeep ? others : others.slice(seed % 4).slice(0, 1))
    test(`[E55] ${title}`, () =>
      withPlan(async (plan) => {
        expect(await parkedWrongly(plan)).toEqual([]);
      }));
}

/** Processes that are replaced whenever they end, as a supervisor does. */
class Workers {
  readonly #start: () => Child;
  readonly #lanes: Promise<void>[];
  readonly #living = new Set<Child>();
  readonly #failed: Promise<never>;
  #fail: (error: Error) => void = () => undefined;
  #isOver = false;
  deaths = 0;

  constructor(
    { place, effects }: CrashLoopPlan,
    count: number,
    { concurrency = 100, bodyMs = stepMs }: { concurrency?: number; bodyMs?: number } = {},
  ) {
    this.#start = () => new Child("crash-loop-worker.ts", [place, effects, bodyMs, concurrency]);
    this.#failed = new Promise((_, reject) => (this.#fail = reject));
    this.#failed.catch(() => undefined);
    this.#lanes = Array.from({ length: count }, () => this.#lane());
  }

  get living(): readonly Child[] {
    return [...this.#living];
  }

  /** Resolves with what is waited for, unless a process fails by itself or no log grows any more. */
  async until<T>(database: Database, waited: Promise<T>): Promise<T> {
    const stop = whenLogStands(database, () => {
      void openRuns(database).then((open) =>
        this.#fail(new Error(`No log grows any more: ${JSON.stringify(open)}`)),
      );
    });
    try {
      return await Promise.race([waited, this.#failed]);
    } finally {
      stop();
      this.#isOver = true;
      for (const child of this.#living) child.kill();
      await Promise.all(this.#lanes);
    }
  }

  async #lane(): Promise<void> {
    while (!this.#isOver) {
      const child = this.#start();
      this.#living.add(child);
      await child.ended;
      this.#living.delete(child);
      this.deaths += 1;
      if (child.failures !== "") this.#fail(new Error(child.failures));
    }
  }
}

function openRuns(database: Database) {
  return database.read("open runs", () =>
    rows(sql`
      SELECT id, state, lifecycle, deaths, alone_deaths, is_alone, due_at, lease_until
      FROM holdfast_execution WHERE state <> 'finished'`),
  );
}

async function startInnocents({ holdfast }: CrashLoopPlan, count = innocents, from = 0) {
  const runs = await holdfast.startMany(
    innocent,
    Array.from({ length: count }, (_, n) => ({ input: n, id: `innocent-${from + n}` })),
  );
  const attempts = await holdfast.startMany(
    plain,
    Array.from({ length: count }, (_, n) => ({ input: n, id: `plain-${from + n}` })),
  );
  return Promise.all([...runs, ...attempts].map((run) => run.result({ timeout: "30 minutes" })));
}

function numbersTwice(count = innocents): readonly number[] {
  const numbers = Array.from({ length: count }, (_, n) => n);
  return [...numbers, ...numbers];
}

async function untilSo(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

async function kindsAndCounts({ executions }: Holdfast, id: string): Promise<readonly string[]> {
  const { items } = await executions.events(id, { limit: 1_000 });
  return items.map(({ event }) => ("counts" in event ? event.counts : event.kind));
}

async function parkedCode({ executions }: Holdfast, id: string): Promise<string | undefined> {
  const { interruption } = await executions.get(id);
  return interruption?.kind === "parked" ? interruption.code : undefined;
}

/** The runs that are parked, and those of some that ever were. */
async function parkedOf({ holdfast }: CrashLoopPlan, ids: readonly string[] = []) {
  const { items } = await holdfast.runs.list({ status: "parked" });
  const parked = new Set(items.map(({ id }) => id as string));
  for (const id of ids) if ((await kindsAndCounts(holdfast, id)).includes("parked")) parked.add(id);
  return [...parked];
}

async function killers(plan: CrashLoopPlan): Promise<readonly string[]> {
  const { holdfast, database } = plan;
  const { executions } = holdfast;
  writeFileSync(plan.effects, "");
  const results = startInnocents(plan);
  await holdfast.start(killer, 0, { id: "killer" });
  const workers = new Workers(plan, 1 + (seed % 2), { concurrency: placesOf(seed) });
  const guilty = async (): Promise<string> => {
    await untilSo(async () => (await kindsAndCounts(holdfast, "killer")).includes("aloneDeath"));
    await holdfast.start(calling, 50, { id: "calling" });
    await untilSo(async () => (await executions.list({ parent: "calling" })).items.length > 0);
    const child = (await executions.list({ parent: "calling" })).items[0]?.id ?? "";
    for (const id of ["killer", child])
      await untilSo(async () => (await parkedCode(holdfast, id)) !== undefined);
    return child;
  };
  const [child, values] = await workers.until(database, Promise.all([guilty(), results]));
  expect(values).toEqual(numbersTwice());
  for (const id of ["killer", child]) {
    expect(await parkedCode(holdfast, id)).toBe("RUN_KEEPS_KILLING_WORKERS");
    const counts = await kindsAndCounts(holdfast, id);
    expect(counts.filter((count) => count === "aloneDeath")).toHaveLength(5);
    expect(counts.filter((count) => count === "death").length).toBeGreaterThanOrEqual(3);
  }
  expect(await holdfast.get(calling, "calling").status()).toBe("blocked");
  return (await parkedOf(plan)).filter((id) => id !== "killer" && id !== child);
}

async function stumbling(plan: CrashLoopPlan): Promise<readonly string[]> {
  const { holdfast, database } = plan;
  const kills = isDeep ? 8 : 6;
  writeFileSync(plan.effects, "");
  const results = startInnocents(plan);
  const run = await holdfast.start(stumbler, kills, { id: "stumbling" });
  const workers = new Workers(plan, 1);
  const [value, values] = await workers.until(database, Promise.all([run.result(), results]));
  expect([value, values]).toEqual([kills, numbersTwice()]);
  expect(workers.deaths).toBeGreaterThanOrEqual(kills);
  return parkedOf(plan, ["stumbling", "innocent-0"]);
}

/** The same run is begun alone each time, and each time its process ends in the middle of it. */
async function interrupts(plan: CrashLoopPlan): Promise<readonly string[]> {
  const { holdfast, database } = plan;
  writeFileSync(plan.effects, "");
  const run = await holdfast.start(innocent, 5, { id: "innocent" });
  const workers = new Workers(plan, 1, { bodyMs: longMs });
  const interrupting = async (): Promise<number> => {
    for (let interrupt = 1; interrupt <= 7; interrupt += 1) {
      await untilSo(async () => readFileSync(plan.effects, "utf8").length >= interrupt * 14);
      for (const child of workers.living) child.process.kill("SIGINT");
    }
    return run.result();
  };
  expect(await workers.until(database, interrupting())).toBe(5);
  const counts = await kindsAndCounts(holdfast, "innocent");
  expect(counts.filter((count) => count === "death")).toHaveLength(3);
  expect(counts.filter((count) => count === "aloneDeath")).toHaveLength(4);
  return parkedOf(plan, ["innocent"]);
}

async function killsWhileClosing(plan: CrashLoopPlan): Promise<readonly string[]> {
  const { holdfast, database } = plan;
  writeFileSync(plan.effects, "");
  const run = await holdfast.start(innocent, 5, { id: "innocent" });
  const workers = new Workers(plan, 1, { bodyMs: longMs });
  const killing = async (): Promise<number> => {
    // Three deaths make a suspect, and five more alone would park it.
    for (let kill = 1; kill <= 8; kill += 1) {
      await untilSo(async () => readFileSync(plan.effects, "utf8").length >= kill * 14);
      for (const child of workers.living) {
        child.process.kill("SIGTERM");
        await child.until(() => child.lines.includes("closing"));
        await untilSo(async () => {
          const { pending } = (await holdfast.executions.get("innocent")).state;
          return pending.kind !== "locked" || !pending.isAlone;
        });
        child.kill();
      }
    }
    return run.result();
  };
  expect(await workers.until(database, killing())).toBe(5);
  expect(await kindsAndCounts(holdfast, "innocent")).not.toContain("aloneDeath");
  return parkedOf(plan, ["innocent"]);
}

async function killsOfHealthyWorkers(plan: CrashLoopPlan): Promise<readonly string[]> {
  const { database } = plan;
  const kills = isDeep ? 114 : 8;
  const perKill = 8;
  const random = seededRandom(seed);
  writeFileSync(plan.effects, "");
  const workers = new Workers(plan, 3, { concurrency: 5 });
  const killing = async (): Promise<readonly (readonly number[])[]> => {
    const results: Promise<number[]>[] = [];
    for (let kill = 0; kill < kills; kill += 1) {
      // There is work for as long as workers are killed.
      results.push(startInnocents(plan, perKill, kill * perKill));
      // Long enough for a step, and for the start of a process.
      await sleep((stepMs + 400) * (1 + random()));
      workers.living[Math.floor(random() * workers.living.length)]?.kill();
    }
    return Promise.all(results);
  };
  const all = await workers.until(database, killing());
  expect(all).toEqual(Array.from({ length: kills }, () => numbersTwice(perKill)));
  expect(workers.deaths).toBeGreaterThanOrEqual(kills);
  const ids = Array.from({ length: kills * perKill }, (_, n) => [`innocent-${n}`, `plain-${n}`]);
  return parkedOf(plan, ids.flat());
}
