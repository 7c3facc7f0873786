import { setMaxListeners } from "node:events";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { executions } from "../../src/stores/execution/executions.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { appendSteps, lockedTargets, throughStore } from "./load.ts";

const callers = size(250, 5);
const each = size(80, 2);
const waiting = size(10_000, 20);
const rounds = size(5, 1);

interface Figures {
  readonly appendsPerSecond: number;
  readonly cpuMicros: number;
}

/** Appends while others wait for responses and results of runs of their own: what each waiter adds to an append. */
export function waiters(): Promise<object> {
  return inScratch(async (folder) => {
    const alone: Figures[] = [];
    const beside: Figures[] = [];
    for (let round = 0; round < rounds; round += 1) {
      alone.push(await measured(join(folder, `alone-${round}.db`), 0));
      beside.push(await measured(join(folder, `beside-${round}.db`), waiting));
    }
    const cpuOf = (figures: readonly Figures[]): number =>
      median(figures.map(({ cpuMicros }) => cpuMicros));
    return {
      waiters: waiting,
      value: rounded(cpuOf(beside)),
      unit: "microseconds of processor time per append",
      ceiling: rounded(cpuOf(alone)),
      ratio: rounded(cpuOf(beside) / cpuOf(alone)),
      appendsPerSecond: Math.round(median(beside.map(({ appendsPerSecond }) => appendsPerSecond))),
      ceilingAppendsPerSecond: Math.round(
        median(alone.map(({ appendsPerSecond }) => appendsPerSecond)),
      ),
      rounds,
    };
  });
}

async function measured(path: string, count: number): Promise<Figures> {
  const database = await openSqlite(path);
  const log = executions(database);
  const targets = await lockedTargets(log, callers);
  const others = await lockedTargets(log, count, "waiter");
  const end = new AbortController();
  const { signal } = end;
  setMaxListeners(0, signal);
  const waits = others.map(({ id }, index) =>
    index % 2 === 0 ? log.waitForResponses(id, 0, { signal }) : log.waitForResult(id, { signal }),
  );
  const ended = Promise.allSettled(waits);
  // Each has looked, and only listens from now on.
  for (const { id } of others) await log.get(id);
  const shares = targets.map((target) => [target]);
  const cpu = cpuMeter();
  const appendsPerSecond = await appendSteps(throughStore(log), shares, each);
  const cpuMicros = cpu() / (callers * each);
  end.abort();
  await ended;
  await database.close();
  return { appendsPerSecond, cpuMicros };
}
