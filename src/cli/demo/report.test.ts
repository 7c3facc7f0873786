import { expect, test } from "vitest";
import type { SideEffect } from "./orders.ts";
import { isProven, stepOfOrder } from "./report.ts";

const steps = ["charge card", "print label"] as const;
const once: readonly SideEffect[] = ["order-1", "order-2"].flatMap((order) =>
  steps.map((step) => ({
    order,
    step,
    process: 1,
    at: 100,
    idempotencyKey: `${order} ${step}`,
  })),
);
const recordedAt = new Map(once.map((effect) => [stepOfOrder(effect), 200] as const));
const isHeld = (effects: readonly SideEffect[]): boolean =>
  isProven(effects, { orders: 2, steps, recordedAt });
const [first] = once as readonly [SideEffect];
const again = { ...first, process: 2, at: 150 };

test("a step that was begun and not recorded when its worker was killed may run again", () => {
  expect(isHeld(once)).toBe(true);
  expect(isHeld([...once, again])).toBe(true);
});

test.each([
  ["ran again after its record", [...once, { ...again, at: 300 }]],
  ["ran three times", [...once, again, again]],
  ["ran again with another key", [...once, { ...again, idempotencyKey: "x" }]],
  ["never ran", once.slice(1)],
])("nothing is proven by a step that %s", (_, effects) => {
  expect(isHeld(effects)).toBe(false);
});
