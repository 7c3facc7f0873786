import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import { integer } from "../../src/sql/dialect.ts";
import { operation, run } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import { appendSteps, lockedTargets, throughStore } from "../executions/load.ts";
import { appendLoad, prepareHeads } from "../kernel/load.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { shapes, stepping, stepsPerSecond, type Shape } from "./load.ts";

const rounds = size(7, 1);
/** Not counted: until then V8 compiles more than it runs, of ours and of what it is held against. */
const firstRounds = size(5, 0);

/** One small row: what anything durable costs at the least. */
const insert = operation("insert", {
  key: (input: { readonly caller: number }) => String(input.caller),
  isolation: "readCommitted",
  *one({ caller }) {
    yield* run(sql`INSERT INTO bench_row (caller, body) VALUES (${caller}, 'step')`);
  },
});

/**
 * Workflows of trivial steps, results awaited, full durability; against as
 * many callers of a kernel operation that inserts a row, of the one that
 * `kernel.concurrent` measures (it checks a version, moves it on and inserts a
 * row), and of the store's append, which is what a step comes to.
 */
export function steps(): Promise<object> {
  return inScratch(async (folder) => {
    const figures: Record<string, Awaited<ReturnType<typeof measured>>> = {};
    for (const shape of shapes)
      figures[`${shape.workflows}x${shape.steps}`] = await measured(
        join(folder, `${shape.workflows}x${shape.steps}.db`),
        shape,
      );
    const [first] = Object.values(figures);
    return {
      value: first?.stepsPerSec,
      unit: "steps/s of the first shape",
      ratio: first?.ratio,
      rounds,
      shapes: figures,
      note: "ratio is to as many callers of a kernel operation that inserts one small row, ratioToKernel to as many of the operation of kernel.concurrent, ratioToAppend to as many of executions.append",
    };
  });
}

interface Round {
  readonly ours: number;
  readonly cpuMicros: number;
  readonly insert: number;
  readonly kernel: number;
  readonly append: number;
}

/** In one open database, as a worker has it: what opening takes is `kernel.open`. */
async function measured(
  file: string,
  shape: Shape,
): Promise<{
  readonly stepsPerSec: number;
  readonly ceiling: number;
  readonly ratio: number;
  readonly ratioToKernel: number;
  readonly ratioToAppend: number;
  readonly cpuMicrosPerStep: number;
}> {
  const holdfast = await openHoldfast(file);
  const { database, executions } = holdfast;
  await database.setUp("bench", [
    {
      name: "0001",
      *up() {
        yield* run(sql`CREATE TABLE bench_row (caller ${integer}, body TEXT)`);
      },
    },
  ]);
  await holdfast.work([stepping], { concurrency: 1_000 });
  const heads = await prepareHeads(database, shape.workflows);
  const targets = await lockedTargets(executions, shape.workflows);
  const found: Round[] = [];
  for (let round = 0; round < firstRounds + rounds; round += 1) {
    const cpu = cpuMeter();
    const ours = await stepsPerSecond(holdfast, shape);
    const cpuMicros = cpu() / (shape.workflows * shape.steps);
    const figures = {
      ours,
      cpuMicros,
      insert: await throughKernel(holdfast, shape),
      kernel: await appendLoad(database, heads, shape.steps, round * shape.steps),
      append: await appendSteps(
        throughStore(executions),
        targets.map((target) => [target]),
        shape.steps,
      ),
    };
    if (round >= firstRounds) found.push(figures);
  }
  await holdfast.close();
  const middle = (of: (round: Round) => number): number => median(found.map(of));
  return {
    stepsPerSec: Math.round(middle(({ ours }) => ours)),
    ceiling: Math.round(middle((round) => round.insert)),
    ratio: rounded(middle((round) => round.ours / round.insert)),
    ratioToKernel: rounded(middle(({ ours, kernel }) => ours / kernel)),
    ratioToAppend: rounded(middle(({ ours, append }) => ours / append)),
    cpuMicrosPerStep: rounded(middle(({ cpuMicros }) => cpuMicros)),
  };
}

async function throughKernel(
  { database }: Holdfast,
  { workflows, steps: count }: Shape,
): Promise<number> {
  const start = performance.now();
  await Promise.all(
    Array.from({ length: workflows }, async (_, caller) => {
      for (let step = 0; step < count; step += 1) await database.write(insert, { caller });
    }),
  );
  return (workflows * count * 1_000) / (performance.now() - start);
}
