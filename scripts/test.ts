import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { memoryFolder } from "./memory-folder.ts";
import { nodeWithSqlite } from "./node-with-sqlite.ts";
import { projectRoot } from "./project.ts";
import { closingLine, countRun, unprovenIds } from "./test-report.ts";
import { leftOutBy, stores } from "./turns.ts";
import type { Counts, VitestReport } from "./test-report.ts";

/**
 * `npm test [-- files or Vitest options]`: everything with the preferred SQLite driver, then the
 * SQLite suites with node:sqlite. With arguments, only what they select, in one run. Deep rounds
 * are for the preferred driver only: what else they find lies above the drivers.
 */
const [depth = "short", ...selection] = process.argv.slice(2);
const seed = process.env["HOLDFAST_TEST_SEED"] ?? String(randomInt(1, 2 ** 31));

const storesInMemory = stores.map((name) => `test/backends/sqlite-memory-${name}.test.ts`);
const storesOnFiles = stores.map((name) => `test/backends/sqlite-file-${name}.test.ts`);

const leftOut = depth === "deep" ? [] : leftOutBy(Number(seed));

const kernelSuites = [
  "test/backends/sqlite-memory-kernel.test.ts",
  "test/backends/sqlite-file-kernel.test.ts",
  "test/sqlite/open.test.ts",
];
/** What else a driver has a part in. */
const driverSuites = [
  "test/sqlite/batches.test.ts",
  "test/sqlite/cut-files.test.ts",
  "test/sqlite/due-plans.test.ts",
  "test/sqlite/ended-transactions.test.ts",
  "test/sqlite/execution-plans.test.ts",
  "test/sqlite/export-rows.test.ts",
  "test/sqlite/failures.test.ts",
  "test/sqlite/heavy-reads.test.ts",
  "test/sqlite/owners.test.ts",
  "test/sqlite/read-only.test.ts",
  "test/sqlite/settling.test.ts",
  "test/sqlite/traces.test.ts",
  "test/crash/busy.test.ts",
  "test/crash/damaged-open.test.ts",
  "test/crash/held-back.test.ts",
  "test/crash/kill.test.ts",
  "test/crash/lost-log.test.ts",
];
/** A missing suite fails the run: it must never pass by not being there. */
const requiredSuites = [
  ...kernelSuites,
  ...driverSuites,
  ...storesInMemory,
  ...storesOnFiles,
  // Once is enough: they take their time, a backup is a process of its own, and the driver's part
  // in the rest is in the suites above.
  "test/crash/backup.test.ts",
  "test/crash/execution-kill.test.ts",
  "test/crash/execution-races.test.ts",
  "test/crash/execution-wake.test.ts",
  "test/crash/notifications.test.ts",
  "test/crash/neighbours.test.ts",
  "test/crash/open-often.test.ts",
  "test/crash/power-loss/opening.test.ts",
  "test/crash/stopped-peers.test.ts",
  "test/crash/churn.test.ts",
  "test/crash/attachments.test.ts",
  "test/crash/awaits.test.ts",
  "test/crash/many-processes.test.ts",
  "test/crash/effects.test.ts",
  "test/crash/kills.test.ts",
  "test/crash/lease.test.ts",
  "test/crash/ledger.test.ts",
  "test/crash/lingering.test.ts",
  "test/crash/open-often.test.ts",
  "test/crash/power-loss/opening.test.ts",
  "test/crash/set-up.test.ts",
  "test/crash/sustained.test.ts",
  "test/crash/triggers.test.ts",
  "test/crash/turns.test.ts",
  "test/sqlite/backup.test.ts",
  "test/backends/postgres-kernel.test.ts",
  "test/backends/postgres-executions.test.ts",
  "test/backends/postgres-sessions.test.ts",
  "test/backends/postgres-processes.test.ts",
  "test/backends/postgres-effects.test.ts",
  "test/backends/postgres-awaits.test.ts",
  "test/backends/postgres-triggers.test.ts",
  "test/postgres/benchmarks.test.ts",
  "test/postgres/effect-races.test.ts",
  "test/postgres/exhaustion.test.ts",
  "test/postgres/isolation.test.ts",
  "test/postgres/kills.test.ts",
  "test/postgres/ledger.test.ts",
  "test/postgres/lingering.test.ts",
  "test/postgres/readme.test.ts",
  "test/postgres/stale-snapshot-effects.test.ts",
  "test/postgres/stale-snapshot-executions.test.ts",
  "test/postgres/stale-snapshot-sessions.test.ts",
];

const reports = mkdtempSync(path.join(tmpdir(), "holdfast-test-"));
const temporary = temporaryFolder();
const runs: Counts[] = [];
const reported: VitestReport[] = [];
console.log(`Seed ${seed}, depth ${depth}.`);
try {
  if (selection.length > 0) {
    console.log("Running only the selection.");
    runs.push(await runVitest(process.execPath, selection, [], {}));
  } else {
    runs.push(
      await runVitest(
        process.execPath,
        [],
        requiredSuites.filter((suite) => !leftOut.includes(suite)),
        { HOLDFAST_TEST_WHOLE: "yes", HOLDFAST_TEST_LEFT_OUT: leftOut.join(",") },
      ),
    );
    const again = [
      ...kernelSuites,
      ...inTurn(driverSuites, 4),
      ...inTurn(storesInMemory, storesInMemory.length),
    ];
    console.log("\nThe SQLite suites again, with node:sqlite.");
    runs.push(
      await runVitest(nodeWithSqlite(), again, again, {
        HOLDFAST_TEST_DRIVER: "node:sqlite",
        HOLDFAST_TEST_DEPTH: "short",
      }),
    );
    const page = readFileSync(path.join(projectRoot, "docs/conformance.md"), "utf8");
    for (const id of unprovenIds(reported, page)) {
      console.log(`FAIL no test of ${id} passed.`);
      runs.push({ passed: 0, failed: 1, skipped: 0 });
    }
  }
} catch (error) {
  console.error(error);
  runs.push({ passed: 0, failed: 1, skipped: 0 });
} finally {
  removeFolders();
}

const failed = runs.some((run) => run.failed > 0);
if (failed) console.log(`\nTo repeat: HOLDFAST_TEST_SEED=${seed}`);
console.log(closingLine(runs));
process.exitCode = failed ? 1 : 0;

/**
 * Where tests put their files. A short run has them in memory, where no disk
 * makes a flush wait: that took a tenth of its time. A deep one has them on
 * the disk that TMPDIR names, and so has each run that is told a TMPDIR.
 */
function temporaryFolder(): string | undefined {
  const parent = memoryFolder();
  const isChosen = process.env["TMPDIR"] !== undefined;
  if (depth === "deep" || isChosen || parent === undefined) return undefined;
  // A short name, since the paths of sockets are bounded.
  const made = mkdtempSync(path.join(parent, "hf"));
  // Some tests run as another user, who must be able to enter.
  chmodSync(made, 0o1777);
  return made;
}

function removeFolders(): void {
  for (const folder of [reports, temporary])
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
}

/**
 * Stores and most else see a driver through the kernel alone, whose suites always run with both.
 * So a short run has one of the others in so many, by its seed, and a deep run has all.
 */
function inTurn(suites: readonly string[], oneIn: number): readonly string[] {
  if (depth === "deep") return suites;
  return suites.filter((_, index) => index % oneIn === Number(seed) % oneIn);
}

async function runVitest(
  node: string,
  files: readonly string[],
  required: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Counts> {
  const reportFile = path.join(reports, `${runs.length}.json`);
  const vitest = spawn(
    node,
    [
      path.join(projectRoot, "node_modules/vitest/vitest.mjs"),
      "run",
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${reportFile}`,
      ...files,
    ],
    {
      cwd: projectRoot,
      stdio: "inherit",
      env: {
        ...process.env,
        HOLDFAST_TEST_SEED: seed,
        HOLDFAST_TEST_DEPTH: depth,
        ...(temporary !== undefined && { TMPDIR: temporary }),
        ...environment,
      },
    },
  );
  // Ended alone (a timeout of CI, say), this process takes Vitest with it.
  let interrupted: NodeJS.Signals | undefined;
  const forward = (signal: NodeJS.Signals): void => {
    interrupted = signal;
    vitest.kill(signal);
  };
  process.on("SIGINT", forward).on("SIGTERM", forward);
  const [code] = (await once(vitest, "close")) as [number | null];
  process.off("SIGINT", forward).off("SIGTERM", forward);
  if (interrupted !== undefined) {
    // Whoever interrupts wants the end, not a list of what did not run.
    removeFolders();
    console.log("\nInterrupted.");
    process.exit(interrupted === "SIGINT" ? 130 : 143);
  }
  const report = readReport(reportFile);
  if (report !== undefined) reported.push(report);
  const counts = countRun(report, code ?? 1, required);
  for (const complaint of counts.complaints) console.log(`FAIL ${complaint}`);
  // A selection by title skips everything else, which nobody wants to read.
  if (required.length > 0) for (const name of counts.skippedNames) console.log(`SKIP ${name}`);
  return counts;
}

function readReport(file: string): VitestReport | undefined {
  try {
    const report = JSON.parse(readFileSync(file, "utf8")) as VitestReport;
    const testResults = report.testResults.map((result) => ({
      ...result,
      name: path.relative(projectRoot, result.name).replaceAll("\\", "/"),
    }));
    return { testResults };
  } catch {
    return undefined;
  }
}
