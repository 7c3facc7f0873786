import { describe, expect, test } from "vitest";
import { manualClock } from "../../../src/model/time/clock.ts";
import { activity, signal, workflow } from "../../../src/runtime/definition/definitions.ts";
import type { WorkflowContext } from "../../../src/runtime/definition/workflow-context.ts";
import type { Holdfast } from "../../../src/runtime/client/holdfast.ts";
import { isToldByResult } from "../../../src/runtime/runtime-event.ts";
import { schedule } from "../../../src/runtime/schedules/schedule.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { dump, T0 } from "../execution/fixture.ts";
import { addNote, createNoteTable, noteCount } from "../notes.ts";
import { onRuntime, type RuntimeFixture } from "./fixture.ts";
import { kindsOf, Tally, until, warningsIn } from "./waiting.ts";

const limit = 1_000;
const large = "x".repeat(3 * limit);
/** What every refusal says: the size, the limit, and a way out. */
const refusal = {
  code: "VALUE_TOO_LARGE",
  details: { size: expect.any(Number) as number, limit },
  message: expect.stringContaining("Keep large data in a blob or attachment") as string,
};

interface Small {
  readonly holdfast: Holdfast;
  readonly tally: Tally;
}

/** A runtime whose values may be small only. */
function onSmall(
  backend: Backend,
  body: (small: Small, fixture: RuntimeFixture) => Promise<void>,
): () => Promise<void> {
  return onRuntime(backend, async (fixture) => {
    const holdfast = await fixture.another({ valueLimits: { charactersMax: limit } });
    await body({ holdfast, tally: new Tally() }, fixture);
  });
}

/** The failure of a run's call as plain data, which the run can return. */
async function failureOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
    return "not refused";
  } catch (thrown) {
    const error = thrown as Error & { code?: string; cause?: Error };
    const of = (error.code === undefined ? error.cause : error) as Error & {
      code?: string;
      details?: unknown;
    };
    return { code: of?.code, details: of?.details, message: of?.message };
  }
}

/** A value above the limit is refused once and for good: nothing that made it is made again. */
export function runtimeLargeSuite(backend: Backend): void {
  describe("a value above the limit", () => {
    resultTests(backend);
    messageTests(backend);
    besideTests(backend);
  });
}

type Maker = (ctx: WorkflowContext, tally: Tally) => Promise<unknown>;

const retried = { retry: { maxRetries: 3, backoff: 1 } } as const;
const makers: Readonly<Record<string, { readonly of: Maker; readonly kinds: readonly string[] }>> =
  {
    "result of a step": {
      of: (ctx, tally) =>
        ctx.step("large", retried, () => {
          tally.count("made");
          return large;
        }),
      kinds: ["stepFinished"],
    },
    "result of a step that resolves later": {
      of: (ctx, tally) =>
        ctx.step("large", retried, async () => {
          tally.count("made");
          await Promise.resolve();
          return large;
        }),
      kinds: ["stepFinished"],
    },
    "result of a transaction": {
      of: (ctx, tally) =>
        ctx.transaction("large", function* () {
          yield* [];
          tally.count("made");
          return large;
        }),
      kinds: ["transactionFinished"],
    },
    "value that nests too deeply": {
      of: (ctx, tally) =>
        ctx.step("deep", retried, () => {
          tally.count("made");
          let deep: unknown = 1;
          for (let level = 0; level < 250; level += 1) deep = [deep];
          return deep;
        }),
      kinds: ["stepFinished"],
    },
  };

function resultTests(backend: Backend): void {
  for (const [name, { of, kinds }] of Object.entries(makers))
    for (const hotRunsMax of [1_000, 0])
      test(
        `[RN13] as a ${name} is its recorded failure, ${hotRunsMax === 0 ? "replayed" : "live"}`,
        onSmall(backend, async ({ holdfast, tally }) => {
          const fn = workflow("maker", async (ctx) => {
            const failure = await failureOf(() => of(ctx, tally));
            await ctx.sleep(5);
            return failure;
          });
          await holdfast.work([fn], { hotRunsMax });
          const run = await holdfast.start(fn);
          const { code } = refusal;
          expect(await run.result()).toMatchObject(
            name.includes("deep") ? { code, details: { limit: 200 } } : refusal,
          );
          expect(tally.all).toEqual({ made: 1 });
          expect((await kindsOf(holdfast, run.id)).filter((kind) => kinds.includes(kind))).toEqual(
            kinds,
          );
        }),
      );

  test(
    "[RN13] as the result of a transaction leaves nothing of the transaction behind",
    onSmall(backend, async ({ holdfast }, { database }) => {
      await database.write("notes", createNoteTable);
      const fn = workflow("writer", async (ctx) =>
        failureOf(() =>
          ctx.transaction("large", function* () {
            yield* addNote.one({ id: "n" });
            return large;
          }),
        ),
      );
      await holdfast.work([fn]);
      expect(await (await holdfast.start(fn)).result()).toMatchObject(refusal);
      expect(await noteCount(database)).toBe(0);
    }),
  );

  for (const kind of ["activity", "workflow"] as const)
    test(
      `[RN13] as the result of a child that is ${kind === "activity" ? "an activity" : "a workflow"} fails the child for good, and its parent is told`,
      onSmall(backend, async ({ holdfast, tally }) => {
        const make = async (): Promise<string> => {
          tally.count("made");
          return large;
        };
        const child =
          kind === "activity" ? activity("child", retried, make) : workflow("child", make);
        const parent = workflow("parent", async (ctx) => failureOf(() => ctx.call(child)));
        await holdfast.work([parent, child]);
        expect(await (await holdfast.start(parent)).result()).toMatchObject(refusal);
        expect(tally.all).toEqual({ made: 1 });
      }),
    );

  test(
    "[RN13] as the result of a run, of its next input, or in what it throws, ends it as failed",
    onSmall(backend, async ({ holdfast, tally }, { said }) => {
      const returning = workflow("returning", async () => {
        tally.count("made");
        return large;
      });
      const continuing = workflow<never, string>("continuing", async (ctx) => {
        tally.count("made");
        return ctx.continueWith(large);
      });
      const throwing = workflow("throwing", async () => {
        tally.count("made");
        throw Object.assign(new Error(large), { data: large });
      });
      await holdfast.work([returning, continuing, throwing]);
      for (const [run, cause] of [
        [await holdfast.start(returning), refusal],
        [await holdfast.start(continuing, "first"), refusal],
        [await holdfast.start(throwing), { message: expect.stringMatching(/^x+…$/) as string }],
      ] as const)
        expect(await rejection(run.result())).toMatchObject({ kind: "failed", cause });
      expect(tally.all).toEqual({ made: 3 });
      const alarms = said.filter((event) => event.level === "error" && !isToldByResult(event));
      expect(alarms).toEqual([]);
    }),
  );

  test(
    "[RN13] as the input of a child or of a run that outlives its starter is refused to the code, which goes on",
    onSmall(backend, async ({ holdfast, tally }) => {
      const child = workflow<number, string>("child", async () => tally.count("child"));
      const parent = workflow("parent", async (ctx) => {
        const failures = [
          await failureOf(() => ctx.call(child, large)),
          await failureOf(async () => ctx.spawn(child, large)),
          await failureOf(() => ctx.start(child, large)),
          await failureOf(() => ctx.start(child, large, { id: "chosen" })),
        ];
        await ctx.sleep(5);
        return { failures, after: await ctx.step("after", () => 1) };
      });
      await holdfast.work([parent, child], { hotRunsMax: 0 });
      const run = await holdfast.start(parent);
      expect(await run.result()).toMatchObject({
        failures: [refusal, refusal, refusal, refusal],
        after: 1,
      });
      expect(tally.all).toEqual({});
      expect((await holdfast.executions.list()).items.map(({ id }) => id)).toEqual([run.id]);
    }),
  );
}

function messageTests(backend: Backend): void {
  test(
    "[RN13] as an input, a signal, an input of a schedule or many inputs is refused to the caller, and nothing is written",
    onSmall(backend, async ({ holdfast }, { database }) => {
      const note = signal<string>("note");
      const taking = workflow<string, string>("taking", async (ctx) => ctx.receive(note));
      const run = await holdfast.start(taking, "small");
      const before = await dump({ database });
      for (const call of [
        () => holdfast.start(taking, large),
        () => holdfast.startMany(taking, [{ input: "small" }, { input: large }]),
        () => run.signal(note, large),
        () => holdfast.work([schedule("nightly", { every: "1 day" }, taking, large)]),
        () => holdfast.executions.setProgress(run.id, large),
        () => holdfast.executions.log(run.id, [{ level: "info", message: "m", data: large }]),
      ])
        expect(await rejection(call())).toMatchObject(refusal);
      expect(await dump({ database })).toEqual(before);
      await holdfast.work([taking]);
      await run.signal(note, "small");
      expect(await run.result()).toBe("small");
    }),
  );

  test(
    "[RN13] as an answer is refused to the caller each time, and the question stays open",
    onSmall(backend, async ({ holdfast }) => {
      const tokens: string[] = [];
      const asking = workflow("asking", async (ctx) => {
        const answer = ctx.external<string>();
        await ctx.step("mail the token", () => tokens.push(answer.token));
        return answer.result();
      });
      await holdfast.work([asking]);
      const run = await holdfast.start(asking);
      await until(() => tokens.length > 0);
      const [token = ""] = tokens;
      await until(async () => (await run.status()) === "blocked");
      for (let times = 0; times < 2; times += 1) {
        expect(await rejection(holdfast.resolve(token, large))).toMatchObject(refusal);
        const waits = await holdfast.executions.get(run.id);
        expect(waits.state.pending.kind).toBe("blocked");
      }
      await holdfast.resolve(token, "small");
      expect(await run.result()).toBe("small");
    }),
  );

  test(
    "[RN13] as tags, a key, an id or metadata is refused by a start, and nothing is written",
    onSmall(backend, async ({ holdfast }, { database }) => {
      const fn = workflow("fn", async (_, n: number) => n);
      const before = await dump({ database });
      const codes: unknown[] = [];
      for (const given of [
        { tags: [large] },
        { tags: Array.from({ length: 10_000 }, (_, n) => `t${n}`) },
        { concurrencyKey: large },
        { metadata: { large } },
        { id: large },
      ])
        codes.push(((await rejection(holdfast.start(fn, 1, given))) as { code?: string }).code);
      expect(codes).toEqual([
        "NAME_INVALID",
        "OPTION_INVALID",
        "NAME_INVALID",
        "OPTION_INVALID",
        "ID_MALFORMED",
      ]);
      expect(await dump({ database })).toEqual(before);
    }),
  );
}

function besideTests(backend: Backend): void {
  test(
    "[RN13] as progress, a heartbeat or data of a log line is warned about, and its run completes",
    onSmall(backend, async ({ holdfast, tally }, { said }) => {
      const beating = activity("beating", async (ctx) => {
        tally.count("activity");
        ctx.heartbeat(large);
        ctx.log.info("of the activity", large);
        return "beaten";
      });
      const fn = workflow("telling", async (ctx) => {
        ctx.setProgress(large);
        ctx.log.info("of the run", large);
        await ctx.step("s", () => {
          ctx.log.info("of the step", large);
          return 1;
        });
        return ctx.call(beating);
      });
      await holdfast.work([fn, beating]);
      expect(await (await holdfast.start(fn)).result()).toBe("beaten");
      expect(tally.all).toEqual({ activity: 1 });
      await until(() => warningsIn(said).length === 5);
      for (const { message } of warningsIn(said))
        expect(message).toMatch(/could not be recorded: The value takes at least \d+ characters/);
    }),
  );

  test(
    "[RN13] uses up no retries",
    onSmall(backend, async (_, { another }) => {
      const clock = manualClock(T0);
      const holdfast = await another({ clock, valueLimits: { charactersMax: limit } });
      const tally = new Tally();
      const child = activity("child", { retry: { maxRetries: 5, backoff: "1 hour" } }, async () => {
        tally.count("made");
        return large;
      });
      await holdfast.work([child]);
      const run = await holdfast.start(child);
      expect(await rejection(run.result())).toMatchObject({ kind: "failed", cause: refusal });
      expect(tally.all).toEqual({ made: 1 });
    }),
  );
}
