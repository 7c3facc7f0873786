import { describe, expect, test } from "vitest";
import { activity, signal, workflow, type Run } from "../../../src/index.ts";
import type { LiveOutput } from "../../../src/runtime/stream/live-output.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import { row, rows } from "../../../src/sql/operation.ts";
import { textsOf } from "../../../src/sql/dialect.ts";
import { sql } from "../../../src/sql/statement.ts";
import { StreamReads } from "../../../src/runtime/stream/stream-reads.ts";
import { storeContext } from "../../../src/stores/context.ts";
import { sweepStreams } from "../../../src/runtime/worker/stream-retention.ts";
import { runtimeContext } from "../../../src/open/open-holdfast.ts";
import type { Database } from "../../../src/sql/database.ts";
import { rejection, type Backend } from "../backend.ts";
import { onRuntime } from "./fixture.ts";
import { overlaid } from "../../../src/testing/overlaid.ts";
import { allOf, said } from "./outputs.ts";
import { gate, until } from "./waiting.ts";

const talk = workflow("talk", async (ctx, count: number) =>
  ctx.step("count", async ({ stream }) => {
    for (let n = 1; n <= count; n += 1) stream(n);
    return count;
  }),
);

export function runtimeLiveOutputSuite(backend: Backend): void {
  describe("live output of a run", () => {
    readingTests(backend);
    attemptTests(backend);
    treeTests(backend);
    endTests(backend);
  });
  describe("live output that cannot be kept", () => {
    hostileTests(backend);
    floodTests(backend);
    lateTests(backend);
  });
}

function readingTests(backend: Backend): void {
  test(
    "[RN6] is read from the beginning or behind a cursor, while it is shown and later, by any reader",
    onRuntime(backend, async ({ holdfast, another }) => {
      const next = gate();
      const slow = workflow("slow", async (ctx) =>
        ctx.step("two halves", async ({ stream, attempt }) => {
          expect([stream("a"), stream("b")]).toEqual([true, true]);
          await next.opened;
          expect(stream("c")).toBe(true);
          return attempt;
        }),
      );
      await holdfast.work([slow]);
      const run = await holdfast.start(slow, undefined, { id: "r" });
      const other = (await another()).get(slow, "r");
      const [early, elsewhere] = [run.stream(), other.stream()].map((stream) =>
        stream[Symbol.asyncIterator](),
      );
      const first = (await early?.next())?.value as LiveOutput;
      expect(first).toMatchObject({
        kind: "chunk",
        run: "r",
        step: "two halves",
        attempt: 1,
        value: "a",
      });
      expect((await elsewhere?.next())?.value).toEqual(first);
      expect((await early?.next())?.value).toMatchObject({ value: "b" });
      next.open();
      expect((await early?.next())?.value).toMatchObject({ value: "c" });
      expect((await early?.next())?.value).toEqual({ kind: "end" });
      expect((await early?.next())?.done).toBe(true);
      expect(await run.result()).toBe(1);
      expect(await allOf(run.stream())).toEqual(["a", "b", "c", "end"]);
      if (first.kind !== "chunk") throw new Error("The first output is a chunk.");
      expect(await allOf(other.stream({ after: first.cursor }))).toEqual(["b", "c", "end"]);
    }),
  );

  test(
    "[RN6] keeps values as records do, and is written as one row for all chunks of a turn",
    onRuntime(backend, async ({ holdfast, database }) => {
      const values = [
        new Date(5),
        10n,
        undefined,
        null,
        new Map([[1, new Uint8Array([7])]]),
        "\u2028",
      ];
      const shows = workflow("shows", async (ctx) =>
        ctx.step("all", ({ stream }) => {
          for (const value of values) stream(value);
          for (let n = 0; n < 1_000; n += 1) stream(n);
        }),
      );
      await holdfast.work([shows]);
      const run = await holdfast.start(shows, undefined, { id: "v" });
      const found: unknown[] = [];
      for await (const output of run.stream())
        if (output.kind === "chunk") found.push(output.value);
      expect(found.slice(0, values.length)).toEqual(values);
      expect(found).toHaveLength(1_000 + values.length);
      expect(await storedOf(database, ["v"])).toEqual({ heads: 1, parts: 1 });
      const cursors = new Set<string>();
      for await (const output of run.stream())
        if (output.kind === "chunk") cursors.add(output.cursor);
      expect(cursors.size).toBe(found.length);
      expect((await holdfast.maintenance.check()).damaged).toEqual([]);
    }),
  );

  test(
    "[RN6] of several large runs that are read at once is read whole by each reader",
    onRuntime(backend, async ({ holdfast, database }) => {
      const large = workflow("large", async (ctx, name: string) => {
        for (let n = 1; n <= 3; n += 1)
          await ctx.step("say", ({ stream }) => void stream(name.repeat(900_000) + n));
      });
      await holdfast.work([large]);
      const names = ["a", "b", "c"];
      const runs = await holdfast.startMany(
        large,
        names.map((name) => ({ input: name })),
      );
      await Promise.all(runs.map((run) => run.result()));
      const found = await Promise.all(runs.map((run) => allOf(run.stream())));
      for (const [index, name] of names.entries())
        expect(found[index]?.map((text) => text.replace(/^(.)\1+/, "$1"))).toEqual([
          `${name}1`,
          `${name}2`,
          `${name}3`,
          "end",
        ]);
      const reads = new StreamReads(storeContext(database, undefined));
      const executions = await executionsOf(database);
      const pages = await Promise.all(
        executions.map((execution) => reads.page({ execution, runVersion: 0, position: 0 })),
      );
      // A page takes 2 MiB: of the first run alone.
      expect(pages.map(({ parts }) => parts.length)).toEqual([3, 3, 3]);
    }),
  );

  test(
    "[RN6] goes on behind any cursor without a value missing or twice",
    onRuntime(backend, async ({ holdfast }) => {
      await holdfast.work([talk]);
      const run = await holdfast.start(talk, 40);
      const all: LiveOutput[] = [];
      for await (const output of run.stream()) all.push(output);
      for (const [index, output] of all.entries()) {
        if (output.kind === "end") continue;
        const rest = await allOf(run.stream({ after: output.cursor }));
        expect(rest).toEqual(all.slice(index + 1).map(said));
      }
    }),
  );
}

function attemptTests(backend: Backend): void {
  test(
    "[RN6] of a step that is tried again supersedes that of the attempt before",
    onRuntime(backend, async ({ holdfast }) => {
      const flaky = workflow("flaky", async (ctx) => {
        await ctx.step("before", ({ stream }) => void stream("kept"));
        return ctx.step("flaky", { retry: { backoff: 1 } }, async ({ stream, attempt }) => {
          stream(`${attempt}a`);
          if (attempt < 3) throw new Error("again");
          stream(`${attempt}b`);
        });
      });
      await holdfast.work([flaky]);
      const run = await holdfast.start(flaky);
      const early = await allOf(run.stream());
      expect(early).toEqual(["kept", "1a", "superseded", "2a", "superseded", "3a", "3b", "end"]);
      expect(await allOf(run.stream())).toEqual(early);
    }),
  );

  test(
    "[RN6] of a run that resumes in memory is kept as that of one that was locked",
    onRuntime(backend, async ({ holdfast }) => {
      const go = signal<number>("go");
      const resumed = workflow("resumed", async (ctx) => {
        await ctx.step("before", ({ stream }) => void stream("before"));
        const value = await ctx.receive(go);
        await ctx.step("behind", ({ stream }) => void stream(value));
      });
      await holdfast.work([resumed]);
      const run = await holdfast.start(resumed);
      await until(async () => (await run.status()) === "blocked");
      await run.signal(go, 5);
      expect(await allOf(run.stream())).toEqual(["before", "5", "end"]);
    }),
  );

  test(
    "[RN6] of an activity supersedes that of its attempt before, too",
    onRuntime(backend, async ({ holdfast }) => {
      const flaky = activity("flaky", { retry: { backoff: 1 } }, async ({ stream, attempt }) => {
        stream(attempt);
        if (attempt < 2) throw new Error("again");
        stream("done");
      });
      await holdfast.work([flaky]);
      const run = await holdfast.start(flaky);
      const outputs: LiveOutput[] = [];
      for await (const output of run.stream()) outputs.push(output);
      expect(outputs.map(said)).toEqual(["1", "superseded", "2", "done", "end"]);
      expect(outputs[0]).toMatchObject({ step: undefined, attempt: 1 });
    }),
  );

  test(
    "[RN6] of a later pass supersedes nothing, and a copy of a run has none of the run's",
    onRuntime(backend, async ({ holdfast }) => {
      const passing = workflow("passing", async (ctx, pass: number): Promise<number> => {
        await ctx.step("say", ({ stream }) => void stream(`pass ${pass}`));
        return pass < 3 ? ctx.continueWith(pass + 1) : pass;
      });
      await holdfast.work([passing]);
      const run = await holdfast.start(passing, 1, { id: "p" });
      expect(await allOf(run.stream())).toEqual(["pass 1", "pass 2", "pass 3", "end"]);
      const copy = await run.fork((await run.events({ limit: 100 })).items.at(-2)?.version ?? 0);
      expect(await copy.result()).toBe(3);
      expect(await allOf(copy.stream())).toEqual(["end"]);
    }),
  );
}

function treeTests(backend: Backend): void {
  test(
    "[RN6] of the runs below is read with `children`, each by name, and not without it",
    onRuntime(backend, async ({ holdfast }) => {
      const leaf = activity("leaf", async ({ stream }, name: string) => void stream(name));
      const middle = workflow("middle", async (ctx, name: string) => {
        await ctx.step("say", ({ stream }) => void stream(`middle ${name}`));
        await ctx.call(leaf, name);
      });
      const top = workflow("top", async (ctx) => {
        await ctx.step("say", ({ stream }) => void stream("top"));
        await Promise.all([ctx.call(middle, "x"), ctx.call(middle, "y")]);
      });
      await holdfast.work([top, middle, leaf]);
      const run = await holdfast.start(top, undefined, { id: "t" });
      const live: LiveOutput[] = [];
      for await (const output of run.stream({ children: true })) live.push(output);
      const sorted = (outputs: readonly LiveOutput[]): readonly string[] =>
        outputs.map(said).toSorted();
      expect(sorted(live)).toEqual(["end", "middle x", "middle y", "top", "x", "y"]);
      const runs = new Set(live.map((output) => (output.kind === "chunk" ? output.run : "")));
      expect(runs.size).toBe(6);
      expect(await allOf(run.stream())).toEqual(["top", "end"]);
      for (const [index, output] of live.entries()) {
        if (output.kind === "end") continue;
        const rest: LiveOutput[] = [];
        const stream = run.stream({ children: true, after: output.cursor });
        for await (const one of stream) rest.push(one);
        expect(sorted(rest)).toEqual(sorted(live.slice(index + 1)));
      }
    }),
  );
}

function endTests(backend: Backend): void {
  test(
    "[RN6] ends with the run: completed, failed, cancelled by force, and without any output",
    onRuntime(backend, async ({ holdfast }) => {
      const silent = workflow("silent", async () => 1);
      const failing = workflow("failing", async (ctx) => {
        await ctx.step("say", ({ stream }) => void stream("before"));
        throw new Error("no");
      });
      const hanging = workflow("hanging", async (ctx) => {
        await ctx.step("say", ({ stream }) => void stream("hanging"));
        await ctx.sleep("1 day");
      });
      await holdfast.work([silent, failing, hanging]);
      expect(await allOf((await holdfast.start(silent)).stream())).toEqual(["end"]);
      expect(await allOf((await holdfast.start(failing)).stream())).toEqual(["before", "end"]);
      const run = await holdfast.start(hanging);
      const reader = run.stream()[Symbol.asyncIterator]();
      expect((await reader.next()).value).toMatchObject({ value: "hanging" });
      const last = reader.next();
      await run.cancel({ force: true });
      expect((await last).value).toEqual({ kind: "end" });
    }),
  );

  test(
    "[RN6] is removed some time after the run ended, told as a gap, and first of all by an erasure",
    onRuntime(backend, async ({ holdfast, database }) => {
      const open = workflow("open", async (ctx) => {
        await ctx.step("say", ({ stream }) => void stream("open"));
        await ctx.sleep("1 day");
      });
      await holdfast.work([talk, open]);
      const ended = await holdfast.start(talk, 3);
      const waiting = await holdfast.start(open);
      const [first] = await outputsOf(ended);
      await waiting.stream()[Symbol.asyncIterator]().next();
      const { signal: never } = new AbortController();
      const context = await runtimeContext(database, {}, () => undefined);
      await sweepStreams(context, database.clock.now() - 60_000, never);
      expect(await allOf(ended.stream())).toEqual(["1", "2", "3", "end"]);
      await sweepStreams(context, database.clock.now() + 1, never);
      if (first?.kind !== "chunk") throw new Error("The first output is a chunk.");
      expect(await allOf(ended.stream({ after: first.cursor }))).toEqual(["gap", "end"]);
      expect(await allOf(ended.stream())).toEqual(["end"]);
      const ids = [ended.id, waiting.id];
      expect(await storedOf(database, ids)).toEqual({ heads: 1, parts: 1 });
      await waiting.cancel({ force: true });
      await holdfast.executions.erase(waiting.id);
      expect(await storedOf(database, ids)).toEqual({ heads: 0, parts: 0 });
      expect(await rejection(allOf(waiting.stream()))).toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
    }),
  );

  test(
    "[RN6] of an unknown run, behind a foreign cursor, with strange options or an abort is refused",
    onRuntime(backend, async ({ holdfast }) => {
      const nap = workflow("nap", async (ctx) => ctx.sleep("1 day"));
      await holdfast.work([talk, nap]);
      const one = await holdfast.start(talk, 1, { id: "one" });
      const two = await holdfast.start(talk, 1, { id: "two" });
      const [first] = await outputsOf(one);
      if (first?.kind !== "chunk") throw new Error("The first output is a chunk.");
      const missing = holdfast.get(talk, "missing");
      expect(await rejection(allOf(missing.stream()))).toMatchObject({
        code: "EXECUTION_NOT_FOUND",
      });
      const other = holdfast.get(nap, "one");
      expect(await rejection(allOf(other.stream()))).toMatchObject({ code: "FUNCTION_MISMATCH" });
      const after = first.cursor;
      for (const options of [
        { after: `${after}x` },
        { after: 5 },
        { after: "" },
        { after, children: true },
        { children: 1 },
        { signal: {} },
        { from: "x" },
        [],
        "x",
      ])
        expect(isHoldfastError(thrown(() => one.stream(options as never)))).toBe(true);
      expect(thrown(() => two.stream({ after }))).toMatchObject({ code: "CURSOR_INVALID" });
      const waiting = await holdfast.start(nap);
      const controller = new AbortController();
      const reading = allOf(waiting.stream({ signal: controller.signal }));
      setImmediate(() => controller.abort(new Error("enough")));
      expect(await rejection(reading)).toMatchObject({ code: "ABORTED" });
      const late = waiting.stream({ signal: controller.signal });
      expect(await rejection(allOf(late))).toMatchObject({ code: "ABORTED" });
    }),
  );
}

function hostileTests(backend: Backend): void {
  test(
    "[RN6] throws for a chunk that cannot be stored, of 9 MiB too, and goes on with the next",
    onRuntime(backend, async ({ holdfast }) => {
      const cyclic: { self?: unknown } = {};
      cyclic.self = cyclic;
      const hostile = [() => 1, Symbol("s"), cyclic, new WeakMap(), "x".repeat(9 * 1_048_576)];
      const codes: unknown[] = [];
      const strange = workflow("strange", async (ctx) =>
        ctx.step("say", ({ stream }) => {
          for (const chunk of hostile)
            try {
              codes.push(stream(chunk));
            } catch (error) {
              codes.push(isHoldfastError(error) ? error.code : error);
            }
          stream("fine");
        }),
      );
      await holdfast.work([strange]);
      const run = await holdfast.start(strange);
      expect(await allOf(run.stream())).toEqual(["fine", "end"]);
      const unstorable = "NOT_SERIALIZABLE";
      expect(codes).toEqual([unstorable, unstorable, unstorable, unstorable, "VALUE_TOO_LARGE"]);
    }),
  );
}

function floodTests(backend: Backend): void {
  test(
    "[RN6] of 100 MB in one turn of the loop is kept up to a megabyte, and the rest is one gap",
    onRuntime(backend, async ({ holdfast }) => {
      const chunk = "x".repeat(100_000);
      const shown: boolean[] = [];
      const flood = workflow("flood", async (ctx) =>
        ctx.step("flood", async ({ stream }) => {
          for (let n = 0; n < 1_000; n += 1) shown.push(stream(chunk));
        }),
      );
      await holdfast.work([flood]);
      const run = await holdfast.start(flood);
      const found = await allOf(run.stream());
      expect(found).toEqual([...new Array<string>(10).fill(chunk), "gap", "end"]);
      expect(shown.filter((isShown) => isShown)).toHaveLength(10);
      expect(shown.lastIndexOf(true)).toBe(9);
    }),
  );

  test(
    "[RN6] waits for no reader: one that never reads gets the rest when it does",
    onRuntime(backend, async ({ holdfast }) => {
      const next = gate();
      const long = workflow("long", async (ctx) => {
        await ctx.step("first", ({ stream }) => void stream("first"));
        await next.opened;
        for (let n = 1; n <= 30; n += 1)
          await ctx.step("more", ({ stream }) => void stream(`${n} ${"y".repeat(50_000)}`));
      });
      await holdfast.work([long]);
      const run = await holdfast.start(long);
      const lazy = run.stream()[Symbol.asyncIterator]();
      expect((await lazy.next()).value).toMatchObject({ value: "first" });
      void run.stream()[Symbol.asyncIterator]();
      next.open();
      const others = await Promise.all([allOf(run.stream()), allOf(run.stream())]);
      const rest: string[] = [];
      for (let read = await lazy.next(); read.done !== true; read = await lazy.next())
        rest.push(said(read.value));
      expect(rest).toHaveLength(31);
      for (const all of others) expect(all).toEqual(["first", ...rest]);
    }),
  );
}

function lateTests(backend: Backend): void {
  test(
    "[RN6] is refused without an error after the step, and from an attempt that lost its run",
    onRuntime(backend, async ({ holdfast }) => {
      const kept: ((chunk: unknown) => boolean)[] = [];
      const lost: unknown[] = [];
      const [running, ended] = [gate(), gate()];
      const leaving = workflow("leaving", async (ctx) => {
        await ctx.step("short", ({ stream }) => {
          kept.push(stream);
          stream("in time");
        });
        await ctx.step("long", async ({ stream, abortSignal }) => {
          stream("begun");
          running.open();
          await new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
          lost.push(
            stream("lost"),
            stream(() => "not even storable"),
          );
          ended.open();
        });
      });
      await holdfast.work([leaving]);
      const run = await holdfast.start(leaving);
      await running.opened;
      const reader = run.stream()[Symbol.asyncIterator]();
      expect((await reader.next()).value).toMatchObject({ value: "in time" });
      expect((await reader.next()).value).toMatchObject({ value: "begun" });
      expect(kept[0]?.("late")).toBe(false);
      await run.cancel({ force: true });
      await ended.opened;
      expect(lost).toEqual([false, false]);
      expect(await allOf(run.stream())).toEqual(["in time", "begun", "end"]);
    }),
  );

  test(
    "[RN6] never changes a run: one that cannot be written at all completes, with one warning",
    onRuntime(backend, async ({ database, another, said: told }) => {
      const broken = overlaid(database, {
        write: (...call: Parameters<Database["write"]>) =>
          (call[0] as unknown as { name: string }).name === "writeStream"
            ? Promise.reject(new Error("the disk is full"))
            : database.write(...call),
      } as Partial<Database>);
      const holdfast = await another({}, broken);
      await holdfast.work([talk]);
      const runs = await Promise.all([holdfast.start(talk, 2), holdfast.start(talk, 3)]);
      expect(await Promise.all(runs.map((run) => run.result()))).toEqual([2, 3]);
      await until(() => told.some(({ message }) => message.startsWith("Live output could not")));
      expect(told.filter(({ message }) => message.startsWith("Live output"))).toHaveLength(1);
    }),
  );
}

async function executionsOf(database: Database): Promise<readonly number[]> {
  const found = await database.read("executions", () =>
    rows<{ execution: number }>(sql`SELECT execution FROM holdfast_stream ORDER BY execution`),
  );
  return found.map(({ execution }) => execution);
}

async function outputsOf(run: Run<unknown>): Promise<readonly LiveOutput[]> {
  const found: LiveOutput[] = [];
  for await (const output of run.stream()) found.push(output);
  return found;
}

function thrown(act: () => unknown): unknown {
  try {
    act();
  } catch (error) {
    return error;
  }
  return undefined;
}

async function storedOf(database: Database, ids: readonly string[]): Promise<unknown> {
  return database.read("stored output", () =>
    row(sql`
      SELECT COUNT(DISTINCT s.execution) AS heads, COUNT(p.key) AS parts
      FROM holdfast_stream s LEFT JOIN holdfast_stream_part p ON p.execution = s.execution
      WHERE s.id IN ${textsOf(ids)}`),
  );
}
