import { mkdirSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { openSqliteWith } from "../../src/backends/sqlite/open.ts";
import { addNote, noteCount } from "../conformance/notes.ts";
import { driverName } from "../sqlite/place.ts";

/**
 * Opens and closes a file so many times, reads each time and writes now and
 * then, and reports before and after what a process may forget to give back.
 */
const [path = "", rounds = "1", writesEvery = "1"] = process.argv.slice(2);
const socketBase = join(dirname(path), "sockets");
mkdirSync(socketBase);
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

async function round(number: number): Promise<void> {
  const options = { driver: driverName };
  const database = await openSqliteWith(path, options, { socketBase });
  const stop = database.subscribe(() => undefined);
  await noteCount(database);
  if (number % Number(writesEvery) === 0)
    await database.write(addNote, { id: `${rounds}-${number}` });
  stop();
  await database.close();
}

/** What the system gives a process, and takes back. */
const lent = (): {
  readonly descriptors: number;
  readonly threads: number;
} => ({
  descriptors: readdirSync("/proc/self/fd").length,
  threads: readdirSync("/proc/self/task").length,
});

/** Sockets and threads that were closed are let go by the system a moment later; on a busy machine that may be long. */
async function settled(isSo: (turn: number) => boolean): Promise<void> {
  for (let turn = 0; turn < 1_000 && !isSo(turn); turn += 1)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

async function report(): Promise<void> {
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  const found = {
    ...lent(),
    files: readdirSync(dirname(path)),
    sockets: readdirSync(socketBase),
    heapBytes: heapUsed,
    residentBytes: rss,
  };
  process.stdout.write(`${JSON.stringify(found)}\n`);
}

// What is loaded and compiled once is not what is looked for.
for (let number = 1; number <= 2 * Number(writesEvery); number += 1) await round(-number);
await settled((turn) => turn === 20);
const before = lent();
await report();
for (let number = 1; number <= Number(rounds); number += 1) {
  await round(number);
  // Native memory goes with the objects that it belongs to, and a small heap
  // is rarely collected: without this, 800 MB come and go.
  if (number % 100 === 0) collectGarbage();
}
await settled(() => {
  const { descriptors, threads } = lent();
  return descriptors <= before.descriptors && threads <= before.threads;
});
await report();
