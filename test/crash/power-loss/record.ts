// Runs processes under shim.c and returns the recording of what they did to their database.
import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { seededRandom } from "../../depth.ts";
import { crashImages } from "./images.ts";
import { basePath, fileNames, livePath, logPath, readRecording, statePath } from "./recording.ts";
import type { Recording } from "./recording.ts";

export interface RecordedProcess {
  /** A script for Node. A .ts file is run through tsx. */
  readonly script: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Ends by itself when its standard input ends, which happens once all others of its generation have ended. */
  readonly background?: boolean;
  readonly flushDelayMs?: number;
  /** So many fdatasync calls (our own flushes) succeed, later ones fail with EIO. */
  readonly failFdatasyncAfter?: number;
  /** The same for fsync, which better-sqlite3's SQLite uses. */
  readonly failFsyncAfter?: number;
  /** After so many failures flushes succeed again, as Linux reports a lost write once to each descriptor that is open. Default: never. */
  readonly failTimes?: number;
  /** Dies by SIGKILL in place of its next recorded call after so many. The recording stays exact. */
  readonly killAfterCalls?: number;
}

export interface RecordRun {
  /** The processes of a generation run together; the next generation starts when all of them have ended. */
  readonly generations: readonly (readonly RecordedProcess[])[];
  /** Call the real fsync and fdatasync too. Default false: the images do not depend on it, and it is slow. */
  readonly realFlushes?: boolean;
  /** Puts an existing database (with its -wal, if any) at the path. It counts as durable. */
  readonly prepare?: (database: string) => void | Promise<void>;
  readonly timeoutMs?: number;
}

/**
 * Records a run. Each process finds the path of the database in `HOLDFAST_DATABASE` and tells what it has promised or
 * seen by appending to `HOLDFAST_DATABASE + ".marks"`; each write is one mark, placed in the log in true order:
 *
 * ```js
 * const marks = fs.openSync(process.env.HOLDFAST_DATABASE + ".marks", "a");
 * await database.write(appendEvent, input);
 * fs.writeSync(marks, JSON.stringify({ acknowledged: input.id })); // after the promise resolved
 * ```
 *
 * The test then chooses crash points and asks of every image whether it holds what was marked before the crash:
 *
 * ```ts
 * const recording = await recordRun({ generations: [[{ script: writer }, { script: writer }], [{ script: writer }]] });
 * const { problems } = await surveyCrashes(recording, {
 *   crashPoints: chooseCrashPoints(recording, 40, random),
 *   random,
 *   checkFacts: (connection, marks) => whatIsMissing(connection, marks),
 * });
 * ```
 *
 * Throws when a process fails, and when replaying the log does not give the files that the processes left behind: then
 * the shim missed a write and no image could be trusted. The recording stays on disk until `removeRecording`, so that
 * a failure can be studied with `readRecording`.
 */
export async function recordRun(run: RecordRun): Promise<Recording> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-power-loss-")));
  const database = livePath(directory);
  mkdirSync(dirname(database));
  mkdirSync(basePath(directory));
  await run.prepare?.(database);
  for (const name of fileNames) {
    if (existsSync(database + name))
      copyFileSync(database + name, join(basePath(directory), basename(database) + name));
  }
  const shared = {
    LD_PRELOAD: await buildShim(directory),
    // libuv's io_uring would write behind the back of the C library.
    UV_USE_IO_URING: "0",
    HOLDFAST_DATABASE: database,
    HOLDFAST_SHIM_DATABASE: database,
    HOLDFAST_SHIM_LOG: logPath(directory),
    HOLDFAST_SHIM_STATE: statePath(directory),
    HOLDFAST_SHIM_SKIP_FLUSH: run.realFlushes === true ? "0" : "1",
  };
  for (const generation of run.generations) {
    await runGeneration(generation, shared, run.timeoutMs ?? 120_000).catch((error: unknown) => {
      throw new Error(`A recorded process failed; the recording is kept in ${directory}.`, {
        cause: error,
      });
    });
  }
  const recording = readRecording(directory);
  if (!recording.records.some((record) => record.kind === "write")) {
    removeRecording(recording);
    throw new Error(
      "Nothing was recorded: no process wrote to the database named in HOLDFAST_DATABASE.",
    );
  }
  assertComplete(recording);
  return recording;
}

export function removeRecording(recording: Recording): void {
  rmSync(recording.directory, { recursive: true, force: true });
}

let library: Promise<Buffer> | undefined;

/** Puts the shim into the folder and returns its path. It is compiled once per process. */
async function buildShim(directory: string): Promise<string> {
  library ??= compileShim();
  const path = join(directory, "shim.so");
  writeFileSync(path, await library);
  return path;
}

async function compileShim(): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-shim-"));
  const output = join(directory, "shim.so");
  const source = fileURLToPath(new URL("./shim.c", import.meta.url));
  const flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror"];
  try {
    await promisify(execFile)("cc", [...flags, "-o", output, source, "-ldl", "-lpthread"]);
    return readFileSync(output);
  } catch (error) {
    throw new Error("The power-loss tests need a C compiler named `cc` that can build shim.c.", {
      cause: error,
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function runGeneration(
  generation: readonly RecordedProcess[],
  shared: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<void> {
  const running = generation.map((recorded) => ({
    recorded,
    ...start(recorded, shared),
  }));
  const timer = setTimeout(() => running.forEach(({ child }) => child.kill("SIGKILL")), timeoutMs);
  try {
    const foreground = running.filter(({ recorded }) => recorded.background !== true);
    const ended = await Promise.allSettled(foreground.map((one) => one.ended));
    for (const { child } of running) child.stdin?.end();
    for (const result of [
      ...ended,
      ...(await Promise.allSettled(running.map((one) => one.ended))),
    ]) {
      if (result.status === "rejected") throw result.reason;
    }
  } finally {
    clearTimeout(timer);
  }
}

interface Running {
  readonly child: ChildProcess;
  /** Resolves when the process ended as it should, else rejects with what it said. */
  readonly ended: Promise<void>;
}

function start(recorded: RecordedProcess, shared: Readonly<Record<string, string>>): Running {
  const loader = recorded.script.endsWith(".ts") ? ["--import", "tsx"] : [];
  const child = spawn(process.execPath, [...loader, recorded.script, ...(recorded.args ?? [])], {
    env: {
      ...process.env,
      ...shared,
      ...injections(recorded),
      ...recorded.env,
    },
    stdio: ["pipe", "pipe", "pipe"],
  });
  let said = "";
  child.stdout.on("data", (text: Buffer) => (said += text.toString()));
  child.stderr.on("data", (text: Buffer) => (said += text.toString()));
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      const asPlanned =
        code === 0 || (signal === "SIGKILL" && recorded.killAfterCalls !== undefined);
      if (asPlanned) resolve();
      else
        reject(
          new Error(
            `${basename(recorded.script)} ended with ${signal ?? `code ${code}`}:\n${said}`,
          ),
        );
    });
  });
  return { child, ended };
}

function injections(recorded: RecordedProcess): Record<string, string> {
  const values = {
    FLUSH_DELAY_MS: recorded.flushDelayMs,
    FAIL_FDATASYNC_AFTER: recorded.failFdatasyncAfter,
    FAIL_FSYNC_AFTER: recorded.failFsyncAfter,
    FAIL_TIMES: recorded.failTimes,
    KILL_AFTER: recorded.killAfterCalls,
  };
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined) env[`HOLDFAST_SHIM_${name}`] = String(value);
  }
  return env;
}

/** The log replayed without a crash must give exactly the files that are there. */
function assertComplete(recording: Recording): void {
  const { records, directory } = recording;
  if (recording.cutShort) return;
  const replay = crashImages(recording, {
    crashPoints: [records.length],
    mode: "kept",
    random: seededRandom(0),
  });
  for (const image of replay) {
    for (const name of fileNames) {
      const path = livePath(directory) + name;
      const real = existsSync(path) ? readFileSync(path) : undefined;
      const replayed = image.files.get(name);
      if (real === undefined ? replayed !== undefined : replayed?.equals(real) !== true) {
        throw new Error(
          `The recording in ${directory} does not lead to the real ${basename(path)}: a call was missed.`,
        );
      }
    }
  }
}
