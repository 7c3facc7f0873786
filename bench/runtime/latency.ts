import { join } from "node:path";
import { openHoldfast } from "../../src/open/open-holdfast.ts";
import { workflow } from "../../src/runtime/definition/definitions.ts";
import { inScratch } from "../scratch.ts";
import { size } from "../sizes.ts";
import { go, nowMs, spread } from "./load.ts";
import { WorkerProcess } from "./workers.ts";

const rounds = size(300, 2);

interface Elapsed {
  readonly start: number[];
  readonly signal: number[];
}

/** From `start` to the first step, and from `signal` to the code behind `receive`: in one process, and from a client to a worker. */
export function latency(): Promise<object> {
  return inScratch(async (folder) => {
    const within = await inOneProcess(join(folder, "one.db"));
    const across = await acrossTwo(join(folder, "two.db"));
    return {
      value: spread(within.start).p50,
      unit: "ms from start to first step in one process",
      oneProcess: {
        start: spread(within.start),
        signal: spread(within.signal),
      },
      twoProcesses: {
        start: spread(across.start),
        signal: spread(across.signal),
      },
      rounds,
    };
  });
}

async function inOneProcess(path: string): Promise<Elapsed> {
  const elapsed: Elapsed = { start: [], signal: [] };
  let began: (at: number) => void = () => undefined;
  let received: (at: number) => void = () => undefined;
  const listening = workflow("listening", async (ctx) => {
    await ctx.step("begin", () => began(nowMs()));
    await ctx.receive(go);
    await ctx.step("end", () => received(nowMs()));
  });
  const holdfast = await openHoldfast(path);
  await holdfast.work([listening]);
  for (let round = 0; round < rounds; round += 1) {
    const begins = new Promise<number>((resolve) => (began = resolve));
    const receives = new Promise<number>((resolve) => (received = resolve));
    const startedAt = nowMs();
    const run = await holdfast.start(listening);
    elapsed.start.push((await begins) - startedAt);
    await untilBlocked(run);
    const sentAt = nowMs();
    await run.signal(go, round);
    elapsed.signal.push((await receives) - sentAt);
    await run.result();
  }
  await holdfast.close();
  return elapsed;
}

/** Only its name matters here: the process has the code. */
const elsewhere = workflow("listening", async () => undefined);

async function acrossTwo(path: string): Promise<Elapsed> {
  const elapsed: Elapsed = { start: [], signal: [] };
  const client = await openHoldfast(path);
  const worker = new WorkerProcess(path);
  await worker.tells("ready");
  for (let round = 0; round < rounds; round += 1) {
    const id = `run-${round}`;
    const begins = worker.tells("step", id);
    const receives = worker.tells("received", id);
    const startedAt = nowMs();
    const run = await client.start(elsewhere, undefined, { id });
    elapsed.start.push((await begins).at - startedAt);
    await untilBlocked(run);
    const sentAt = nowMs();
    await run.signal(go, round);
    elapsed.signal.push((await receives).at - sentAt);
    await run.result();
  }
  await worker.kill();
  await client.close();
  return elapsed;
}

async function untilBlocked(run: { status(): Promise<string> }): Promise<void> {
  while ((await run.status()) !== "blocked") await new Promise((resolve) => setTimeout(resolve, 1));
}
