import { describe, expect, test } from "vitest";
import { workflow } from "../../../src/index.ts";
import { rows } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import type { Database } from "../../../src/sql/database.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { allOf } from "./outputs.ts";
import { gate, until } from "./waiting.ts";

/** The fate of a write of live output. */
type Fate = "written" | "refused" | "unknown";

/** A database whose writes of live output have the fate that a test names, one after the other. */
function withFates(database: Database, next: () => Fate): Database {
  return overlaid(database, {
    write: async (...call: Parameters<Database["write"]>) => {
      const isOutput = (call[0] as unknown as { name: string }).name === "writeStream";
      const fate = isOutput ? next() : "written";
      if (fate === "refused") throw new Error("the disk is full");
      const result = await database.write(...call);
      if (fate === "unknown") throw new Error("the connection broke");
      return result;
    },
  } as Partial<Database>);
}

/** Live output of one step beside that of another, and output whose writes fail. */
export function failingOutputSuite(backend: Backend): void {
  describe("live output that delays or fails", () => {
    siblingTests(backend);
    failureTests(backend);
  });
}

/** A step that ends, beside one that shows values for as long as the run lasts. */
const race = workflow("race", async (ctx) =>
  Promise.race([
    ctx.step("tail", async ({ stream, abortSignal }) => {
      while (!abortSignal.aborted) {
        stream("line");
        await new Promise((resolve) => setImmediate(resolve));
      }
    }),
    ctx.step("work", async ({ stream }) => {
      for (let n = 1; n <= 3; n += 1) {
        stream(n);
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      return "worked";
    }),
  ]),
);

function siblingTests(backend: Backend): void {
  test(
    "[RN6] of a step that never stops delays the record of no other step, also when it cannot be written",
    onRuntime(backend, async ({ holdfast, another, database }) => {
      await holdfast.work([race]);
      const run = await holdfast.start(race);
      expect(await run.result()).toBe("worked");
      const values = (await allOf(run.stream())).filter((value) => value !== "line");
      expect(values).toEqual(["1", "2", "3", "end"]);
      await holdfast.close();
      const failing = await another(
        {},
        withFates(database, () => "refused"),
      );
      await failing.work([race]);
      expect(await (await failing.start(race)).result()).toBe("worked");
    }),
  );
}

function failureTests(backend: Backend): void {
  test(
    "[RN6] whose last write fails is a gap before the end, and is folded all the same",
    onRuntime(backend, async ({ another, database }) => {
      const fates: Fate[] = [];
      const failing = withFates(database, () => fates.shift() ?? "written");
      const next = gate();
      const halves = workflow("halves", async (ctx) =>
        ctx.step("halves", async ({ stream }) => {
          stream("a");
          await next.opened;
          stream("b");
        }),
      );
      const holdfast = await another({}, failing);
      await holdfast.work([halves]);
      const run = await holdfast.start(halves);
      const reader = run.stream()[Symbol.asyncIterator]();
      expect((await reader.next()).value).toMatchObject({ value: "a" });
      fates.push("refused", "written", "refused");
      next.open();
      await run.result();
      expect(await allOf({ [Symbol.asyncIterator]: () => reader })).toEqual(["gap", "end"]);
      expect(await allOf(run.stream())).toEqual(["a", "gap", "end"]);
      await until(async () => (await statesOf(database)).every((state) => state === "folded"));
      expect(await statesOf(database)).toEqual(["folded"]);
    }),
  );

  test(
    "[RN6] whose first write has an unknown outcome supersedes nothing of its own attempt",
    onRuntime(backend, async ({ another, database }) => {
      const fates: Fate[] = ["unknown"];
      const failing = withFates(database, () => fates.shift() ?? "written");
      const next = gate();
      const halves = workflow("halves", async (ctx) => {
        const both = ctx.step("halves", async ({ stream }) => {
          stream("a");
          await next.opened;
          stream("b");
        });
        // Adds to the log of the run in between.
        await until(() => fates.length === 0);
        await ctx.step("other", () => undefined);
        next.open();
        await both;
      });
      const holdfast = await another({}, failing);
      await holdfast.work([halves]);
      const run = await holdfast.start(halves);
      await run.result();
      expect(await allOf(run.stream())).toEqual(["a", "gap", "b", "end"]);
      expect(await statesOf(database)).not.toContain("superseded");
    }),
  );
}

function statesOf(database: Database): Promise<readonly string[]> {
  return database.read("states", function* () {
    const found = yield* rows<{ readonly state: string }>(
      sql`SELECT state FROM holdfast_stream_part ORDER BY position`,
    );
    return found.map(({ state }) => state);
  });
}
