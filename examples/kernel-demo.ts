import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "holdfast/sqlite";
import { rows, run, sql } from "holdfast/kernel";
import { endWriters, onInterrupt, startWriter } from "./kernel-demo-workers.ts";

/**
 * What `npm start` shows: two processes write facts to one file, 100 callers
 * each, and say each one aloud when it was acknowledged. In the middle one of
 * them is killed with SIGKILL. The other notices and goes on; in the end the
 * file is looked through for every fact that was promised.
 */
const factsBeforeKill = Number(process.env["HOLDFAST_DEMO_FACTS"] ?? 120_000);
const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
const path = join(folder, "demo.db");
const number = (value: number): string => value.toLocaleString("en");

console.log(
  "Holdfast kernel demo: one SQLite file, two processes, full durability.\n",
);
let open: { close(): Promise<void> } | undefined;
onInterrupt(async () => {
  await endWriters();
  await open?.close();
  rmSync(folder, { recursive: true, force: true });
});
const database = await openSqlite(path);
open = database;
await database.write("table", () =>
  run(sql`CREATE TABLE fact (id TEXT NOT NULL, half INTEGER NOT NULL) STRICT`),
);

const ada = await startWriter(path, "ada");
const bob = await startWriter(path, "bob");
console.log(
  `  ada is process ${ada.process.pid}, bob is process ${bob.process.pid}.\n`,
);
const facts = (): number => ada.acknowledged.length + bob.acknowledged.length;
const startedMs = performance.now();
const startedFacts = facts();
await progressUntil(factsBeforeKill);

const death = new Promise<number>((resolve) => {
  database.subscribe((hint) => {
    if (hint.kind === "death") resolve(performance.now());
  });
});
const killedMs = performance.now();
ada.process.kill("SIGKILL");
const noticedMs = (await death) - killedMs;
console.log(
  `\n\n  ada was killed with SIGKILL; its death was proven ${noticedMs.toFixed(1)} ms later.\n`,
);
await progressUntil(facts() + factsBeforeKill / 4);
bob.process.kill("SIGKILL");
await Promise.all([ada.ended, bob.ended]);
await database.close();

console.log("\n\nBoth writers are gone. Opening the file again …");
const reopenedMs = performance.now();
const reopened = await openSqlite(path);
open = reopened;
const found = await reopened.read("facts", () =>
  rows<{ id: string; halves: number }>(
    sql`SELECT id, count(*) AS halves FROM fact GROUP BY id`,
  ),
);
const whole = new Set(
  found.filter((fact) => fact.halves === 2).map((fact) => fact.id),
);
const promised = [...ada.acknowledged, ...bob.acknowledged];
const lost = promised.filter((fact) => !whole.has(fact));
const { ok } = await reopened.check({ full: true });
await reopened.close();
rmSync(folder, { recursive: true, force: true });

const elapsedMs = Math.round(performance.now() - reopenedMs);
console.log(`  opened, counted, checked   ${elapsedMs} ms`);
console.log(`  acknowledged facts         ${number(promised.length)}`);
console.log(
  `  of these in the file       ${number(promised.length - lost.length)}`,
);
console.log(`  facts half there           ${found.length - whole.size}`);
console.log(`  damage found               ${ok ? "none" : "SOME"}`);
const holds = ok && lost.length === 0 && found.length === whole.size;
console.log(holds ? "\nNothing acknowledged was lost." : "\nFACTS WERE LOST.");
process.exitCode = holds ? 0 : 1;

/** Shows one line that is rewritten on a terminal, and written once elsewhere. */
async function progressUntil(count: number): Promise<void> {
  const from = facts();
  while (facts() < count) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (process.stdout.isTTY) process.stdout.write(`\r${line(from, count)}`);
  }
  if (!process.stdout.isTTY) process.stdout.write(line(from, count));
}

function line(from: number, count: number): string {
  const share = Math.min(1, (facts() - from) / (count - from));
  const bar = "█".repeat(Math.round(20 * share)).padEnd(20, "░");
  const perSecond =
    (facts() - startedFacts) / ((performance.now() - startedMs) / 1_000);
  return `  ${bar} ${number(facts())} durable writes, ${number(Math.round(perSecond))}/s`;
}
