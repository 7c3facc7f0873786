import { signal, workflow } from "../../src/runtime/definition/definitions.ts";
import type { Holdfast } from "../../src/runtime/client/holdfast.ts";
import { rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

/** Workflows times sequential steps. */
export interface Shape {
  readonly workflows: number;
  readonly steps: number;
}

export const shapes: readonly Shape[] = [
  { workflows: size(200, 3), steps: size(20, 3) },
  { workflows: size(20, 2), steps: size(50, 3) },
  { workflows: 1, steps: size(300, 5) },
];

/** As many trivial steps as it is told, one after the other. */
export const stepping = workflow("stepping", async (ctx, count: number) => {
  for (let step = 0; step < count; step += 1) await ctx.step("step", () => step);
  return count;
});

export const go = signal<number>("go");

/** Starts the workflows of a shape, awaits their results, and answers with steps per second. */
export async function stepsPerSecond(
  holdfast: Holdfast,
  { workflows, steps }: Shape,
): Promise<number> {
  const start = performance.now();
  await Promise.all(
    Array.from({ length: workflows }, async () => {
      const begun = await holdfast.start(stepping, steps);
      await begun.result();
    }),
  );
  return (workflows * steps * 1_000) / (performance.now() - start);
}

/** Of the system's clock, with fractions: comparable between processes. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return rounded(sorted[Math.floor(sorted.length * share)] ?? Number.NaN);
}

/** The middle and the worst but one of a hundred. */
export function spread(values: readonly number[]): {
  readonly p50: number;
  readonly p99: number;
} {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
}
