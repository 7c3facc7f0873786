import { expect, test, vi } from "vitest";
import { activity, signal, workflow } from "../../runtime/definition/definitions.ts";
import { openHoldfast } from "../../open/open-holdfast.ts";
import { watchRuns, type RunsView } from "./watch-runs.ts";

const go = signal("go");
const fail = activity("fail", { retry: { maxRetries: 0 } }, async () => {
  throw new Error("no such luck");
});
const failing = workflow("failing", async (ctx) => ctx.call(fail));
const waiting = workflow("waiting", async (ctx) => ctx.receive(go));
const sleeping = workflow("sleeping", async (ctx) => {
  ctx.setProgress("half");
  await ctx.sleep("1 hour");
});

/** Other tests may keep the machine busy. */
const until = (check: () => void): Promise<void> => vi.waitFor(check, { timeout: 30_000 });

test("the live view tells what runs wait for and how they ended, whenever that changes", async () => {
  const holdfast = await openHoldfast(":memory:", { onEvent: () => undefined });
  const views: RunsView[] = [];
  const stop = watchRuns(holdfast, {
    timeZone: "UTC",
    rowsMax: () => 3,
    onView: (view) => views.push(view),
    onError: (error) => {
      throw error;
    },
  });
  const shown = (): readonly string[] | undefined =>
    views
      .at(-1)
      ?.rows.map(({ id, status, doing }) => `${id} ${status} ${doing}`)
      .toSorted();

  await holdfast.start(waiting, undefined, { id: "wait" });
  await until(() => expect(shown()).toEqual(["wait pending due, waits for a worker"]));
  await holdfast.work([waiting, sleeping, failing, fail]);
  await holdfast.start(sleeping, undefined, { id: "sleep" });
  await holdfast.start(failing, undefined, { id: "fail" });
  await until(() =>
    expect(shown()).toEqual([
      expect.stringMatching(/^fail failed RunFailedError: .*no such luck/),
      expect.stringMatching(/^sleep blocked sleeps until .*\d\d:\d\d$/),
      "wait blocked waits for signal go",
    ]),
  );

  await holdfast.get(waiting, "wait").signal(go);
  await holdfast.get(sleeping, "sleep").cancel({ force: true, reason: "enough" });
  await holdfast.start(waiting, undefined, { id: "fourth" });
  await until(() => {
    expect(views.at(-1)).toMatchObject({ hidden: 1, isHiddenMore: false });
    expect(shown()).toContain("sleep cancelled enough");
  });
  await stop();
  await holdfast.close();
});

/** Each asks for something, does more, and only then waits. */
const late = {
  external: workflow("late/external", async (ctx) => {
    const answer = ctx.external();
    await ctx.step("between", () => 1);
    return answer.result();
  }),
  signal: workflow("late/signal", async (ctx) => {
    const told = ctx.receive(go);
    await ctx.step("between", () => 1);
    return told;
  }),
  children: workflow("late/children", async (ctx) => {
    const answers = [ctx.call(waiting), ctx.call(quick)];
    await ctx.step("between", () => 1);
    return Promise.all(answers);
  }),
};
const quick = workflow("quick", async () => 1);

test("the live view tells what runs wait for that they asked for before something else", async () => {
  const holdfast = await openHoldfast(":memory:", { onEvent: () => undefined });
  const views: RunsView[] = [];
  const stop = watchRuns(holdfast, {
    timeZone: "UTC",
    rowsMax: () => 9,
    onView: (view) => views.push(view),
    onError: (error) => {
      throw error;
    },
  });
  await holdfast.work([...Object.values(late), waiting, quick]);
  await holdfast.start(late.external, undefined, { id: "external" });
  await holdfast.start(late.signal, undefined, { id: "signal" });
  await holdfast.start(late.children, undefined, { id: "children" });
  await until(() =>
    expect(
      Object.fromEntries(views.at(-1)?.rows.map(({ id, doing }) => [id, doing]) ?? []),
    ).toEqual({
      external: "waits for an answer from outside (external.o:1_1)",
      signal: "waits for signal go",
      children: "waits for waiting (children.o:1_1)",
    }),
  );
  await stop();
  await holdfast.close();
});
