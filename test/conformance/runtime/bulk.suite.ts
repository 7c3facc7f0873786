import { describe, expect, test } from "vitest";
import { run as statement } from "../../../src/sql/operation.ts";
import { sql } from "../../../src/sql/statement.ts";
import { signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { BulkReport } from "../../../src/runtime/client/runs.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import type { RuntimeFixture } from "./fixture.ts";
import { Tally, until } from "./waiting.ts";

const go = signal("go");
const waits = workflow("waits", (ctx) => ctx.receive(go));
const fails = workflow("fails", () => {
  throw new Error("no");
});

const nothing: BulkReport = {
  matched: 0,
  changed: 0,
  unchanged: 0,
  failed: 0,
  failures: [],
};

/** More than a page of runs that nobody works on, half of them tagged. */
async function started({ holdfast }: RuntimeFixture): Promise<void> {
  await holdfast.startMany(
    waits,
    Array.from({ length: 230 }, (_, index) => ({
      id: `run-${index}`,
      tags: index % 2 === 0 ? ["even"] : [],
    })),
  );
}

export function runtimeBulkSuite(backend: Backend): void {
  describe("a command for many runs", () => {
    test(
      "ends with a code when its caller's onProgress throws, and what was done stays",
      onRuntime(backend, async (fixture) => {
        await started(fixture);
        const { runs } = fixture.holdfast;
        const thrown = new Error("of the caller");
        const onProgress = (): never => {
          throw thrown;
        };
        const error = await rejection(runs.cancelAll({}, { onProgress }));
        expect(error).toMatchObject({
          code: "OPTION_INVALID",
          details: { option: "onProgress", report: { matched: 100, changed: 100 } },
          cause: thrown,
        });
        const { counts } = await runs.count();
        expect(counts.find(({ status }) => status === "cancelled")).toMatchObject({ count: 100 });
        const { maintenance } = fixture.holdfast;
        expect(await rejection(maintenance.check({ onProgress }))).toMatchObject({
          code: "OPTION_INVALID",
          cause: thrown,
        });
      }),
    );

    test(
      "ends runs before those below them by force, so that no code goes on",
      onRuntime(backend, async ({ holdfast }) => {
        const tally = new Tally();
        const parent = workflow("parent", async (ctx) => {
          try {
            await Promise.all([ctx.call(waits), ctx.call(waits)]);
          } catch {
            tally.count("went on");
          }
        });
        await holdfast.work([parent, waits]);
        const parents = 60;
        await holdfast.startMany(
          parent,
          Array.from({ length: parents }, () => ({ input: undefined })),
        );
        const all = { status: "blocked", limit: 500 } as const;
        await until(async () => (await holdfast.runs.list(all)).items.length === 3 * parents);
        const report = await holdfast.runs.cancelAll({}, { force: true });
        expect(report).toMatchObject({ matched: parents, changed: parents });
        const { counts } = await holdfast.runs.count();
        expect(counts).toMatchObject([
          { function: "parent", status: "cancelled", count: parents },
          { function: "waits", status: "cancelled", count: 2 * parents },
        ]);
        expect(tally.all).toEqual({});
      }),
    );

    test(
      "lets runs clean up, and tells of one that cannot be read once",
      onRuntime(backend, async ({ holdfast, database, another }) => {
        const cleaned = signal("cleaned");
        const undo = workflow("undo", (ctx) => ctx.receive(cleaned));
        const parent = workflow("parent", async (ctx) => {
          try {
            await ctx.call(waits);
          } finally {
            await ctx.call(undo);
          }
        });
        await holdfast.start(waits, undefined, { id: "lost" });
        const parkedNowhere = sql`UPDATE holdfast_execution SET lifecycle = 'parked' WHERE id = 'lost'`;
        await database.write("damage", () => statement(parkedNowhere));
        await holdfast.work([parent, waits, undo]);
        const run = await holdfast.start(parent, undefined, { id: "p" });
        const idsOf = async (name: string): Promise<readonly string[]> => {
          const { items } = await holdfast.runs.list({ function: name });
          return items.map(({ id }) => id);
        };
        await until(async () => (await idsOf("waits")).length === 1);
        // Between two pages there is time enough for the run to clean up.
        const slow = overlaid(database, {
          pause: () => until(async () => (await idsOf("undo")).length === 1),
        });
        const { runs } = await another({}, slow);
        expect(await runs.cancelAll({})).toMatchObject({
          matched: 2,
          changed: 1,
          failed: 1,
          failures: [{ id: "lost", code: "CORRUPT_ROW" }],
        });
        const [undoing = ""] = await idsOf("undo");
        await holdfast.get(undo, undoing).signal(cleaned);
        expect(await holdfast.get(undo, undoing).result()).toBe(true);
        expect(await rejection(run.result())).toMatchObject({
          kind: "cancelled",
        });
      }),
    );

    test(
      "counts in a dry run what it then changes, page by page, and nothing when repeated",
      onRuntime(backend, async (fixture) => {
        const { holdfast } = fixture;
        await started(fixture);
        const seen: number[] = [];
        expect(await holdfast.runs.pauseAll({ tag: "even" }, { dryRun: true })).toEqual({
          ...nothing,
          matched: 115,
        });
        expect((await holdfast.runs.list({ status: "paused" })).items).toEqual([]);
        const paused = await holdfast.runs.pauseAll(
          { tag: "even" },
          { onProgress: ({ changed }) => seen.push(changed) },
        );
        expect(paused).toEqual({ ...nothing, matched: 115, changed: 115 });
        expect(seen).toEqual([100, 115]);
        expect(await holdfast.runs.pauseAll({ tag: "even" })).toEqual({
          ...nothing,
          matched: 115,
          unchanged: 115,
        });
        expect(await holdfast.runs.resumeAll({ idPrefix: "run-2" })).toEqual({
          ...nothing,
          // 2, 20 to 28 and 200 to 228: the even ones of them.
          matched: 21,
          changed: 21,
        });
        expect(
          await holdfast.runs.cancelAll({ function: "waits" }, { reason: "spring cleaning" }),
        ).toEqual({ ...nothing, matched: 230, changed: 230 });
        expect(await holdfast.runs.cancelAll({}, { force: true, dryRun: true })).toEqual(nothing);
      }),
    );

    test(
      "tries failed runs again once, and lets parked ones go on",
      onRuntime(backend, async ({ holdfast }) => {
        let isMended = false;
        const strays = workflow("strays", (ctx) => {
          if (isMended) return "mended";
          // Not returned, so the run is parked.
          ctx.continueWith(undefined);
          return "stray";
        });
        await holdfast.work([fails, strays]);
        const failed = await holdfast.start(fails, undefined, { id: "f" });
        await rejection(failed.result());
        expect(await holdfast.runs.retryAll({ function: "fails" })).toEqual({
          ...nothing,
          matched: 1,
          changed: 1,
        });
        await rejection(holdfast.get(fails, "retry:f").result());
        // The copy has failed too; what was copied is not copied again.
        expect(await holdfast.runs.retryAll({ function: "fails" })).toEqual({
          ...nothing,
          matched: 2,
          changed: 1,
          unchanged: 1,
        });
        const parked = await holdfast.start(strays, undefined, { id: "s" });
        await until(async () => (await parked.status()) === "parked");
        isMended = true;
        expect(await holdfast.runs.unparkAll({ idPrefix: "s" })).toEqual({
          ...nothing,
          matched: 1,
          changed: 1,
        });
        expect(await parked.result()).toBe("mended");
      }),
    );

    test(
      "tries runs with long ids again, and copies of copies, under ids that do not grow",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.work([fails]);
        const long = "x".repeat(125);
        for (const id of ["y", long])
          await rejection((await holdfast.start(fails, undefined, { id })).result());
        for (const [matched, made] of [
          [2, "retry:y"],
          [4, "retry:2@y"],
          [6, "retry:3@y"],
        ] as const) {
          expect(await holdfast.runs.retryAll({})).toEqual({
            ...nothing,
            matched,
            changed: 2,
            unchanged: matched - 2,
          });
          await rejection(holdfast.get(fails, made).result());
          await until(async () => {
            const page = await holdfast.runs.list({ status: "failed" });
            return page.items.length === matched + 2;
          });
        }
        const { items } = await holdfast.runs.list();
        const ofLong = items.map(({ id }) => id).filter((id) => /sha/.test(id));
        expect(ofLong.map((id) => id.length)).toEqual([79, 79, 77]);
      }),
    );

    test(
      "erases what has ended, and names what it cannot do or read",
      onRuntime(backend, async (fixture) => {
        const { holdfast, database } = fixture;
        await holdfast.start(waits, undefined, { id: "open", tags: ["ada"] });
        const tags = ["ada"];
        const gone = await holdfast.start(waits, undefined, {
          id: "gone",
          tags,
        });
        const lost = await holdfast.start(waits, undefined, {
          id: "lost",
          tags,
        });
        await gone.cancel();
        await lost.cancel();
        await database.write("damage", () =>
          statement(sql`UPDATE holdfast_execution SET process = 4711 WHERE id = 'lost'`),
        );
        const parkedNowhere = sql`UPDATE holdfast_execution SET lifecycle = 'parked' WHERE id = 'open'`;
        await database.write("damage", () => statement(parkedNowhere));
        expect(await holdfast.runs.unparkAll({ tag: "ada" })).toMatchObject({
          matched: 1,
          failures: [{ id: "open", code: "CORRUPT_ROW" }],
        });
        expect(await holdfast.runs.eraseAll({ tag: "ada" })).toMatchObject({
          matched: 2,
          changed: 1,
          failed: 1,
          failures: [{ id: "lost", code: "PROCESS_SPAWNED" }],
        });
        expect(await rejection(gone.status())).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await rejection(gone.erase({ rowsPerSlice: 0 }))).toMatchObject({
          code: "OPTION_INVALID",
        });
        expect(await rejection(holdfast.get(waits, "open").erase())).toMatchObject({
          code: "EXECUTION_UNFINISHED",
        });
        const again = holdfast.start(waits, undefined, { id: "gone" });
        expect(await rejection(again)).toMatchObject({
          code: "EXECUTION_ERASED",
        });
      }),
    );

    test(
      "is stopped by its signal, and refuses what makes no sense",
      onRuntime(backend, async (fixture) => {
        const { holdfast } = fixture;
        await started(fixture);
        const stop = new AbortController();
        const stopped = holdfast.runs.pauseAll(
          {},
          { signal: stop.signal, onProgress: () => stop.abort() },
        );
        expect(await rejection(stopped)).toMatchObject({
          code: "ABORTED",
          details: { matched: 100, changed: 100 },
        });
        const { runs } = holdfast;
        for (const hostile of [
          () => runs.cancelAll(undefined as never),
          () => runs.cancelAll(null as never),
          () => runs.cancelAll("all" as never),
          () => runs.cancelAll({ limit: 5 } as never),
          () => runs.cancelAll({ status: "gone" as never }),
          () => runs.cancelAll({}, { force: "yes" as never }),
          () => runs.cancelAll({}, { dryRun: 1 as never }),
          () => runs.cancelAll({}, { onProgress: 1 as never }),
          () => runs.cancelAll({}, { signal: {} as never }),
          () => runs.pauseAll({}, { force: true } as never),
          () => runs.resumeAll({ status: "running" } as never),
          () => runs.unparkAll({ status: "running" } as never),
          () => runs.retryAll({ topLevelOnly: false } as never),
          () => runs.eraseAll({ parent: "a" } as never),
          () => runs.eraseAll({ after: "x" } as never),
        ])
          expect(await rejection(hostile())).toMatchObject({
            code: "OPTION_INVALID",
          });
        expect(await runs.cancelAll({}, { dryRun: true })).toEqual({
          ...nothing,
          matched: 230,
        });
      }),
    );
  });
}
