import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openSqlite } from "holdfast/sqlite";
import { rows, sql } from "holdfast/stores";

/**
 * What `npm start` shows: a process writes facts with 200 callers at once and
 * says each one aloud when it was acknowledged; in the middle it is killed
 * with SIGKILL; then the file is opened again and every fact is looked for.
 */
const killAfter = Number(process.env["HOLDFAST_DEMO_FACTS"] ?? 60_000);
const folder = mkdtempSync(join(tmpdir(), "holdfast-demo-"));
const path = join(folder, "demo.db");

console.log(
  "Holdfast kernel demo: one SQLite file, 200 concurrent callers, full durability.\n",
);
const writer = spawn(
  process.execPath,
  [
    ...process.execArgv,
    fileURLToPath(new URL("./kernel-demo-writer.ts", import.meta.url)),
    path,
  ],
  { stdio: ["ignore", "pipe", "inherit"] },
);

const acknowledged: string[] = [];
const startedMs = Date.now();
let shownMs = 0;
for await (const fact of createInterface({ input: writer.stdout })) {
  acknowledged.push(fact);
  if (Date.now() - shownMs > 100) shownMs = showProgress();
  if (acknowledged.length === killAfter) writer.kill("SIGKILL");
}
showProgress();

console.log(`\n\nThe writer was killed with SIGKILL. Opening the file again …`);
const reopenedMs = Date.now();
const database = await openSqlite(path);
const found = await database.read("facts", () =>
  rows<{ id: string; halves: number }>(
    sql`SELECT id, count(*) AS halves FROM fact GROUP BY id`,
  ),
);
const whole = new Set(
  found.filter((fact) => fact.halves === 2).map((fact) => fact.id),
);
const lost = acknowledged.filter((fact) => !whole.has(fact));
await database.close();
rmSync(folder, { recursive: true });

console.log(`  open and count again   ${Date.now() - reopenedMs} ms`);
console.log(
  `  acknowledged facts     ${acknowledged.length.toLocaleString("en")}`,
);
console.log(
  `  of these in the file   ${(acknowledged.length - lost.length).toLocaleString("en")}`,
);
console.log(`  facts half there       ${found.length - whole.size}`);
console.log(
  lost.length === 0 && found.length === whole.size
    ? "\nNothing acknowledged was lost."
    : "\nFACTS WERE LOST.",
);
process.exitCode = lost.length === 0 && found.length === whole.size ? 0 : 1;

/** One line that is rewritten on a terminal and left out elsewhere. */
function showProgress(): number {
  const seconds = (Date.now() - startedMs) / 1_000;
  const perSecond = Math.round(acknowledged.length / seconds).toLocaleString(
    "en",
  );
  const bar = "█"
    .repeat(
      Math.round((20 * Math.min(acknowledged.length, killAfter)) / killAfter),
    )
    .padEnd(20, "░");
  const line = `  ${bar} ${acknowledged.length.toLocaleString("en")} durable writes, ${perSecond}/s`;
  if (process.stdout.isTTY) process.stdout.write(`\r${line}`);
  else if (acknowledged.length >= killAfter) process.stdout.write(line);
  return Date.now();
}
