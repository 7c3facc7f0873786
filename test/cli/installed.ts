import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundleDoors } from "../../scripts/bundle-doors.ts";
import { projectRoot } from "../../scripts/project.ts";
import { timeoutMs } from "../depth.ts";

/** A user's project with the package installed, as its tarball would be. */
export class Installed {
  readonly folder: string = mkdtempSync(path.join(tmpdir(), "hfc-"));

  /** With some of what the package may use. */
  static async with(packages: readonly string[]): Promise<Installed> {
    const installed = new Installed();
    const home = path.join(installed.folder, "node_modules/holdfast");
    await bundleDoors(path.join(home, "dist"));
    cpSync(path.join(projectRoot, "package.json"), path.join(home, "package.json"));
    for (const name of ["croner", "commander", ...packages])
      symlinkSync(
        path.join(projectRoot, "node_modules", name),
        path.join(installed.folder, "node_modules", name),
        "junction",
      );
    return installed;
  }

  get command(): string {
    return path.join(this.folder, "node_modules/holdfast/dist/cli/main.js");
  }

  /** A folder of its own for a test, with files; modules in it find the package. */
  project(name: string, files: Readonly<Record<string, string>> = {}): Project {
    const folder = path.join(this.folder, name);
    mkdirSync(folder);
    for (const [file, text] of Object.entries(files)) writeFileSync(path.join(folder, file), text);
    return new Project(this, folder);
  }

  dispose(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly binary?: string;
}

export class Project {
  readonly folder: string;
  readonly #installed: Installed;

  constructor(installed: Installed, folder: string) {
    this.#installed = installed;
    this.folder = folder;
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  write(name: string, text: string): void {
    writeFileSync(this.file(name), text);
  }

  /** Starts `holdfast …args` here. */
  start(args: readonly string[], options: StartOptions = {}): Said {
    const { env, binary = process.execPath } = options;
    return new Said(
      spawn(binary, [this.#installed.command, ...args], {
        cwd: this.folder,
        env: { ...cleanEnv(), ...env },
      }),
    );
  }

  /** The same in a terminal of 90 columns and 24 lines, of util-linux' making. */
  startInTerminal(args: readonly string[], options: StartOptions = {}): Said {
    const { env, binary = process.execPath } = options;
    const command = [binary, this.#installed.command, ...args].map((each) => `'${each}'`).join(" ");
    return new Said(
      spawn("script", ["-qec", `stty cols 90 rows 24; exec ${command}`, "/dev/null"], {
        cwd: this.folder,
        env: { ...cleanEnv(), TERM: "xterm-256color", ...env },
      }),
    );
  }

  /** Runs it to its end. */
  async run(args: readonly string[], options?: StartOptions): Promise<Ended> {
    return this.start(args, options).ended();
  }
}

/** Without what would tell a program of a test about this one. */
function cleanEnv(): NodeJS.ProcessEnv {
  const { NO_COLOR: _, HOLDFAST_DB: __, NODE_OPTIONS: ___, ...env } = process.env;
  return env;
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A test that waits for as long as it has would not tell what was said instead. */
const patienceMs = 0.9 * timeoutMs;

/** A process, and what it has said so far. */
export class Said {
  readonly process: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #gone: Promise<unknown>;
  #seen = 0;

  constructor(child: ChildProcess) {
    this.process = child;
    child.stdout?.on("data", (part) => (this.stdout += String(part)));
    child.stderr?.on("data", (part) => (this.stderr += String(part)));
    this.#gone = once(child, "close");
  }

  /** Waits until it says something that it had not said when this was last called. */
  async until(text: string): Promise<void> {
    const { stdout } = this.process;
    const givenUpAt = Date.now() + patienceMs;
    for (;;) {
      const at = this.stdout.indexOf(text, this.#seen);
      if (at >= 0) {
        this.#seen = at + text.length;
        return;
      }
      const isLate = Date.now() > givenUpAt;
      if (stdout === null || stdout.readableEnded || isLate)
        throw new Error(`Never said "${text}": ${this.stdout}${this.stderr}`);
      const later = new AbortController();
      await Promise.race([
        once(stdout, "data", { signal: later.signal }).catch(() => undefined),
        this.#gone,
        sleep(1_000, undefined, { signal: later.signal }).catch(() => undefined),
      ]);
      later.abort();
    }
  }

  async ended(): Promise<Ended> {
    await this.#gone;
    const { stdout, stderr } = this;
    return { code: this.process.exitCode, stdout, stderr };
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
