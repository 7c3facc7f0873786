import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { compiled } from "../compile-children.ts";

/** A process of ours whose lines of output the test collects as they come. */
export class Child {
  readonly process: ChildProcess;
  readonly lines: string[] = [];
  readonly ended: Promise<number | NodeJS.Signals | null>;
  #errors = "";
  #isEnded = false;
  #waiting: (() => void)[] = [];

  /** `under` names a command that runs Node for us, such as `unshare --pid --fork`. */
  constructor(script: string, args: readonly (string | number)[], under: readonly string[] = []) {
    const [command, ...before] = [...under, process.execPath];
    this.process = spawn(command, [...before, compiled(`crash/${script}`), ...args.map(String)], {
      stdio: ["pipe", "pipe", "pipe"],
    });
    let rest = "";
    this.process.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
      const parts = (rest + chunk).split("\n");
      // A line that the kill cut short was not reported.
      rest = parts.pop() ?? "";
      this.lines.push(...parts);
      for (const wake of this.#waiting.splice(0)) wake();
    });
    this.process.stderr?.setEncoding("utf8").on("data", (chunk: string) => (this.#errors += chunk));
    this.ended = new Promise((resolve) => {
      this.process.once("close", (code, signal) => {
        this.#isEnded = true;
        resolve(signal ?? code);
        for (const wake of this.#waiting.splice(0)) wake();
      });
    });
  }

  /** What it said on standard error. */
  get errors(): string {
    return this.#errors;
  }

  /** The same without those of the runtime: that the database was away, or the machine slow. */
  get failures(): string {
    return this.errors.replaceAll(/^.*(HoldfastWarning:|node --trace-warnings).*$\n?/gm, "");
  }

  /** Waits for so many lines, or the end of the process. */
  reported(count: number): Promise<void> {
    return this.until(() => this.lines.length >= count);
  }

  /** Waits until its lines fulfil a condition, or the end of the process. */
  async until(isFulfilled: () => boolean): Promise<void> {
    // Its last lines may be heard after it has exited, and before all is closed.
    while (!isFulfilled() && !this.#isEnded)
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Writes a line to its standard input. */
  tell(line: string): void {
    this.process.stdin?.write(`${line}\n`);
  }

  kill(): void {
    this.process.kill("SIGKILL");
  }
}
