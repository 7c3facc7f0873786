import { describe, expect, test } from "vitest";
import { activity, workflow } from "../../../src/runtime/definition/definitions.ts";
import { roundsOn, seed } from "../../depth.ts";
import type { Backend } from "../backend.ts";
import { burst, lateRuns } from "./busy-worker.ts";
import { onRuntime } from "./fixture.ts";
import { until } from "./waiting.ts";

/** New work begins beside work that always asks for the next place. */
export function runtimeFairSuite(backend: Backend): void {
  describe("a worker whose places are always asked for", () => {
    test(
      "[E59] begins a run of another function beside 22 loops on 10 places",
      onRuntime(backend, async ({ holdfast }) => {
        const loops = new Loops();
        const rare = activity("rare", async () => loops.stop());
        await holdfast.work([loops.loop, rare], { concurrency: 10 });
        const inputs = Array.from({ length: 22 }, (_, n) => ({ input: n }));
        const runs = await holdfast.startMany(loops.loop, inputs);
        await until(() => loops.turns > 100);
        const run = await holdfast.start(rare);
        await Promise.all([run, ...runs].map((each) => each.result()));
        expect(loops.isSpent).toBe(false);
      }),
    );

    test(
      "[E59] begins each of 400 loops on its 100 places",
      onRuntime(backend, async ({ holdfast }) => {
        const count = 400;
        const loops = new Loops(count);
        await holdfast.work([loops.loop]);
        const inputs = Array.from({ length: count }, (_, n) => ({ input: n }));
        const runs = await holdfast.startMany(loops.loop, inputs);
        await Promise.all(runs.map((each) => each.result()));
        expect(loops.isSpent).toBe(false);
      }),
    );

    test(
      "[E59] begins each of 40 loops of a function with 3 places, on a worker with 10",
      onRuntime(backend, async ({ holdfast }) => {
        const count = 40;
        const loops = new Loops(count, { concurrency: 3 });
        await holdfast.work([loops.loop], { concurrency: 10 });
        const inputs = Array.from({ length: count }, (_, n) => ({ input: n }));
        const runs = await holdfast.startMany(loops.loop, inputs);
        await Promise.all(runs.map((each) => each.result()));
        expect(loops.isSpent).toBe(false);
      }),
    );

    test(
      "[E59] at concurrency 1 begins the children of its own function that twelve parents poll for",
      onRuntime(backend, async ({ holdfast }) => {
        const ended = new Set<string>();
        let polls = 0;
        const family = workflow("family", async (ctx, isChild: boolean) => {
          if (isChild) return void ended.add(ctx.id);
          const { id } = ctx.spawn(family, true);
          while (!(await ctx.step("poll", () => ended.has(id) || polls > turnsMax))) {
            polls += 1;
            await ctx.sleep(1);
          }
        });
        await holdfast.work([family], { concurrency: 1 });
        const inputs = Array.from({ length: 12 }, () => ({ input: false }));
        const runs = await holdfast.startMany(family, inputs);
        await Promise.all(runs.map((each) => each.result()));
        expect(polls).toBeLessThanOrEqual(turnsMax);
      }),
    );

    test.each([
      ["in memory", { hotRunsMax: 1_000 }],
      ["in the database", { hotRunsMax: 0 }],
      ["in memory and in the database", { hotRunsMax: 2 }],
      ["in the database for places of limited functions", { hotRunsMax: 0, isLimited: true }],
    ] as const)(
      "[E59] begins the n-th due run of a function before 4n of its places came free, and locks none that has no place, while waiting runs are %s",
      (_, waits) =>
        onRuntime(backend, async ({ database, another }) => {
          const rounds = roundsOn(backend, { deep: 40, short: 2, least: 1 });
          for (let round = 0; round < rounds; round += 1) {
            const late = await lateRuns(seed + round, waits, database, another);
            expect(late, `seed ${seed + round}`).toEqual([]);
          }
        })(),
    );

    test.each([1, 2, 3])(
      "[E59] ends runs of a burst long before all of it has begun, on %i places with waiting runs in the database",
      (concurrency) =>
        onRuntime(backend, async ({ database, another }) => {
          const begunAtEnds = await burst({ count: 40, concurrency }, database, another);
          expect(begunAtEnds).toHaveLength(40);
          // By age alone all 40 would have begun before the first ends.
          expect(begunAtEnds[0]).toBeLessThan(20);
          expect(begunAtEnds[9]).toBeLessThan(40);
        })(),
    );
  });
}

/** So many turns are far more than new work ever waits for. */
const turnsMax = 5_000;

/** Loops that work longer than they sleep, until they are stopped or have had too many turns. */
class Loops {
  readonly #begun = new Set<number>();
  readonly #enough: number;
  #isStopped = false;
  turns = 0;
  readonly loop;

  /** They stop as soon as so many of them have begun. */
  constructor(enough = Number.POSITIVE_INFINITY, limits: { readonly concurrency?: number } = {}) {
    this.#enough = enough;
    this.loop = workflow("loop", limits, async (ctx, n: number) => {
      this.#begun.add(n);
      if (this.#begun.size === this.#enough) this.stop();
      while (await ctx.step("work", () => this.#work())) await ctx.sleep(2);
    });
  }

  /** Tells whether to go on. */
  async #work(): Promise<boolean> {
    if (this.#isStopped || this.isSpent) return false;
    this.turns += 1;
    await new Promise((resolve) => setTimeout(resolve, 4));
    return true;
  }

  stop(): void {
    this.#isStopped ||= !this.isSpent;
  }

  /** They stopped without having been told to. */
  get isSpent(): boolean {
    return this.turns > turnsMax;
  }
}
