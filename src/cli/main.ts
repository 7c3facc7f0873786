#!/usr/bin/env node
import { createInterface } from "node:readline/promises";
import { systemClock } from "../host/clock.ts";
import { later } from "../host/timers.ts";
import { HoldfastError } from "../model/errors.ts";
import type { CliHost, StopReason } from "./host.ts";
import { runCli } from "./program.ts";

/**
 * The command `holdfast`. Rules for its commands:
 *
 * - Each command has a file in `commands/`, which exports `add…(program, cli)`.
 *   It describes itself to commander and passes `.action(cli.action(body))`.
 *   `program.ts` and docs/cli.md list it; a test compares both.
 * - The body gets a `CliContext`. A command that only reads calls
 *   `openForReading()`, which is safe beside workers and creates nothing. One
 *   that changes runs calls `openForWriting()`: the database must exist, and is
 *   not migrated. One that runs code uses `target()` and `config()`. The context
 *   closes whatever it opened when the body ends.
 * - It answers with `context.answer(value, () => text)`: one JSON document
 *   under `--json`, text for people otherwise. A stream prints JSON lines.
 *   Progress and hints go to `context.note`, on standard error.
 *   User data is printed through a table, `oneLine` or, on several lines, `barred`.
 * - It throws `HoldfastError`s, whose code decides the exit code (exit-codes.ts),
 *   or returns an exit code. It never calls `process.exit`, `console` or a
 *   clock: `CliHost` provides them, so that tests run commands in-process with
 *   `runCli(args, host)`.
 * - Every wait gets `context.stop`. After Ctrl-C a long command reports its
 *   progress with `note` and ends with code 130.
 */
const stop = new AbortController();
const leftOpenMs = 500;
const stopBy = (reason: StopReason): void => stop.abort(reason);

for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => {
    stopBy(name);
    // A second signal ends the process at once.
    process.once(name, () => process.exit(name === "SIGINT" ? 130 : 143));
  });

// `holdfast list | head`: the reader is gone, so there is nothing left to print.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return stopBy("EPIPE");
    // For example a full disk: all further output would be lost too.
    if (stream === process.stdout)
      process.stderr.write(`The output cannot be written: ${error.message}\n`);
    process.exit(1);
  });

const host: CliHost = {
  stdout: process.stdout,
  stderr: process.stderr,
  readInput,
  ask: process.stdin.isTTY && process.stderr.isTTY ? ask : undefined,
  env: process.env,
  cwd: process.cwd(),
  clock: systemClock,
  timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone,
  stop: stop.signal,
};

process.exitCode = await runCli(process.argv.slice(2), host);
later(leftOpenMs, endAnyway);

/** Ends the process once its output is read, even if a user's module left handles open. */
function endAnyway(): void {
  const unread = process.stdout.writableLength + process.stderr.writableLength;
  if (unread > 0) later(leftOpenMs, endAnyway);
  else process.exit();
}

async function readInput(): Promise<string> {
  let text = "";
  const { stdin } = process;
  const end = (): void => {
    const message = "Stopped while reading standard input. Nothing was changed.";
    stdin.destroy(new HoldfastError("ABORTED", message));
  };
  stop.signal.addEventListener("abort", end, { once: true });
  stdin.setEncoding("utf8");
  for await (const part of stdin) text += String(part);
  stop.signal.removeEventListener("abort", end);
  return text;
}

/** Asks a question. Ctrl-C and Ctrl-D give an empty answer. */
async function ask(question: string): Promise<string> {
  const { stdin: input, stderr: output } = process;
  const lines = createInterface({ input, output });
  // While a line is typed, Ctrl-C is a key and sends no signal.
  lines.once("SIGINT", () => stopBy("SIGINT"));
  const isClosed = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
  const { signal } = stop;
  const typed = lines.question(question, { signal }).catch(() => {
    output.write("\n");
    return "";
  });
  try {
    return await Promise.race([typed, isClosed]);
  } finally {
    lines.close();
  }
}
