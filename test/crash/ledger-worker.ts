import { createInterface } from "node:readline";
import { stepBody } from "./ledger.ts";
import type { Step } from "./ledger.ts";
import { openTold } from "./told-database.ts";

/** A process that runs the steps of each line all at once, and reports which of them were done. */
const [place = ""] = process.argv.slice(2);

const database = await openTold(place);
process.stdout.write("open\n");

for await (const line of createInterface({ input: process.stdin })) {
  if (line === "end") break;
  const steps = JSON.parse(line) as readonly Step[];
  const done = await Promise.all(
    steps.map((step) => database.write(step.kind, () => stepBody(step))),
  );
  process.stdout.write(`${JSON.stringify(done)}\n`);
}
await database.close();
process.exit(0);
