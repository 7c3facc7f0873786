import { describe, expect, test } from "vitest";
import { isHoldfastError } from "../../../src/model/errors.ts";
import { sql } from "../../../src/sql/statement.ts";
import { activity, schedule, workflow } from "../../../src/index.ts";
import { replayHistory } from "../../../src/testing.ts";
import type { Backend } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";
import { onRuntime } from "./fixture.ts";
import { until } from "./waiting.ts";

const metadata = { traceparent: "00-ab-cd-01", tenant: "acme", user: "" };
const nap = workflow("nap", async (ctx) => ctx.sleep("1 day"));
const told = activity("told", async (ctx) => ctx.metadata);
const grandchild = workflow("grandchild", async (ctx) => [ctx.metadata, await ctx.call(told)]);

/** Short texts that are given at a start reach everything below it. */
export function runtimeMetadataSuite(backend: Backend): void {
  describe("metadata of a start", () => {
    test(
      "reaches the run, its children and theirs, its questions and what it starts",
      onRuntime(backend, async ({ holdfast }) => {
        const parent = workflow("parent", async (ctx) => {
          ctx.external();
          await ctx.start(nap, undefined, { id: "beside" });
          await ctx.start(nap, undefined, { id: "own", metadata: { tenant: "other" } });
          const set = ctx.joinSet("many");
          set.spawn(told);
          return [ctx.metadata, await ctx.call(grandchild), await set.next()];
        });
        await holdfast.work([parent, grandchild, told]);
        const run = await holdfast.start(parent, undefined, { id: "p", metadata });
        expect(await run.result()).toEqual([metadata, [metadata, metadata], metadata]);
        const { items } = await holdfast.executions.tree("p");
        // The run, its question, two calls and a member of the set.
        expect(items).toHaveLength(5);
        for (const { id } of items)
          expect((await holdfast.executions.created(id)).metadata).toEqual(metadata);
        expect((await holdfast.executions.created("beside")).metadata).toEqual(metadata);
        expect((await holdfast.executions.created("own")).metadata).toEqual({ tenant: "other" });
      }),
    );

    test(
      "stays with retries, copies, new passes and their children, and is that of the first start",
      onRuntime(backend, async ({ holdfast }) => {
        const failing = workflow("failing", async (ctx) => {
          await ctx.call(told);
          throw new Error(ctx.metadata["tenant"]);
        });
        const passing = workflow("passing", async (ctx, pass: number): Promise<unknown> => {
          if (pass < 2) return ctx.continueWith(pass + 1);
          return [ctx.metadata, await ctx.call(told)];
        });
        await holdfast.work([failing, passing, told]);
        const failed = await holdfast.start(failing, undefined, { id: "f", metadata });
        await expect(failed.result()).rejects.toMatchObject({ cause: { message: "acme" } });
        const retried = await failed.retry({ id: "again" });
        await expect(retried.result()).rejects.toMatchObject({ cause: { message: "acme" } });
        const copy = await failed.fork(0, { id: "copy" });
        await expect(copy.result()).rejects.toMatchObject({ cause: { message: "acme" } });
        for (const id of ["again", "copy"])
          expect((await holdfast.executions.created(id)).metadata).toEqual(metadata);
        const passed = await holdfast.start(passing, 0, { id: "passes", metadata });
        expect(await passed.result()).toEqual([metadata, metadata]);
        // Another start under the id finds the run, whatever metadata it has.
        await holdfast.start(passing, 0, { id: "passes", metadata: { tenant: "later" } });
        expect((await holdfast.executions.created("passes")).metadata).toEqual(metadata);
      }),
    );

    test(
      "cannot be changed by code, nor by its giver once it was given; without any there is none",
      onRuntime(backend, async ({ holdfast }) => {
        const changing = workflow("changing", async (ctx) => {
          const attempt = (): void => void ((ctx.metadata as { a?: string }).a = "changed");
          expect(attempt).toThrow(TypeError);
          return ctx.metadata;
        });
        const idle = activity("idle", async (ctx) => Object.isFrozen(ctx.metadata));
        const given = { a: "given" };
        const many = [{ metadata: given }, {}];
        const started = holdfast.startMany(changing, many);
        const runs = await started;
        given.a = "later";
        await holdfast.work([changing, idle]);
        expect(await runs[0]?.result()).toEqual({ a: "given" });
        expect(await runs[1]?.result()).toEqual({});
        expect(await (await holdfast.start(idle)).result()).toBe(true);
      }),
    );

    test(
      "has bounds, which a start, many starts and ctx.start hold to",
      onRuntime(backend, async ({ holdfast }) => {
        const most = Object.fromEntries(
          Array.from({ length: 16 }, (_, n) => [`${n}`.padEnd(64, "x"), "v".repeat(512)]),
        );
        const invalid: readonly (readonly [unknown, string])[] = [
          [{ ...most, another: "" }, "metadata"],
          [{ ["x".repeat(65)]: "" }, "metadata"],
          [{ "": "" }, "metadata"],
          [{ tenant: "v".repeat(513) }, "metadata.tenant"],
          [{ tenant: "a\0" }, "metadata.tenant"],
          [{ tenant: "\ud800" }, "metadata.tenant"],
          [{ tenant: 7 }, "metadata.tenant"],
          [{ tenant: undefined }, "metadata.tenant"],
          [{ tenant: { name: "acme" } }, "metadata.tenant"],
        ];
        const refusals = async (
          start: (wrong: never) => Promise<unknown>,
        ): Promise<readonly unknown[]> => {
          const paths: unknown[] = [];
          for (const [wrong] of invalid)
            await start(wrong as never).catch((error: unknown) => {
              if (isHoldfastError(error) && error.code === "OPTION_INVALID")
                paths.push(error.details["path"]);
            });
          return paths;
        };
        const starter = workflow("starter", async (ctx) =>
          refusals((wrong) => ctx.start(nap, undefined, { metadata: wrong })),
        );
        const expected = invalid.map(([, path]) => path);
        expect(
          await refusals((wrong) => holdfast.start(nap, undefined, { metadata: wrong })),
        ).toEqual(expected);
        expect(await refusals((wrong) => holdfast.startMany(nap, [{ metadata: wrong }]))).toEqual(
          expected,
        );
        expect((await holdfast.runs.list()).items).toEqual([]);
        await holdfast.work([starter]);
        const run = await holdfast.start(starter, undefined, { metadata: most });
        expect(await run.result()).toEqual(expected);
        expect((await holdfast.runs.list()).items).toHaveLength(1);
        expect((await holdfast.executions.created(run.id)).metadata).toEqual(most);
      }),
    );

    test(
      "is in the history of a run, whose replay computes from it",
      onRuntime(backend, async ({ holdfast }) => {
        const named = workflow("named", async (ctx) => {
          await ctx.step(`for ${ctx.metadata["tenant"] ?? "nobody"}`, () => 1);
        });
        await holdfast.work([named]);
        const run = await holdfast.start(named, undefined, { metadata });
        await run.result();
        const history = await run.history();
        expect(history.metadata).toEqual(metadata);
        expect(await replayHistory(named, history)).toMatchObject({ kind: "ends" });
        const { metadata: _, ...without } = history;
        expect(await replayHistory(named, without)).toMatchObject({ kind: "differs" });
        for (const wrong of [null, [], "a", { tenant: 7 }, { tenant: "\0" }])
          await expect(
            replayHistory(named, { ...history, metadata: wrong as never }),
          ).rejects.toMatchObject({ code: "HISTORY_INVALID", details: { path: "metadata" } });
      }),
    );

    test(
      "that is damaged is found, and no code runs with it",
      onRuntime(backend, async ({ holdfast, database, said }) => {
        await holdfast.start(told, undefined, { id: "r", metadata: { a: "b" } });
        await database.write("edit", () =>
          pastChecks(
            database,
            sql`UPDATE holdfast_execution_event SET body = REPLACE(body, '"b"', '5')`,
          ),
        );
        expect((await holdfast.maintenance.check()).damaged).toMatchObject([
          { reason: "Its metadata is damaged." },
        ]);
        await holdfast.work([told]);
        await until(() =>
          said.some(({ message }) => message.includes("is unreadable and is skipped")),
        );
        await expect(holdfast.executions.load("r")).rejects.toMatchObject({ code: "CORRUPT_ROW" });
      }),
    );

    test(
      "of a schedule's run names the schedule and the instant, and is no option of it",
      onRuntime(backend, async ({ holdfast }) => {
        expect(() => schedule("s", { cron: "0 2 * * *", metadata } as never, told)).toThrow(
          expect.objectContaining({ code: "OPTION_INVALID" }),
        );
        await holdfast.work([told, schedule("nightly", { cron: "0 2 * * *" }, told)]);
        const run = await holdfast.schedules.fire("nightly", { key: "k" });
        expect(await run.result()).toMatchObject({
          schedule: "nightly",
          instant: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        });
      }),
    );
  });
}
