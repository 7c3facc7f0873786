import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../../src/model/errors.ts";
import { workflow } from "../../../src/runtime/definition/definitions.ts";
import { assertedRun, type AssertedRun } from "../../../src/sql/asserted-run.ts";
import type { Tx } from "../../../src/sql/operation.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import type { Database } from "../../../src/sql/database.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";

/** A part of a store that asks on whose behalf it runs. */
function* asking(): Tx<AssertedRun | null> {
  return (yield* assertedRun()) ?? null;
}

export function assertedRunSuite(backend: Backend): void {
  describe("the run of a transaction", () => {
    test(
      "[RN2] is known inside its transaction, and in no other",
      onRuntime(backend, async ({ holdfast, database }) => {
        const asker = workflow("asker", async (ctx) => {
          await ctx.step("first", () => 1);
          return ctx.transaction("ask", asking);
        });
        await holdfast.work([asker]);
        for (const started of [await holdfast.start(asker), await holdfast.start(asker)]) {
          const asserted = await started.result();
          const { items } = await holdfast.executions.events(started.id, { limit: 10 });
          const locked = items.find(({ event }) => event.kind === "locked")?.event;
          const { executor, run } = asserted as AssertedRun;
          expect(asserted).toMatchObject({ id: started.id });
          expect(locked).toMatchObject({ holder: { executor, run } });
        }
        expect(await database.write("ask", asking)).toBeNull();
        expect(await database.write("ask", asking, { isolation: "readCommitted" })).toBeNull();
        expect(await database.read("ask", asking)).toBeNull();
      }),
    );

    test(
      "[RN2] is noted again when its body runs again, and not before its lock was compared",
      onRuntime(backend, async ({ database, another }) => {
        const before: unknown[] = [];
        const behind: unknown[] = [];
        // The database runs the body twice: the first run asks before and behind it, and fails.
        const write = async (...call: unknown[]): Promise<unknown> => {
          const [name, body, ...rest] = call as [unknown, () => Tx<unknown>, never];
          if (name !== "transaction ask")
            return database.write(...(call as Parameters<Database["write"]>));
          const once = (fails: boolean): Promise<unknown> =>
            database.write(
              "transaction ask",
              function* () {
                before.push(yield* assertedRun());
                const value = yield* body();
                behind.push(yield* assertedRun());
                if (fails) throw new HoldfastError("TRANSACTION_CONFLICT", "again", {});
                return value;
              },
              ...rest,
            );
          await once(true).catch(() => undefined);
          return once(false);
        };
        const meddled = await another({}, overlaid(database, { write } as Partial<Database>));
        const asker = workflow("asker", (ctx) => ctx.transaction("ask", asking));
        await meddled.work([asker]);
        const started = await meddled.start(asker);
        const inside = await started.result();
        expect(inside).toMatchObject({ id: started.id });
        expect(behind.length).toBeGreaterThan(1);
        expect(new Set(before)).toEqual(new Set([undefined]));
        for (const asserted of behind) expect(asserted).toEqual(inside);
      }),
    );
  });
}
