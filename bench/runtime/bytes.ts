import { statSync } from "node:fs";
import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { inScratch } from "../scratch.ts";
import { size } from "../sizes.ts";
import { stepping, stepsPerSecond } from "./load.ts";

const shape = { workflows: size(200, 3), steps: size(100, 10) };

/** What a step leaves in the file, and what it writes to the log: one that is never restarted tells by its length. */
export function bytes(): Promise<object> {
  return inScratch(async (folder) => {
    const path = join(folder, "bytes.db");
    const holdfast = await openHoldfast(path, {
      sqlite: { limits: { walBytes: 1_073_741_824 } },
    });
    await holdfast.work([stepping], { concurrency: 1_000 });
    await stepsPerSecond(holdfast, { workflows: 20, steps: 5 });
    const log = (): number => statSync(`${path}-wal`).size;
    const before = log();
    await stepsPerSecond(holdfast, shape);
    const written = log() - before;
    await holdfast.close();
    const count = shape.workflows * shape.steps + 100;
    return {
      value: Math.round(statSync(path).size / count),
      unit: "bytes of the file per step",
      logBytesPerStep: Math.round(written / (shape.workflows * shape.steps)),
      ...shape,
      note: "runs and empty tables included; aims: at most 250, and 1,024 of log",
    };
  });
}
