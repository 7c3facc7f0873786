import { describe, expect, test } from "vitest";
import { activity, signal, workflow } from "../../src/index.ts";
import { opening, start } from "./kit.ts";

const open = opening();

const approval = signal<string>("approval");

describe("a result that cannot come", () => {
  const ask = workflow("ask", async (ctx) => ctx.receive(approval));

  test("is refused with what the run waits for", async () => {
    const kit = await open([ask]);
    const run = kit.run(ask, undefined, { id: "ask-1" });
    await expect(run).rejects.toMatchObject({
      code: "RUN_STUCK",
      message: expect.stringContaining(
        'Run ask-1 of ask cannot end by itself: nothing runs, and nothing waits for a time. It waits for signal "approval".',
      ),
      details: { waitsFor: ['waits for signal "approval"'] },
    });
    expect(kit.now()).toEqual(new Date(start));
  });

  test("of a parked run says why it is parked, and nothing that does not fit", async () => {
    const forgetful = workflow("forgetful", async (ctx) => {
      ctx.continueWith();
    });
    const kit = await open([forgetful]);
    const run = kit.run(forgetful, undefined, { id: "f" });
    await expect(run).rejects.toMatchObject({
      code: "RUN_STUCK",
      message:
        "Run f of forgetful cannot end by itself: nothing runs, and nothing waits for a time. It is parked: " +
        "Run f of forgetful called ctx.continueWith and returned something else, which would have ended it. " +
        'It is parked. Write "return ctx.continueWith(…)", then unpark it.',
    });
  });

  test("of a paused run says to resume it", async () => {
    const kit = await open([ask]);
    const run = await kit.start(ask);
    await kit.idle();
    await run.pause();
    await expect(run.result()).rejects.toMatchObject({
      code: "RUN_STUCK",
      message: expect.stringMatching(/It is paused\. Resume it before you await its result\.$/),
    });
  });

  test("is not given up while the test sends what it waits for", async () => {
    const kit = await open([ask]);
    const run = await kit.start(ask);
    const result = run.result();
    await new Promise((resolve) => setTimeout(resolve, 50));
    await run.signal(approval, "yes");
    expect(await result).toBe("yes");
  });

  test("says so of children, externals, and functions that nobody runs", async () => {
    const missing = activity("missing", async () => 1);
    const parent = workflow("parent", async (ctx) => {
      const external = ctx.external({ about: "which?" });
      await Promise.all([ctx.call(ask), ctx.call(missing), external.result()]);
    });
    const kit = await open([parent, ask]);
    const run = kit.run(parent, undefined, { id: "p" });
    await expect(run).rejects.toMatchObject({
      code: "RUN_STUCK",
      details: {
        waitsFor: [
          'waits for an answer to question p.o:1_1, "which?", by questions.answer() or its token',
          expect.stringMatching(
            /^waits for its child p\.\S+ of ask, which waits for signal "approval"$/,
          ),
          expect.stringMatching(
            /^waits for its child p\.\S+ of missing, which waits for a worker: "missing" was not given to testHoldfast\(\[…\]\)$/,
          ),
        ],
      },
    });
  });
});
