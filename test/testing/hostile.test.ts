import { describe, expect, test } from "vitest";
import { activity, isHoldfastError, workflow, type RunHistory } from "../../src/index.ts";
import { fake, replayHistory, surviveCrashes, testHoldfast } from "../../src/testing.ts";
import { opening } from "./kit.ts";

const open = opening();
const work = activity("work", async (_, input: unknown) => input);
const nap = workflow("nap", async (ctx, input: unknown) => {
  await ctx.sleep("1 day");
  return input;
});

/** What nobody should give, and everybody can. */
const hostile: readonly (readonly [string, unknown])[] = [
  ["undefined", undefined],
  ["null", null],
  ["true", true],
  ["a number", 1.5],
  ["a negative number", -1],
  ["no number", Number.NaN],
  ["a bigint", 1n],
  ["a symbol", Symbol("x")],
  ["a text", "x"],
  ["a function", () => undefined],
  ["an object", { extra: 1 }],
  ["a list", [1, null]],
  ["a date that is none", new Date(Number.NaN)],
  [
    "an object whose properties throw",
    new Proxy(
      {},
      {
        get(_, name) {
          if (name === "then") return undefined;
          throw new RangeError("no");
        },
        ownKeys: () => ["name", "kind"],
        getOwnPropertyDescriptor: () => ({
          enumerable: true,
          configurable: true,
        }),
      },
    ),
  ],
];

/** Errors that are not ours. */
const strange: unknown[] = [];

/** Calls something that may refuse, or find the value good. */
async function attempt(act: () => unknown): Promise<void> {
  try {
    await act();
  } catch (error) {
    // What a property throws is the caller's own.
    const isOfProperty = error instanceof RangeError && error.message === "no";
    if (!isHoldfastError(error) && !isOfProperty) strange.push(error);
  }
}

type Any = never;

describe("hostile values", () => {
  test.each(hostile)("are refused by every function: %s", async (_, value) => {
    const given = value as Any;
    await attempt(async () => (await testHoldfast(given)).close());
    await attempt(async () => (await testHoldfast([given])).close());
    await attempt(async () => (await testHoldfast([nap], given)).close());
    for (const option of ["autoSkip", "now", "seed", "work", "onEvent"])
      await attempt(async () => (await testHoldfast([nap], { [option]: given })).close());
    await attempt(() => fake(given, { returns: 1 }));
    await attempt(() => fake(work, given));
    await attempt(() => replayHistory(given, {} as RunHistory));
    await attempt(() => replayHistory(nap, given));
    await attempt(() => replayHistory(nap, {} as RunHistory, given));
    await attempt(() => surviveCrashes(given, 1));
    for (const option of ["functions", "during", "effects", "roundsMax"])
      if (typeof value !== "function")
        await attempt(() => surviveCrashes(nap, 1, { roundsMax: 1, [option]: given }));
    await attempt(() => surviveCrashes(nap, 1, { functions: () => given, roundsMax: 1 }));
    expect(strange).toEqual([]);
  });

  test.each(["autoSkip", "now", "seed", "work", "onEvent"])(
    "are not taken for an option that was left out: %s",
    async (option) => {
      const given = { [option]: null };
      const accepted = testHoldfast([nap], given).then((kit) => kit.close());
      await expect(accepted).rejects.toMatchObject({ code: "OPTION_INVALID" });
    },
  );

  test("are refused by every method, and change nothing", async () => {
    const kit = await open([nap, work]);
    const before = kit.now();
    for (const [, value] of hostile) {
      const given = value as Any;
      await attempt(() => kit.crashAfter(given));
      await attempt(() => kit.work(given));
      await attempt(() => kit.work([given]));
      await attempt(() => kit.work([], given));
      await attempt(() => kit.start(given));
      await attempt(() => kit.startMany(given, given));
      await attempt(() => kit.run(given));
      await attempt(() => kit.get(given, given));
      await attempt(() => kit.get(nap, given));
    }
    expect(kit.now()).toEqual(before);
    expect((await kit.runs.list()).items).toEqual([]);
    for (const [, value] of hostile) {
      await attempt(() => kit.skip(value as Any));
      await attempt(() => kit.skipTo(value as Any));
    }
    const run = await kit.start(nap, "still here");
    for (const [, value] of hostile) await attempt(() => run.result(value as Any));
    expect(await run.result()).toBe("still here");
    expect(strange).toEqual([]);
  });

  test("that are no functions are named with their place", async () => {
    await expect(testHoldfast([nap, {} as Any])).rejects.toMatchObject({
      code: "OPTION_INVALID",
      message: expect.stringContaining("functions[1]"),
    });
    const other = workflow("nap", async () => 1);
    await expect(testHoldfast([nap, other])).rejects.toMatchObject({
      code: "FUNCTION_CONFLICT",
    });
    expect(() => fake(nap as Any, { returns: 1 })).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    );
    expect(() => fake(work)).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
  });

  test("after its end a kit refuses whatever it is asked", async () => {
    const kit = await open([nap]);
    const run = await kit.start(nap, 1);
    await kit.close();
    await kit.close();
    const closed = { code: "DATABASE_CLOSED" };
    await expect(run.result()).rejects.toMatchObject(closed);
    await expect(kit.start(nap, 1)).rejects.toMatchObject(closed);
    await expect(kit.run(nap, 1)).rejects.toMatchObject(closed);
    await expect(run.history()).rejects.toMatchObject(closed);
    await kit.crash();
    await kit.idle();
    await kit.skip("1 day");
  });

  test("a result that is awaited when it closes is refused", async () => {
    const kit = await open([nap], { autoSkip: false });
    const run = await kit.start(nap, 1);
    const result = run.result().catch((error: unknown) => error);
    await kit.close();
    expect(await result).toMatchObject({ code: "DATABASE_CLOSED" });
  });
});
