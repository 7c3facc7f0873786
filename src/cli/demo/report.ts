import type { SideEffect } from "./orders.ts";

/** How often a step of the demo ran, counted by what it left outside. */
export interface StepCount {
  readonly step: string;
  /** Orders for which it ran at all. */
  readonly orders: number;
  readonly times: number;
  /** How often it ran for an order that it had run for before. */
  readonly again: number;
  /** True when each time for one order came with the same idempotency key. */
  readonly hasSameKeys: boolean;
}

/** The lines of the file of side effects; a last one that was cut by the kill was not written. */
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

/** A table of them, in words. */
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
 * True when each step ran for each order, none more than twice, and none again
 * that had been recorded. A step that ended just before the kill may have been
 * killed before its record, so what the workers say of themselves does not
 * decide it: the record does, which is later than a second time.
 */
export function isProven(
  effects: readonly SideEffect[],
  expected: {
    readonly orders: number;
    readonly steps: readonly string[];
    /** When a step of an order was recorded, by `stepOfOrder`. */
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
