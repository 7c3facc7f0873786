import { describe, expect, test } from "vitest";
import { z } from "zod";
import { signal, workflow, type Holdfast, type Question } from "../../../src/index.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import { manualClock } from "../../../src/model/time/clock.ts";
import { replayHistory } from "../../../src/testing.ts";
import { rejection } from "../backend.ts";
import type { Backend } from "../backend.ts";
import { hostileThrows } from "../hostile-throws.ts";
import { onRuntime } from "./fixture.ts";
import { until } from "./waiting.ts";

const T0 = Date.UTC(2026, 0, 1);
const approval = z.object({ approve: z.boolean(), reason: z.string().max(20).optional() });

const refund = workflow("refund", async (ctx, timeout: number | undefined) => {
  const question = ctx.external({
    about: { refund: 500 },
    schema: approval,
    tags: ["refunds"],
    ...(timeout !== undefined && { timeout }),
  });
  return question.result();
});

async function asked(holdfast: Holdfast, count = 1): Promise<readonly Question[]> {
  let found: readonly Question[] = [];
  await until(async () => {
    ({ items: found } = await holdfast.questions.list());
    return found.length === count;
  });
  return found;
}

async function refused(call: () => unknown): Promise<object> {
  try {
    await call();
  } catch (error) {
    if (isHoldfastError(error)) return { code: error.code, ...error.details };
    throw error;
  }
  return { code: "none" };
}

/** Questions to people. */
export function runtimeQuestionsSuite(backend: Backend): void {
  describe("a question", () => {
    test(
      "[RN7] is listed with what was asked, and its accepted answer is what the code receives",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.work([refund]);
        const run = await holdfast.start(refund, 60_000, { id: "r", metadata: { tenant: "a" } });
        const [question] = await asked(holdfast);
        expect(question).toEqual({
          kind: "question",
          id: "r.o:1_1",
          run: "r",
          function: "refund",
          about: { refund: 500 },
          schema: expect.objectContaining({ type: "object", required: ["approve"] }),
          tags: ["refunds"],
          metadata: { tenant: "a" },
          askedAt: expect.any(Number),
          expiresAt: (question?.askedAt ?? 0) + 60_000,
        });
        expect(await holdfast.questions.answer("r.o:1_1", { approve: true })).toEqual({
          kind: "accepted",
        });
        expect(await run.result()).toEqual({ approve: true });
        expect((await holdfast.questions.list()).items).toEqual([]);
        expect((await replayHistory(refund, await run.history())).kind).toBe("ends");
      }),
    );

    test(
      "[RN7] keeps its first answer: the same again is replayed, another is too late and sees the first",
      onRuntime(backend, async ({ holdfast, another }) => {
        await holdfast.work([refund]);
        const run = await holdfast.start(refund, undefined);
        const [{ id } = { id: "" }] = await asked(holdfast);
        const yes = { approve: true };
        const no = { approve: false, reason: "too much" };
        const other = await another();
        const replies = await Promise.all([
          holdfast.questions.answer(id, yes),
          other.questions.answer(id, no),
        ]);
        const first = await run.result();
        const [won, lost] = first.approve ? [yes, no] : [no, yes];
        expect(first).toEqual(won);
        expect(replies).toEqual(
          expect.arrayContaining([
            { kind: "accepted" },
            { kind: "tooLate", result: { kind: "completed", value: won } },
          ]),
        );
        expect(await holdfast.questions.answer(id, won)).toEqual({ kind: "replayed" });
        expect(await other.questions.answer(id, lost)).toEqual({
          kind: "tooLate",
          result: { kind: "completed", value: won },
        });
        expect(
          await rejection(holdfast.executions.resolve(id, { kind: "completed", value: lost })),
        ).toMatchObject({ code: "RESOLUTION_CONFLICT" });
      }),
    );

    test(
      "[RN7] refuses an answer that does not fit before anything is written, by every way in",
      onRuntime(backend, async ({ holdfast }) => {
        const tokens: string[] = [];
        const asking = workflow("asking", async (ctx) => {
          const question = ctx.external({ schema: approval });
          await ctx.step("mail", () => tokens.push(question.token));
          return question.result();
        });
        await holdfast.work([asking]);
        const run = await holdfast.start(asking);
        const [{ id } = { id: "" }] = await asked(holdfast);
        await until(() => tokens.length === 1);
        const before = await holdfast.executions.get(id);
        const wrong = {
          code: "ANSWER_INVALID",
          id,
          issues: [{ path: "$.approve", message: "must be boolean" }],
        };
        const value = { approve: "yes" };
        const { questions, executions, database } = holdfast;
        expect(await refused(() => questions.answer(id, value))).toEqual(wrong);
        expect(await refused(() => holdfast.resolve(tokens[0] ?? "", value))).toEqual(wrong);
        const result = { kind: "completed", value } as const;
        expect(await refused(() => executions.resolve(id, result))).toEqual(wrong);
        const answer = executions.answer.prepare(id, value);
        const isolation = "readCommitted" as const;
        expect(
          await refused(() => database.write("answer", () => answer(), { isolation })),
        ).toEqual(wrong);
        expect(await refused(() => questions.answer(id, undefined))).toMatchObject({
          issues: [{ path: "$", message: "must be object" }],
        });
        expect(
          await refused(() => questions.answer(id, { approve: true, reason: "x".repeat(21) })),
        ).toMatchObject({
          issues: [{ path: "$.reason", message: "must have at most 20 characters" }],
        });
        expect(await executions.get(id)).toEqual(before);
        await holdfast.resolve(tokens[0] ?? "", { approve: false });
        expect(await run.result()).toEqual({ approve: false });
      }),
    );

    test(
      "[RN7] ends at its timeout: its code receives undefined, and an answer behind it is too late",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.work([refund]);
        const run = await holdfast.start(refund, 5_000);
        const [{ id } = { id: "" }] = await asked(holdfast);
        clock.advance(5_001);
        await until(async () => {
          clock.advance(100);
          return (await run.status()) === "completed";
        });
        expect(await run.result()).toBeUndefined();
        expect(await holdfast.questions.answer(id, { approve: true })).toEqual({
          kind: "tooLate",
          result: { kind: "timedOut" },
        });
        expect((await replayHistory(refund, await run.history())).kind).toBe("ends");
      }),
    );

    test(
      "[RN7] that is overdue takes no answer, though no worker has ended it",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.executions.create({ id: "p", function: "refund" });
        await holdfast.executions.create({
          id: "p.o:1_1",
          function: "holdfast/external",
          role: "external",
          deadline: 5_000,
        });
        const { questions } = holdfast;
        expect((await questions.list()).items).toHaveLength(1);
        clock.advance(5_000);
        expect((await questions.list()).items).toEqual([]);
        const late = { kind: "tooLate", result: { kind: "timedOut" } };
        expect(await questions.answer("p.o:1_1", 1)).toEqual(late);
        expect(await questions.answer("p.o:1_1", 1)).toEqual(late);
        const { items } = await holdfast.executions.responses("p");
        expect(items).toMatchObject([{ at: T0 + 5_000, response: { resultKind: "timedOut" } }]);
      }),
    );

    test(
      "[RN7] is withdrawn when its run ends or is cancelled",
      onRuntime(backend, async ({ holdfast }) => {
        const leaving = workflow("leaving", async (ctx) => {
          ctx.external({ about: "never mind" });
          await ctx.sleep(1);
          return "left";
        });
        await holdfast.work([leaving, refund]);
        const left = await holdfast.start(leaving, undefined, { id: "left" });
        expect(await left.result()).toBe("left");
        const late = { kind: "tooLate", result: { kind: "cancelled" } };
        expect(await holdfast.questions.answer("left.o:1_1", 1)).toMatchObject(late);
        const run = await holdfast.start(refund, undefined, { id: "r" });
        await asked(holdfast);
        await run.cancel();
        await expect(run.result()).rejects.toMatchObject({ kind: "cancelled" });
        expect(await holdfast.questions.answer("r.o:1_1", { approve: true })).toMatchObject(late);
        expect((await holdfast.questions.list()).items).toEqual([]);
      }),
    );

    test(
      "[RN7] may be worded in another way on replay: the recorded one stands",
      onRuntime(backend, async ({ holdfast, another }) => {
        const worded = (options: object) =>
          workflow("worded", async (ctx) => {
            const question = ctx.external<number>({ about: "old", schema: { type: "number" } });
            const other = ctx.external<number>(options);
            return [await question.result(), await other.result()];
          });
        const old = worded({ about: "how many?", schema: { type: "integer" }, tags: ["a"] });
        await holdfast.work([old], { hotRunsMax: 0 });
        const run = await holdfast.start(old, undefined, { id: "w" });
        await asked(holdfast, 2);
        await until(async () => (await run.status()) === "blocked");
        await holdfast.close();
        const later = await another();
        // Even options that a new question would be refused for.
        await later.work([worded({ about: "?", schema: { type: "nonsense" }, timeout: "soon" })]);
        const answer = (id: string, value: unknown) => later.questions.answer(id, value);
        expect(await refused(() => answer("w.o:2_1", 1.5))).toMatchObject({
          code: "ANSWER_INVALID",
        });
        await answer("w.o:1_1", 1);
        await answer("w.o:2_1", 2);
        expect(await later.get(old, "w").result()).toEqual([1, 2]);
      }),
    );

    test(
      "[RN7] is refused again on replay where the code caught the refusal",
      onRuntime(backend, async ({ holdfast }) => {
        const careful = workflow("careful", async (ctx) => {
          const refusals: string[] = [];
          for (const options of [{ schema: { type: "nonsense" } }, { timeout: "soon" }])
            try {
              ctx.external(options as never);
            } catch (error) {
              refusals.push((error as { code: string }).code);
            }
          const made = await ctx.step("made", () => 1);
          await ctx.sleep(1);
          return [...refusals, made];
        });
        await holdfast.work([careful], { hotRunsMax: 0 });
        expect(await (await holdfast.start(careful)).result()).toEqual([
          "OPTION_INVALID",
          "DURATION_INVALID",
          1,
        ]);
      }),
    );

    test(
      "[RN7] takes plain JSON Schema, a failure in place of an answer, and fails by a value that is too large",
      onRuntime(backend, async ({ holdfast }) => {
        const asking = workflow("asking", async (ctx) => {
          const question = ctx.external<number>({ schema: { type: "integer", minimum: 1 } });
          return question.result().catch((error: Error) => (error.cause as Error).message);
        });
        await holdfast.work([asking]);
        const { questions, executions } = holdfast;
        const runs = await holdfast.startMany(asking, [{ id: "a" }, { id: "b" }, { id: "c" }]);
        await asked(holdfast, 3);
        expect(await refused(() => questions.answer("a.o:1_1", 0))).toMatchObject({
          issues: [{ path: "$", message: "must be at least 1" }],
        });
        await questions.answer("a.o:1_1", 1);
        const error = { name: "Error", message: "no one knows" };
        expect(await executions.resolve("b.o:1_1", { kind: "failed", error })).toBe("accepted");
        const large = "x".repeat(3 * 1024 * 1024);
        const tooLarge = { code: "VALUE_TOO_LARGE" };
        expect(await refused(() => questions.answer("c.o:1_1", large))).toMatchObject(tooLarge);
        await questions.answer("c.o:1_1", 3);
        const [one, two, three] = await Promise.all(runs.map((run) => run.result()));
        expect([one, two]).toEqual([1, "no one knows"]);
        expect(three).toBe(3);
      }),
    );

    test(
      "[RN7] is refused with a code when its options mean nothing, and nothing is written",
      onRuntime(backend, async ({ holdfast }) => {
        const hostile: readonly (readonly [string, unknown, string])[] = [
          ["null", null, "OPTION_INVALID"],
          ["a text", "which?", "OPTION_INVALID"],
          ["a typo", { abuot: 1 }, "OPTION_INVALID"],
          ["about of a symbol", { about: Symbol("a") }, "NOT_SERIALIZABLE"],
          ["about of 3 MB", { about: "x".repeat(3 * 1024 * 1024) }, "VALUE_TOO_LARGE"],
          ["a timeout of a word", { timeout: "soon" }, "DURATION_INVALID"],
          ["a timeout below 0", { timeout: -1 }, "DURATION_INVALID"],
          ["a timeout of null", { timeout: null }, "DURATION_INVALID"],
          ["a timeout beyond time", { timeout: 8.64e15 }, "TIME_OUT_OF_RANGE"],
          ["tags of a text", { tags: "a" }, "OPTION_INVALID"],
          ["an empty tag", { tags: [""] }, "NAME_INVALID"],
          ["a schema of null", { schema: null }, "OPTION_INVALID"],
          ["a schema of a text", { schema: "string" }, "OPTION_INVALID"],
          ["a schema of a Date", { schema: new Date(0) }, "OPTION_INVALID"],
          ["a schema with an unknown keyword", { schema: { mininum: 1 } }, "OPTION_INVALID"],
          ["a Zod schema of a Date", { schema: z.object({ at: z.date() }) }, "OPTION_INVALID"],
          [
            "a Standard Schema without JSON Schema",
            {
              schema: { "~standard": { version: 1, vendor: "v", validate: () => ({ value: 1 }) } },
            },
            "OPTION_INVALID",
          ],
          [
            "a conversion that gives nothing",
            { schema: { "~standard": { jsonSchema: { input: () => undefined } } } },
            "OPTION_INVALID",
          ],
          ...hostileThrows
            .slice(0, 4)
            .flatMap(([name, make]) => [
              [`options of ${name}`, make(), "OPTION_INVALID"] as const,
              [`a schema of ${name}`, { schema: make() }, "OPTION_INVALID"] as const,
            ]),
        ];
        const asking = workflow("asking", async (ctx) =>
          hostile.flatMap(([name, options, code]) => {
            try {
              ctx.external(options as object);
              return [`${name}: taken`];
            } catch (error) {
              return isHoldfastError(error) && error.code === code
                ? []
                : [`${name}: ${isHoldfastError(error) ? error.code : String(error)}`];
            }
          }),
        );
        await holdfast.work([asking]);
        const run = await holdfast.start(asking, undefined, { id: "r" });
        expect(await run.result()).toEqual([]);
        expect((await holdfast.executions.tree("r")).items).toHaveLength(1);
      }),
    );

    test(
      "[RN7] without JSON Schema says what to use instead",
      onRuntime(backend, async ({ holdfast }) => {
        const validate = (value: unknown) => ({ value });
        const schema = { "~standard": { version: 1, vendor: "old", validate } } as never;
        const asking = workflow("asking", async (ctx) => ctx.external({ schema }).result());
        await holdfast.work([asking]);
        const run = await holdfast.start(asking);
        await expect(run.result()).rejects.toMatchObject({
          cause: {
            code: "OPTION_INVALID",
            message: expect.stringMatching(
              /Zod 4\.2, ArkType.*@valibot\/to-json-schema.*JSON Schema/,
            ),
          },
        });
      }),
    );

    test(
      "[RN7] that does not exist, or is a run, is refused; so are hostile ids and values",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.work([refund]);
        await holdfast.start(refund, undefined, { id: "r" });
        const [{ id } = { id: "" }] = await asked(holdfast);
        const answer = (given: string, value: unknown) => holdfast.questions.answer(given, value);
        const before = await holdfast.executions.get(id);
        expect(await refused(() => answer("r.o:9_1", 1))).toMatchObject({
          code: "EXECUTION_NOT_FOUND",
        });
        expect(await refused(() => answer("r", 1))).toMatchObject({ code: "NOT_EXTERNAL" });
        for (const given of [undefined, null, 5, "", "a b", Symbol("id"), {}, "x".repeat(9_999)])
          expect(await refused(() => answer(given as string, 1))).toMatchObject({
            code: "ID_MALFORMED",
          });
        for (const [, make] of hostileThrows.slice(0, 4))
          expect(await refused(() => answer(id, make()))).toMatchObject({
            code: expect.stringMatching(/^NOT_SERIALIZABLE|ANSWER_INVALID$/),
          });
        expect(await holdfast.executions.get(id)).toEqual(before);
      }),
    );
  });

  listTests(backend);
}

const go = signal("go");
const waiting = workflow("waiting", async (ctx) => {
  const later = ctx.sleep("1 day");
  await Promise.race([later, ctx.receive(go, { timeout: "1h" })]);
});
const parent = workflow("parent", async (ctx) => ctx.call(refund, undefined));

function listTests(backend: Backend): void {
  describe("the list of questions", () => {
    test(
      "[RN7] filters by function, run, tag and time, and continues page by page",
      onRuntime(backend, async ({ another }) => {
        const clock = manualClock(T0);
        const holdfast = await another({ clock });
        await holdfast.work([refund, parent]);
        await holdfast.start(refund, undefined, { id: "a" });
        await asked(holdfast, 1);
        clock.advance(1_000);
        await holdfast.start(parent, undefined, { id: "p" });
        await asked(holdfast, 2);
        clock.advance(1_000);
        // "p2" begins like "p", and is no run below it.
        await holdfast.start(parent, undefined, { id: "p2" });
        const all = await asked(holdfast, 3);
        const ofP2 = "p2.o:1_1.o:1_1";
        const ofP = "p.o:1_1.o:1_1";
        expect(all.map(({ id }) => id)).toEqual([ofP2, ofP, "a.o:1_1"]);
        const listed = async (options: object): Promise<readonly string[]> =>
          (await holdfast.questions.list(options)).items.map(({ id }) => id);
        expect(await listed({ kind: "question", run: "p" })).toEqual([ofP]);
        expect(await listed({ run: "a" })).toEqual(["a.o:1_1"]);
        expect(await listed({ function: "refund" })).toHaveLength(3);
        expect(await listed({ function: "parent" })).toEqual([]);
        expect(await listed({ tag: "refunds" })).toHaveLength(3);
        expect(await listed({ tag: "refunds", run: "p2" })).toEqual([ofP2]);
        expect(await listed({ tag: "none" })).toEqual([]);
        const askedBefore = all[0]?.askedAt ?? 0;
        expect(await listed({ askedBefore })).toEqual([ofP, "a.o:1_1"]);
        const { next, items } = await holdfast.questions.list({ limit: 2 });
        expect(items).toHaveLength(2);
        expect(await listed({ limit: 2, ...(next !== undefined && { after: next }) })).toEqual([
          "a.o:1_1",
        ]);
        await holdfast.questions.answer(ofP, { approve: true });
        expect(await listed({ run: "p" })).toEqual([]);
      }),
    );

    test(
      "[RN7] keeps pages small where questions are large",
      onRuntime(backend, async ({ holdfast }) => {
        const large = workflow("large", async (ctx) => {
          for (let n = 0; n < 4; n += 1) ctx.external({ about: "x".repeat(600_000) });
          await ctx.sleep("1 day");
        });
        await holdfast.work([large]);
        await holdfast.start(large, undefined, { id: "l" });
        const ids = new Set<string>();
        await until(async () => {
          ids.clear();
          let after: string | undefined;
          let isSmall = true;
          do {
            const page = await holdfast.questions.list({ ...(after !== undefined && { after }) });
            for (const { id, about } of page.items) {
              ids.add(id);
              expect(about).toHaveLength(600_000);
            }
            isSmall &&= page.items.length <= 1;
            after = page.next;
          } while (after !== undefined);
          expect(isSmall).toBe(true);
          return ids.size === 4;
        });
      }),
    );

    test(
      "[RN7] shows the signals and sleeps of named runs, at most a hundred runs at once",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.work([waiting]);
        for (const id of ["w1", "w2", "w22"])
          await holdfast.start(waiting, undefined, { id, tags: ["t"] });
        const signals = (options: object) =>
          holdfast.questions.list({ kind: "signal", ...options });
        await until(async () => (await signals({ tag: "t" })).items.length === 3);
        const [first] = (await signals({ run: "w2" })).items;
        expect(await signals({ run: "w2" })).toMatchObject({ items: [{ run: "w2" }] });
        expect(first).toEqual({
          kind: "signal",
          run: "w2",
          function: "waiting",
          signal: "go",
          askedAt: expect.any(Number),
          expiresAt: expect.any(Number),
        });
        expect(await holdfast.questions.list({ kind: "sleep", function: "waiting" })).toMatchObject(
          { items: [{ kind: "sleep" }, { kind: "sleep" }, { kind: "sleep" }] },
        );
        const page = await signals({ tag: "t", limit: 2 });
        expect(page.items).toHaveLength(2);
        expect((await signals({ tag: "t", limit: 2, after: page.next })).items).toHaveLength(1);
        expect((await signals({ tag: "t", askedBefore: 5 })).items).toEqual([]);
        for (const options of [{}, { tag: "t", limit: 101 }, { tag: "t", limit: 0 }, { run: 5 }])
          expect(await refused(() => signals(options))).toMatchObject({ code: "OPTION_INVALID" });
      }),
    );
  });
}
