import type { SideEffect } from "./orders.ts";

/** The count of one step of the demo, by its side effects. */
export interface StepCount {
  readonly step: string;
  /** The number of orders for which it ran. */
  readonly orders: number;
  readonly times: number;
  /** The number of repeated runs. */
  readonly again: number;
  /** True if all runs for one order had the same idempotency key. */
  readonly hasSameKeys: boolean;
}

/** Parses the file of side effects. A last line that the kill cut off counts as missing. */
export function sideEffectsIn(text: string): readonly SideEffect[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .flatMap((line) => {
      try {
        return [JSON.parse(line) as SideEffect];
      } catch {
        return [];
      }
    });
}

export function countsOf(
  effects: readonly SideEffect[],
  steps: readonly string[],
): readonly StepCount[] {
  return steps.map((step) => {
    const own = effects.filter((effect) => effect.step === step);
    const orders = new Set(own.map(({ order }) => order)).size;
    const keys = new Set(own.map(({ order, idempotencyKey }) => `${order} ${idempotencyKey}`)).size;
    return {
      step,
      orders,
      times: own.length,
      again: own.length - orders,
      hasSameKeys: keys === orders,
    };
  });
}

/** Formats the counts as a table. */
export function countLines(counts: readonly StepCount[]): readonly string[] {
  const widest = Math.max(4, ...counts.map(({ step }) => step.length));
  const line = (step: string, orders: string, times: string, remark: string): string =>
    `  ${step.padEnd(widest)}  ${orders.padStart(6)}  ${times.padStart(9)}  ${remark}`.trimEnd();
  return [
    line("step", "orders", "times run", ""),
    ...counts.map((count) =>
      line(count.step, String(count.orders), String(count.times), remarkOn(count)),
    ),
  ];
}

function remarkOn({ orders, again, hasSameKeys }: StepCount): string {
  if (orders === 0) return "never";
  if (again === 0) return "once for each order";
  const keys = hasSameKeys ? "with the same idempotency key" : "WITH ANOTHER IDEMPOTENCY KEY";
  return `${again} interrupted by the kill and run again, ${keys}`;
}

/**
 * True if each step ran for each order, none more than twice, and none again
 * after its record. A step that ended just before the kill may have died before
 * its record. So the messages of the workers do not decide: a second run must
 * precede the record.
 */
export function isProven(
  effects: readonly SideEffect[],
  expected: {
    readonly orders: number;
    readonly steps: readonly string[];
    /** The instant at which a step was recorded, by `stepOfOrder`. */
    readonly recordedAt: ReadonlyMap<string, number>;
  },
): boolean {
  const { orders, steps, recordedAt } = expected;
  const times = new Map<string, SideEffect[]>();
  for (const effect of effects) {
    const name = stepOfOrder(effect);
    times.set(name, [...(times.get(name) ?? []), effect]);
  }
  return (
    times.size === orders * steps.length &&
    countsOf(effects, steps).every(({ hasSameKeys }) => hasSameKeys) &&
    [...times].every(
      ([name, [, again, third]]) =>
        third === undefined && (again === undefined || (recordedAt.get(name) ?? 0) >= again.at),
    )
  );
}

export function stepOfOrder({ order, step }: Pick<SideEffect, "order" | "step">): string {
  return `${step} of ${order}`;
}
