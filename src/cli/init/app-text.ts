/** The first file of a project: it runs by itself, and `holdfast dev` runs its exports. */
export function appText(name: "app.mts" | "app.mjs"): string {
  const typed = (annotation: string): string => (name === "app.mts" ? annotation : "");
  return `import { existsSync, realpathSync } from "node:fs";
import { activity, openHoldfast, workflow } from "holdfast";

// An activity talks to the outside world. It is retried when it fails.
export const charge = activity("charge", async (ctx, cents${typed(": number")}) => {
  console.log(\`charging \${cents} cents, attempt \${ctx.attempt}\`);
  return { receipt: \`receipt-\${cents}\` };
});

// A workflow resumes where it stopped when its process dies, because ctx records results.
export const fulfil = workflow("fulfil", async (ctx, order${typed(": string")}) => {
  const { receipt } = await ctx.call(charge, 500);
  const label = await ctx.step("print label", () => \`label of \${order}\`);
  await ctx.sleep("3 seconds"); // Kill the process now, and run it again.
  return { receipt, label };
});

// \`node ${name}\` runs this part; \`npx holdfast dev ${name}\` uses only the exports.
const [, script = ""] = process.argv;
if (existsSync(script) && realpathSync(script) === import.meta.filename) {
  const holdfast = await openHoldfast("./holdfast.db");
  await holdfast.work([fulfil, charge]);
  const run = await holdfast.start(fulfil, "order-1", { id: "order-1" });
  console.log(await run.result());
  await holdfast.close();
}
`;
}
