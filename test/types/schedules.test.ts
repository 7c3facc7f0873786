import { expectTypeOf, test } from "vitest";
import {
  schedule,
  workflow,
  type Holdfast,
  type Run,
  type RunSchedule,
  type RunSchedules,
} from "../../src/index.ts";
import type { Schema } from "../../src/runtime/definition/schema.ts";

interface Order {
  readonly id: string;
}

declare const order: Order;

const numeric: Schema<string, number> = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value) => ({ value: Number(value) }),
  },
};

const fulfil = workflow("fulfil", async (_, given: Order) => given.id);
const plain = workflow("plain", async () => "done");
const optional = workflow("optional", async (_, given?: number) => given);
const parsed = workflow("parsed", { input: numeric }, async (_, given) => given + 1);

test("a schedule takes the input of its function", () => {
  const calls = (holdfast: Holdfast) => {
    const daily = { cron: "0 9 * * *" };
    return holdfast.work([
      fulfil,
      schedule("a", daily, fulfil, order),
      schedule("b", { ...daily, timeZone: "Europe/Berlin" }, plain),
      schedule("c", { every: "1 hour", overlap: "queue" }, optional),
      schedule("d", { every: 5_000, catchUp: "all" }, optional, 5),
      schedule("e", daily, parsed, "5"),
      // @ts-expect-error: the input is missing.
      schedule("f", daily, fulfil),
      // @ts-expect-error: it takes none.
      schedule("g", daily, plain, 5),
      // @ts-expect-error: the schema takes texts.
      schedule("h", daily, parsed, 5),
      schedule("i", daily, fulfil, {
        ...order,
        // @ts-expect-error: there is no such property.
        odd: 1,
      }),
      // @ts-expect-error: it has neither cron nor every.
      schedule("j", {}, plain),
      // @ts-expect-error: there is no such overlap.
      schedule("k", { ...daily, overlap: "replace" }, plain),
      // @ts-expect-error: a function is made by `workflow` or `activity`.
      schedule("l", daily, () => 1),
    ]);
  };
  expectTypeOf(calls).returns.resolves.toBeVoid();
  expectTypeOf<Holdfast["schedules"]>().toEqualTypeOf<RunSchedules>();
  expectTypeOf<RunSchedule["next"]>().toEqualTypeOf<readonly number[]>();
  expectTypeOf<Awaited<ReturnType<RunSchedules["fire"]>>>().toEqualTypeOf<Run<unknown>>();
});
