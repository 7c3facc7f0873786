import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { go, nowMs } from "./load.ts";

/** A process that works on runs, and says when their code goes on. */
const [place = ""] = process.argv.slice(2);

export interface Told {
  readonly what: "ready" | "step" | "received";
  readonly run: string;
  readonly at: number;
}

const tell = (what: Told["what"], run = ""): void => {
  process.send?.({ what, run, at: nowMs() } satisfies Told);
};

/** Steps of a few milliseconds for as long as it lives: somebody kills it. */
const endless = workflow("endless", async (ctx) => {
  const { id } = ctx;
  for (;;)
    await ctx.step("step", async () => {
      tell("step", id);
      await new Promise((resolve) => setTimeout(resolve, 5));
    });
});

const listening = workflow("listening", async (ctx) => {
  const { id } = ctx;
  await ctx.step("begin", () => tell("step", id));
  await ctx.receive(go);
  await ctx.step("end", () => tell("received", id));
});

const holdfast = await openHoldfast(place);
await holdfast.work([endless, listening]);
process.once("disconnect", () => process.exit(0));
tell("ready");
