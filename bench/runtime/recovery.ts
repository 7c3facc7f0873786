import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { inScratch } from "../scratch.ts";
import { size } from "../sizes.ts";
import { nowMs, percentile } from "./load.ts";
import { WorkerProcess } from "./workers.ts";

const rounds = size(20, 1);

/** Only its name matters here: the processes have the code. */
const endless = workflow("endless", async () => undefined);

/** From the SIGKILL of the process that works on a run to its next step in another one. */
export function recovery(): Promise<object> {
  return inScratch(async (folder) => {
    const path = join(folder, "recovery.db");
    const client = await openHoldfast(path);
    const elapsed: number[] = [];
    let victim = await readyWorker(path);
    for (let round = 0; round < rounds; round += 1) {
      const id = `run-${round}`;
      const stepped = victim.tells("step", id);
      const run = await client.start(endless, undefined, { id });
      await stepped;
      const heir = await readyWorker(path);
      const went = heir.tells("step", id);
      const killedAt = nowMs();
      await victim.kill();
      elapsed.push((await went).at - killedAt);
      await run.cancel({ force: true });
      victim = heir;
    }
    await victim.kill();
    await client.close();
    return {
      value: percentile(elapsed, 0.5),
      unit: "ms from SIGKILL to the next step elsewhere",
      longestMs: percentile(elapsed, 0.999),
      rounds,
      note: "aim: at most 100 in the middle",
    };
  });
}

async function readyWorker(path: string): Promise<WorkerProcess> {
  const worker = new WorkerProcess(path);
  await worker.tells("ready");
  return worker;
}
