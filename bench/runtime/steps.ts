import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import type { Holdfast } from "../../src/runtime/holdfast.ts";
import { integer } from "../../src/sql/dialect.ts";
import { operation, run } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import {
  appendSteps,
  lockedTargets,
  throughStore,
} from "../executions/load.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { shapes, stepping, stepsPerSecond, type Shape } from "./load.ts";

const rounds = size(7, 1);

/** One small row: what anything durable costs at the least. */
const insert = operation("insert", {
  key: (input: { readonly caller: number }) => String(input.caller),
  isolation: "readCommitted",
  *one({ caller }) {
    yield* run(
      sql`INSERT INTO bench_row (caller, body) VALUES (${caller}, 'step')`,
    );
  },
});

/**
 * Workflows of trivial steps, results awaited, full durability; against as
 * many callers of a kernel operation that inserts a row, and of the store's
 * append, which is what a step comes to.
 */
export function steps(): Promise<object> {
  return inScratch(async (folder) => {
    const figures: Record<string, Awaited<ReturnType<typeof measured>>> = {};
    for (const shape of shapes)
      figures[`${shape.workflows}x${shape.steps}`] = await measured(
        (round) => openHoldfast(join(folder, `${shape.steps}-${round}.db`)),
        shape,
      );
    const [first] = Object.values(figures);
    return {
      value: first?.stepsPerSec,
      unit: "steps/s of the first shape",
      ratio: first?.ratio,
      rounds,
      shapes: figures,
      note: "ratio is to as many callers of a kernel operation that inserts one small row, ratioToAppend to as many of executions.append",
    };
  });
}

interface Round {
  readonly ours: number;
  readonly cpuMicros: number;
  readonly kernel: number;
  readonly append: number;
}

async function measured(
  open: (round: number) => Promise<Holdfast>,
  shape: Shape,
): Promise<{
  readonly stepsPerSec: number;
  readonly ceiling: number;
  readonly ratio: number;
  readonly ratioToAppend: number;
  readonly cpuMicrosPerStep: number;
}> {
  const found: Round[] = [];
  for (let round = 0; round < rounds; round += 1)
    found.push(await oneRound(await open(round), shape));
  const middle = (of: (round: Round) => number): number =>
    median(found.map(of));
  return {
    stepsPerSec: Math.round(middle(({ ours }) => ours)),
    ceiling: Math.round(middle(({ kernel }) => kernel)),
    ratio: rounded(middle(({ ours, kernel }) => ours / kernel)),
    ratioToAppend: rounded(middle(({ ours, append }) => ours / append)),
    cpuMicrosPerStep: rounded(middle(({ cpuMicros }) => cpuMicros)),
  };
}

async function oneRound(holdfast: Holdfast, shape: Shape): Promise<Round> {
  await holdfast.database.setUp("bench", [
    {
      name: "0001",
      *up() {
        yield* run(sql`CREATE TABLE bench_row (caller ${integer}, body TEXT)`);
      },
    },
  ]);
  await holdfast.work([stepping], { concurrency: 1_000 });
  await stepsPerSecond(holdfast, { workflows: 20, steps: 5 });
  const cpu = cpuMeter();
  const ours = await stepsPerSecond(holdfast, shape);
  const cpuMicros = cpu() / (shape.workflows * shape.steps);
  const kernel = await throughKernel(holdfast, shape);
  const { executions } = holdfast;
  const targets = await lockedTargets(executions, shape.workflows);
  const append = await appendSteps(
    throughStore(executions),
    targets.map((target) => [target]),
    shape.steps,
  );
  await holdfast.close();
  return { ours, cpuMicros, kernel, append };
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
