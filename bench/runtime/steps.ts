import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import type { Holdfast } from "../../src/runtime/holdfast.ts";
import { workflow } from "../../src/runtime/definitions.ts";
import { integer } from "../../src/sql/dialect.ts";
import { operation, run } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

/** Workflows times sequential steps. */
interface Shape {
  readonly workflows: number;
  readonly steps: number;
}

const shapes: readonly Shape[] = [
  { workflows: size(200, 3), steps: size(20, 3) },
  { workflows: size(20, 2), steps: size(50, 3) },
  { workflows: 1, steps: size(300, 5) },
];
const rounds = size(7, 1);

const stepping = workflow("stepping", async (ctx, count: number) => {
  for (let step = 0; step < count; step += 1)
    await ctx.step("step", () => step);
  return count;
});

/** One small row: what a step costs at the least. */
const insert = operation("insert", {
  key: (input: { readonly caller: number }) => String(input.caller),
  isolation: "readCommitted",
  *one({ caller }) {
    yield* run(
      sql`INSERT INTO bench_row (caller, body) VALUES (${caller}, 'step')`,
    );
  },
});

/** Workflows of trivial steps, results awaited, full durability; against as many callers of a bare kernel operation. */
export function steps(): Promise<object> {
  return inScratch((folder) =>
    measured((round) => openHoldfast(join(folder, `steps-${round}.db`))),
  );
}

async function measured(
  open: (round: number) => Promise<Holdfast>,
): Promise<object> {
  const figures: Record<string, object> = {};
  for (const shape of shapes) {
    const values: number[] = [];
    const ceilings: number[] = [];
    const cpuMicros: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const holdfast = await open(round);
      await holdfast.database.setUp("bench", [
        {
          name: "0001",
          *up() {
            yield* run(
              sql`CREATE TABLE bench_row (caller ${integer}, body TEXT)`,
            );
          },
        },
      ]);
      await holdfast.work([stepping], { concurrency: 1_000 });
      await throughRuntime(holdfast, { workflows: 20, steps: 5 });
      const cpu = cpuMeter();
      values.push(await throughRuntime(holdfast, shape));
      cpuMicros.push(cpu() / (shape.workflows * shape.steps));
      ceilings.push(await throughKernel(holdfast, shape));
      await holdfast.close();
    }
    figures[`${shape.workflows}x${shape.steps}`] = {
      stepsPerSec: Math.round(median(values)),
      ceiling: Math.round(median(ceilings)),
      ratio: rounded(
        median(values.map((value, round) => value / (ceilings[round] ?? 1))),
      ),
      cpuMicrosPerStep: rounded(median(cpuMicros)),
    };
  }
  const [first] = Object.values(figures) as {
    stepsPerSec: number;
    ratio: number;
  }[];
  return {
    value: first?.stepsPerSec,
    unit: "steps/s of the first shape",
    ratio: first?.ratio,
    rounds,
    shapes: figures,
    note: "ceiling is as many callers of one kernel operation that inserts a small row",
  };
}

async function throughRuntime(
  holdfast: Holdfast,
  { workflows, steps: count }: Shape,
): Promise<number> {
  const start = performance.now();
  await Promise.all(
    Array.from({ length: workflows }, async () => {
      const begun = await holdfast.start(stepping, count);
      await begun.result();
    }),
  );
  return (workflows * count * 1_000) / (performance.now() - start);
}

async function throughKernel(
  { database }: Holdfast,
  { workflows, steps: count }: Shape,
): Promise<number> {
  const start = performance.now();
  await Promise.all(
    Array.from({ length: workflows }, async (_, caller) => {
      for (let step = 0; step < count; step += 1)
        await database.write(insert, { caller });
    }),
  );
  return (workflows * count * 1_000) / (performance.now() - start);
}
