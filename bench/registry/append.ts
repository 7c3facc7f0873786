import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { openSqlite } from "../../src/sqlite.ts";
import { processes } from "../../src/stores/process/processes.ts";
import { compared, inScratch, rounded } from "../scratch.ts";
import { handWrittenEvents, writtenEvents } from "./ceiling.ts";
import { appendAll, wakersIn } from "./load.ts";
import { compiled } from "../../test/compile-children.ts";
import { size } from "../sizes.ts";

const callers = size(200, 4);
const each = size(20, 2);
const rounds = size(7, 1);
const wakes = size(200, 3);

/** Events that wake a session each, full durability; and how long a waiter in another process waits for one. */
export function append(): Promise<object> {
  return inScratch(async (folder) => {
    const values: number[] = [];
    const ceilings: number[] = [];
    let eventsPerTransaction = 0;
    for (let round = 0; round < rounds; round += 1) {
      const path = join(folder, `ours-${round}.db`);
      const database = await openSqlite(path);
      const ids = await wakersIn(database, callers);
      const before = database.stats();
      values.push(await appendAll(database, ids, each));
      const after = database.stats();
      eventsPerTransaction = Math.round(
        (after.calls - before.calls) / (after.commits - before.commits),
      );
      await database.close();

      const ceilingPath = join(folder, `ceiling-${round}.db`);
      const other = await openSqlite(ceilingPath);
      await wakersIn(other, callers);
      await other.close();
      const rows = writtenEvents(path);
      ceilings.push(handWrittenEvents(ceilingPath, rows, eventsPerTransaction));
    }
    return {
      ...compared(values, ceilings),
      unit: "events/s",
      eventsPerTransaction,
      ...(await wakeLatency(folder)),
      note: "ceiling looks up and writes the same rows, already encoded and hashed",
    };
  });
}

/** From the acknowledged append here to the waiter in another process. */
async function wakeLatency(folder: string): Promise<object> {
  const path = join(folder, "wake.db");
  const database = await openSqlite(path);
  const [id = ""] = await wakersIn(database, 1);
  const store = processes(database);
  const waiter = fork(compiled("registry/waiter.ts", "bench"), [path], {
    execArgv: [],
  });
  await once(waiter, "message");
  const elapsedMs: number[] = [];
  for (let count = 0; count < wakes; count += 1) {
    const payload = { text: `wake ${count}` };
    const consumed = once(waiter, "message") as Promise<[number]>;
    await store.append(id, { type: "found", payload });
    const at = performance.timeOrigin + performance.now();
    const [cameAt] = await consumed;
    elapsedMs.push(cameAt - at);
  }
  waiter.disconnect();
  await once(waiter, "exit");
  const { polls } = database.stats();
  await database.close();
  const sorted = elapsedMs.toSorted((a, b) => a - b);
  const percentile = (share: number): number =>
    rounded(sorted[Math.floor(sorted.length * share)] ?? Number.NaN);
  return {
    wakeMsP50: percentile(0.5),
    wakeMsP99: percentile(0.99),
    wakes,
    polls,
  };
}
