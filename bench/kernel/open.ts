import { size } from "../sizes.ts";
import { join } from "node:path";
import { openPostgres } from "../../src/postgres.ts";
import { openSqlite } from "../../src/sqlite.ts";
import type { Database } from "../../src/sql/database.ts";
import startServer from "../../test/global-setup.ts";
import { cpuMeter, inScratch, median, rounded } from "../scratch.ts";

const rounds = size(15, 1);

interface Opened {
  readonly ms: number;
  /** Processor time of this process; a server's is not in it. */
  readonly cpuMs: number;
  /** The longest time for which the event loop stood still. */
  readonly blockedMs: number;
}

/** How long it takes to open a new database and one that exists, on both databases. */
export async function open(): Promise<object> {
  const sqlite = await inScratch((folder) =>
    measured((round) => openSqlite(join(folder, `${round}.db`))),
  );
  const postgres = await onServer((url) =>
    measured((round) => openPostgres(url, { schema: `bench_${process.pid}_${round}` })),
  );
  return {
    value: sqlite.existing.ms,
    unit: "ms to open a SQLite file that exists",
    rounds,
    sqlite,
    postgres,
    note: "medians of each; the first round, which loads code, is left out",
  };
}

async function measured(
  openIn: (round: number) => Promise<Database>,
): Promise<{ readonly new: Opened; readonly existing: Opened }> {
  const made: Opened[] = [];
  const found: Opened[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    made.push(await once(() => openIn(round)));
    found.push(await once(() => openIn(round)));
  }
  return { new: middle(made.slice(1)), existing: middle(found.slice(1)) };
}

async function once(openOne: () => Promise<Database>): Promise<Opened> {
  const longestMs = watchLoop();
  const cpuMicros = cpuMeter();
  const startedMs = performance.now();
  const database = await openOne();
  const ms = performance.now() - startedMs;
  const cpuMs = cpuMicros() / 1_000;
  const blockedMs = await longestMs();
  await database.close();
  return { ms, cpuMs, blockedMs };
}

/** How late, at worst, a 1 ms timer fires until it is asked. */
function watchLoop(): () => Promise<number> {
  let longestMs = 0;
  let dueMs = performance.now() + 1;
  let timer = setTimeout(function sample() {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - dueMs);
    dueMs = nowMs + 1;
    timer = setTimeout(sample, 1);
  }, 1);
  return async () => {
    // The last block is noticed when the timer has had its turn.
    await new Promise((resolve) => setTimeout(resolve, 3));
    clearTimeout(timer);
    return longestMs;
  };
}

function middle(all: readonly Opened[]): Opened {
  const of = (figure: keyof Opened): number => rounded(median(all.map((opened) => opened[figure])));
  return { ms: of("ms"), cpuMs: of("cpuMs"), blockedMs: of("blockedMs") };
}

async function onServer<T>(body: (url: string) => Promise<T>): Promise<T> {
  const stopServer = await startServer();
  try {
    return await body(process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "");
  } finally {
    await stopServer?.();
  }
}
