import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openHoldfast, workflow } from "holdfast";

// This file is both client and worker. A worker gets the database's path as an argument.
const place = process.argv[2];

/** Reports the running step to the process that started the worker. */
const tell = (step: string): void => void process.send?.(step);

const build = workflow("build", async (ctx, name: string) => {
  await ctx.step("fetch", () => tell("fetch"));
  await ctx.step("compile", () => tell("compile"));
  // The first process that runs this step is killed below.
  await ctx.step("publish", async () => {
    tell("publish");
    if (place?.endsWith("#1")) await new Promise(() => undefined);
  });
  return `${name} is published`;
});

if (place !== undefined) {
  const holdfast = await openHoldfast(place.replace(/#\d$/, ""));
  await holdfast.work([build]);
  holdfast.closeOnSignals();
  tell("ready");
} else {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-workers-"));
  const file = join(folder, "builds.db");
  const ran = new Map<string, number>();

  const startWorker = async (number: number): Promise<ChildProcess> => {
    const worker = fork(fileURLToPath(import.meta.url), [`${file}#${number}`]);
    await once(worker, "message"); // ready
    worker.on("message", (step: string) => {
      ran.set(step, (ran.get(step) ?? 0) + 1);
    });
    return worker;
  };

  const holdfast = await openHoldfast(file);
  const first = await startWorker(1);
  const run = await holdfast.start(build, "holdfast", { id: "build-1" });
  while (!ran.has("publish")) await once(first, "message");
  const second = await startWorker(2);

  // SIGKILL, without a farewell. The system releases its lock, and the other worker notices.
  first.kill("SIGKILL");
  console.log(await run.result());
  // Counts of each step: recorded steps did not run again, the interrupted one did.
  for (const [step, times] of ran) console.log(`${step}: ${times}`);

  second.kill("SIGTERM");
  await once(second, "exit");
  await holdfast.close();
  rmSync(folder, { recursive: true });
}

// Output:
// holdfast is published
// fetch: 1
// compile: 1
// publish: 2
