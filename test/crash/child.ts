import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";

/** A process of ours whose lines of output the test collects as they come. */
export class Child {
  readonly process: ChildProcess;
  readonly lines: string[] = [];
  readonly ended: Promise<number | NodeJS.Signals | null>;
  #errors = "";
  #waiting: (() => void)[] = [];

  constructor(script: string, args: readonly (string | number)[]) {
    this.process = spawn(
      process.execPath,
      [
        "--import",
        "tsx",
        join(import.meta.dirname, script),
        ...args.map(String),
      ],
      { stdio: ["ignore", "pipe", "pipe"] },
    );
    let rest = "";
    this.process.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      const parts = (rest + chunk).split("\n");
      // A line that the kill cut short was not reported.
      rest = parts.pop() ?? "";
      this.lines.push(...parts);
      for (const wake of this.#waiting.splice(0)) wake();
    });
    this.process.stderr
      ?.setEncoding("utf8")
      .on("data", (chunk: string) => (this.#errors += chunk));
    this.ended = new Promise((resolve) => {
      this.process.once("close", (code, signal) => {
        resolve(signal ?? code);
        for (const wake of this.#waiting.splice(0)) wake();
      });
    });
  }

  /** What it said on standard error, without Node's own warnings. */
  get errors(): string {
    return this.#errors.replaceAll(
      /^.*(ExperimentalWarning|node --trace-warnings).*$\n?/gm,
      "",
    );
  }

  /** Waits for so many lines, or the end of the process. */
  async reported(count: number): Promise<void> {
    while (
      this.lines.length < count &&
      this.process.exitCode === null &&
      this.process.signalCode === null
    )
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  kill(): void {
    this.process.kill("SIGKILL");
  }
}
