#!/usr/bin/env node
import { createInterface } from "node:readline/promises";
import { systemClock } from "../host/clock.ts";
import { later } from "../host/timers.ts";
import { HoldfastError } from "../model/errors.ts";
import type { CliHost, StopReason } from "./host.ts";
import { runCli } from "./program.ts";

/**
 * The command `holdfast`. How its commands are made:
 *
 * - One file per command in `commands/`, which exports `add…(program, cli)`:
 *   it describes itself to commander and gives `.action(cli.action(body))`.
 *   It is listed in `program.ts` and in docs/cli.md; a test compares both.
 * - The body is given a `CliContext`: `openForReading()` for what only looks
 *   (safe beside workers, creates nothing), `openForWriting()` for what steers
 *   (the database must exist, and is not migrated), `target()` and `config()`
 *   for what runs code. What is opened is closed when the body ends.
 * - It answers with `context.answer(value, () => text)`: one JSON document
 *   under `--json`, text for people otherwise. A stream prints JSON lines. What
 *   is no answer (progress, hints) goes to `context.note`, on standard error.
 *   Data of users is printed through `harmless` or a table.
 * - It throws `HoldfastError`s, whose code decides the exit code (exit-codes.ts),
 *   or answers with an exit code of its own. It never calls `process.exit`,
 *   `console` or a clock: all that comes from `CliHost`, so that tests run
 *   commands in-process with `runCli(args, host)`.
 * - Whatever waits is given `context.stop`. After Ctrl-C a long command says
 *   with `note` what was done so far, and ends; the code is 130 then.
 */
const stop = new AbortController();
const leftOpenMs = 500;
const stopBy = (reason: StopReason): void => stop.abort(reason);

for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => {
    stopBy(name);
    // The second one ends it at once.
    process.once(name, () => process.exit(name === "SIGINT" ? 130 : 143));
  });

// `holdfast list | head`: nobody reads on, so there is nothing to say any more.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return stopBy("EPIPE");
    // A full disk, say: what else would be printed is lost as well.
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

/** What a user's module has opened must not keep a command that has ended and been read. */
function endAnyway(): void {
  const unread = process.stdout.writableLength + process.stderr.writableLength;
  if (unread > 0) later(leftOpenMs, endAnyway);
  else process.exit();
}

async function readInput(): Promise<string> {
  let text = "";
  const { stdin } = process;
  const end = (): void => {
    const message = "Stopped while standard input was read: nothing was done.";
    stdin.destroy(new HoldfastError("ABORTED", message));
  };
  stop.signal.addEventListener("abort", end, { once: true });
  stdin.setEncoding("utf8");
  for await (const part of stdin) text += String(part);
  stop.signal.removeEventListener("abort", end);
  return text;
}

/** Ctrl-C and Ctrl-D are an answer too: none. */
async function ask(question: string): Promise<string> {
  const { stdin: input, stderr: output } = process;
  const lines = createInterface({ input, output });
  // While a line is typed Ctrl-C is a key, which no signal tells of.
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
