import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { openTold } from "./told-database.ts";

/** Works on a workflow whose code takes memory until there is none left. */
const [place = ""] = process.argv.slice(2);

const hungry = workflow("hungry", async (ctx) => {
  await ctx.step("sit down", () => "seated");
  const eaten: number[][] = [];
  for (;;) eaten.push(Array.from({ length: 100_000 }, (_, n) => n));
});

const holdfast = await holdfastOn(await openTold(place));
await holdfast.work([hungry]);
console.log("ready");
