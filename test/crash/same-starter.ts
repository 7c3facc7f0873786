import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { holdfastOn } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { openTold } from "./told-database.ts";

/** Told to go, it starts fifty runs under ids that another process starts too, and works on them. */
const [place = "", effects = ""] = process.argv.slice(2);

const counting = workflow("counting", async (ctx, n: number) =>
  ctx.step("count", () => {
    appendFileSync(effects, `${n}\n`);
    return n;
  }),
);
const holdfast = await holdfastOn(await openTold(place));
await holdfast.work([counting]);
console.log("ready");
for await (const _ of createInterface({ input: process.stdin })) {
  const runs = await Promise.all(
    Array.from({ length: 50 }, (__, n) => holdfast.start(counting, n, { id: `same-${n}` })),
  );
  const results = await Promise.all(runs.map((run) => run.result()));
  console.log(JSON.stringify(results));
}
