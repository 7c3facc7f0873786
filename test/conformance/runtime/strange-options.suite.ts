import { describe, expect, test } from "vitest";
import { activity, openHoldfast, schedule, signal, workflow } from "../../../src/index.ts";
import { openSqlite } from "../../../src/sqlite.ts";
import { isHoldfastError } from "../../../src/model/errors.ts";
import type { Backend } from "../backend.ts";
import { hostileThrows } from "../hostile-throws.ts";
import { onRuntime } from "./fixture.ts";

const nap = workflow("nap", async (ctx) => ctx.sleep("1 day"));

/** Objects that have no fields, and what is said of them. */
const strangers: readonly { readonly given: unknown; readonly said: RegExp }[] = [
  { given: Promise.resolve({ id: "a" }), said: /a promise\. Await it first/ },
  // oxlint-disable-next-line unicorn/no-thenable -- what a query builder is.
  { given: { then: () => undefined }, said: /a promise\. Await it first/ },
  { given: new Date(0), said: /a Date\b/ },
  { given: new Map(), said: /a Map\b/ },
  { given: new Set(), said: /a Set\b/ },
  { given: new AbortController().signal, said: /an AbortSignal\b/ },
  { given: new Error("no options"), said: /an Error\b/ },
  { given: [], said: /an array\b/ },
  { given: () => undefined, said: /function\b/ },
];

function throwing(): never {
  throw new Error("trap");
}

/** What throws when it is read. */
const unreadable: readonly (readonly [string, () => unknown])[] = [
  ...hostileThrows.slice(0, 4),
  [
    "getters that throw",
    () =>
      Object.defineProperties(
        {},
        Object.fromEntries(
          ["id", "timeout", "input", "lease", "tag", "at", "cron"].map((name) => [
            name,
            { enumerable: true, get: throwing },
          ]),
        ),
      ),
  ],
];

async function thrownBy(call: () => unknown): Promise<unknown> {
  try {
    await call();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Without the cause itself, which cannot be looked at. */
function refusal(thrown: unknown): object {
  if (!isHoldfastError(thrown)) return { thrown: typeof thrown };
  const { code, details } = thrown;
  return { code, path: details["path"], hasCause: "cause" in thrown };
}

/** What only looks like options, or throws when it is looked at, is refused before anything is written. */
export function runtimeStrangeOptionsSuite(backend: Backend): void {
  describe("strange options", () => {
    test(
      "that are no plain objects are refused wherever they are given, also without fields",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.start(nap, undefined, { id: "kept" });
        const { runs } = holdfast;
        const handle = holdfast.get(nap, "kept");
        const body = async (): Promise<void> => undefined;
        const calls: readonly ((given: never) => unknown)[] = [
          (given) => holdfast.work([nap], given),
          (given) => holdfast.start(nap, undefined, given),
          (given) => holdfast.startMany(nap, [given]),
          (given) => holdfast.start(nap, undefined, { metadata: given }),
          (given) => holdfast.startMany(nap, [{ metadata: given }]),
          (given) => handle.result(given),
          (given) => handle.cancel(given),
          (given) => runs.list(given),
          (given) => runs.cancelAll(given),
          (given) => runs.cancelAll({ tag: "none" }, given),
          (given) => holdfast.close(given),
          (given) => holdfast.closeOnSignals(given),
          (given) => openHoldfast(":memory:", given),
          (given) => openHoldfast(":memory:", { sqlite: given }),
          (given) => openSqlite(":memory:", given),
          (given) => openSqlite(":memory:", { limits: given }),
          (given) => workflow("w", given, body),
          (given) => activity("a", { retry: given }, body),
          (given) => schedule("s", given, nap),
        ];
        for (const call of calls)
          for (const { given, said } of strangers)
            expect(
              await thrownBy(() => call(given as never)),
              `${String(call)} of ${String(said)}`,
            ).toMatchObject({
              code: "OPTION_INVALID",
              message: expect.stringMatching(said),
            });
        expect((await runs.list()).items).toHaveLength(1);
      }),
    );

    test(
      "and values that throw when they are read are refused by a code, and nothing is written",
      onRuntime(backend, async ({ holdfast }) => {
        await holdfast.start(nap, undefined, { id: "kept" });
        const before = await holdfast.executions.get("kept");
        const { runs } = holdfast;
        const handle = holdfast.get(nap, "kept");
        const take = signal<unknown>("take");
        const any = workflow("any", async (_ctx, _input: unknown) => undefined);
        const options: readonly ((given: never) => unknown)[] = [
          (given) => holdfast.work([nap], given),
          (given) => holdfast.work([given]),
          (given) => holdfast.work(given),
          (given) => holdfast.start(given),
          (given) => holdfast.start(nap, undefined, given),
          (given) => holdfast.start(nap, undefined, { tags: given }),
          (given) => holdfast.start(nap, undefined, { metadata: given }),
          (given) => holdfast.start(nap, undefined, { metadata: { tenant: given } }),
          (given) => holdfast.startMany(nap, [{ metadata: given }]),
          (given) => holdfast.start(nap, undefined, { startAt: given }),
          (given) => holdfast.start(nap, undefined, { startAt: { at: given } }),
          (given) => holdfast.start(nap, undefined, { deadline: given }),
          (given) => holdfast.startMany(nap, given),
          (given) => holdfast.startMany(nap, [given]),
          (given) => holdfast.get(given, "kept"),
          (given) => handle.result(given),
          (given) => handle.result({ signal: given }),
          (given) => handle.signal(given, 1),
          (given) => handle.cancel(given),
          (given) => runs.list(given),
          (given) => runs.list({ newerThan: given }),
          (given) => runs.cancelAll(given),
          (given) => holdfast.close(given),
          (given) => holdfast.closeOnSignals(given),
          (given) => openHoldfast(":memory:", given),
          (given) => openHoldfast(":memory:", { payload: given }),
          (given) => openSqlite(":memory:", given),
          (given) => workflow("w", given, async () => undefined),
          (given) => workflow("w", { input: given }, async () => undefined),
          (given) => schedule("s", given, nap),
        ];
        for (const call of options)
          for (const [said, made] of unreadable)
            expect(
              await thrownBy(() => call(made() as never)),
              `${String(call)} of ${said}`,
            ).toSatisfy(isHoldfastError);
        const values: readonly ((given: unknown) => unknown)[] = [
          (given) => holdfast.start(any, { deep: [given] }),
          (given) => holdfast.startMany(any, [{ input: { deep: [given] } }]),
          (given) => handle.signal(take, { deep: [given] }),
        ];
        for (const call of values)
          for (const [said, made] of unreadable)
            expect(
              refusal(await thrownBy(() => call(made()))),
              `${String(call)} of ${said}`,
            ).toEqual({
              code: "NOT_SERIALIZABLE",
              path: expect.stringMatching(/^\$\.deep\[0\]/),
              hasCause: true,
            });
        expect((await runs.list()).items).toHaveLength(1);
        expect(await holdfast.executions.get("kept")).toEqual(before);
      }),
    );

    test(
      "ids of children are refused for other runs, which would stand in their way",
      onRuntime(backend, async ({ holdfast }) => {
        const child = workflow("child", async () => "of the parent");
        const parent = workflow("parent", async (ctx) => {
          const refused = await ctx.start(nap, undefined, { id: `${ctx.id}.o:2_1` }).catch(refusal);
          return [refused, await ctx.call(child)];
        });
        const failed = workflow("failed", async () => {
          throw new Error("once");
        });
        const run = await holdfast.start(parent, undefined, { id: "p" });
        const ended = await holdfast.start(failed, undefined, { id: "f" });
        const id = "p.o:1_1";
        for (const call of [
          () => holdfast.start(nap, undefined, { id }),
          () => holdfast.startMany(nap, [{ id: "fine" }, { id }]),
          () => run.fork(0, { id }),
        ])
          expect(await thrownBy(call)).toMatchObject({ code: "ID_MALFORMED" });
        await holdfast.work([parent, child, failed]);
        expect(await run.result()).toEqual([
          expect.objectContaining({ code: "ID_MALFORMED" }),
          "of the parent",
        ]);
        await ended.result().catch(() => undefined);
        expect(await thrownBy(() => ended.retry({ id }))).toMatchObject({
          code: "ID_MALFORMED",
        });
        expect((await holdfast.runs.list({ topLevelOnly: true })).items).toHaveLength(2);
      }),
    );

    test(
      "of many starts are checked before the first is started, and told with their place",
      onRuntime(backend, async ({ holdfast }) => {
        const any = workflow("any", async (_ctx, _input: unknown) => undefined);
        for (const [wrong, code] of [
          [{ input: Number.NaN }, "NOT_SERIALIZABLE"],
          [{ input: 1, id: "" }, "ID_MALFORMED"],
          [{ input: 1, tags: "a" }, "OPTION_INVALID"],
          [{ input: 1, deadline: "soon" }, "DURATION_INVALID"],
          [{ input: 1, metadata: { tenant: 7 } }, "OPTION_INVALID"],
          [{ input: 1, tag: "a" }, "OPTION_INVALID"],
          [Promise.resolve({ input: 1 }), "OPTION_INVALID"],
          [undefined, "OPTION_INVALID"],
        ] as const)
          expect(
            await thrownBy(() => holdfast.startMany(any, [{ input: 1, id: "c" }, wrong as never])),
          ).toMatchObject({
            code,
            message: expect.stringMatching(/^starts\[1\]: /),
            details: { index: 1 },
          });
        expect((await holdfast.runs.list()).items).toEqual([]);
      }),
    );
  });
}
