import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify, stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundleDoors } from "../../scripts/bundle-doors.ts";
import { projectRoot } from "../../scripts/project.ts";
import { openHoldfast } from "../../src/index.ts";
import { Folder } from "../sqlite/place.ts";

const folder = new Folder();
const home = folder.file("app");
const installed = path.join(home, "node_modules/holdfast");
const binary = path.join(installed, "dist/cli/main.js");
const runs = 1_000;

/** A project that has the package installed, and a database with many runs. */
beforeAll(async () => {
  await bundleDoors(path.join(installed, "dist"));
  cpSync(path.join(projectRoot, "package.json"), path.join(installed, "package.json"));
  for (const name of ["croner", "commander", "better-sqlite3"]) {
    const place = path.join(home, "node_modules", name);
    mkdirSync(path.dirname(place), { recursive: true });
    symlinkSync(path.join(projectRoot, "node_modules", name), place, "junction");
  }
  const holdfast = await openHoldfast(path.join(home, "app.db"));
  await Promise.all(
    Array.from({ length: runs }, (_, index) =>
      holdfast.executions.create({
        id: `run-${index}`,
        function: "orders/fulfil",
      }),
    ),
  );
  await holdfast.executions.log("run-7", [{ level: "info", message: "here" }]);
  await holdfast.close();
  writeFileSync(
    path.join(home, "holdfast.config.mjs"),
    'import { workflow } from "holdfast";\nexport const functions = [workflow("w", async () => 1)];\nexport const db = "./app.db";\n',
  );
});

afterAll(() => folder.dispose());

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const { NO_COLOR: _, ...environment } = process.env;

async function run(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Said> {
  const options = {
    cwd: home,
    env: { ...environment, ...env },
    maxBuffer: 2 ** 26,
  };
  try {
    const said = await promisify(execFile)(command, [...args], options);
    return { code: 0, ...said };
  } catch (error) {
    return error as Error & Said;
  }
}

const holdfast = (...args: readonly string[]): Promise<Said> =>
  run(process.execPath, [binary, ...args]);

/** In a pseudo-terminal of the system's `script`, which tells it apart from a pipe. */
function onTerminal(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Said> {
  const words = [process.execPath, binary, ...args];
  const line = `stty columns 60; ${words.map((word) => `'${word}'`).join(" ")}`;
  return process.platform === "linux"
    ? run("script", ["-qec", line, "/dev/null"], { TERM: "xterm", ...env })
    : run("script", ["-q", "/dev/null", "sh", "-c", line], {
        TERM: "xterm",
        ...env,
      });
}

describe("the installed command", () => {
  test("runs by its own first line, and knows its version", async () => {
    chmodSync(binary, 0o755);
    const { stdout } = await run(binary, ["--version"]);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\S*\n$/);
  });

  test("takes its database from a config that loads the same package, and pipes JSON", async () => {
    const { code, stdout, stderr } = await holdfast("list", "--json", "--limit", "2");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect((JSON.parse(stdout) as { items: unknown[] }).items).toHaveLength(2);
    expect(stdout.trimEnd().split("\n")).toHaveLength(1);
  });

  test("says how TypeScript is loaded where this Node cannot", async () => {
    writeFileSync(path.join(home, "other.ts"), "export const db: string = 'app.db';");
    const canLoad = "typescript" in process.features;
    const { code, stderr } = await run(process.execPath, [
      ...(canLoad ? ["--no-experimental-strip-types"] : []),
      binary,
      "list",
      "--config",
      "other.ts",
    ]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/^MODULE_NOT_LOADED: .*Use Node 22\.18 or newer, or install tsx/);
  });

  test("ends quietly when its output is read no further", async () => {
    const { stdout, stderr } = await run("sh", [
      "-c",
      `{ '${process.execPath}' '${binary}' list --limit 1000 --json; echo "code $?" >&2; } | head -c 10`,
    ]);
    expect(stdout).toBe('{"items":[');
    expect(stderr).toBe("code 0\n");
  });

  test("waits for a reader that is slow", async () => {
    const { stdout } = await run("sh", [
      "-c",
      `'${process.execPath}' '${binary}' list --limit 1000 --json | { sleep 2; cat; }`,
    ]);
    // More than a pipe holds.
    expect(stdout.length).toBeGreaterThan(100_000);
    const { items } = JSON.parse(stdout) as { readonly items: unknown[] };
    expect(items).toHaveLength(runs);
  });

  test("has colours on a terminal alone, within its width, and not under NO_COLOR", async () => {
    const { stdout: painted } = await onTerminal(["list", "--limit", "3"]);
    // After two seconds without a worker they are unserved.
    expect(painted).toMatch(/\[\d+m(pending|unserved)/);
    for (const line of stripVTControlCharacters(painted).split(/\r?\n/))
      if (!line.startsWith("More runs:")) expect(line.length).toBeLessThanOrEqual(60);
    const { stdout: plain } = await onTerminal(["list"], { NO_COLOR: "1" });
    expect(plain).not.toContain("\u001B[");
    expect((await holdfast("list")).stdout).not.toContain("\u001B[");
    const failed = await onTerminal(["show", "nobody"]);
    expect(failed.stdout).toContain("\u001B[31mEXECUTION_NOT_FOUND\u001B[39m");
  });

  test("stops by Ctrl-C, says what was done, and ends with 130", async () => {
    const child = spawn(process.execPath, [binary, "logs", "run-7", "--follow"], {
      cwd: home,
      env: environment,
    });
    let stderr = "";
    child.stderr.on("data", (text) => (stderr += String(text)));
    const [line] = (await once(child.stdout, "data")) as [Buffer];
    expect(String(line)).toContain("here");
    child.kill("SIGINT");
    const [code] = (await once(child, "close")) as [number | null];
    expect({ code, stderr }).toEqual({
      code: 130,
      stderr: "Stopped after 1 lines. The run continues.\n",
    });
  });

  test.each([
    ["Ctrl-C", "\u0003", "130"],
    ["Ctrl-D", "\u0004", "4"],
  ])("takes %s at a question for no, and says that nothing was done", async (_key, typed, code) => {
    const line = `'${process.execPath}' '${binary}' erase run-7 --force; echo "code $?"`;
    const words = ["-c", line, "/dev/null"];
    const child = spawn("script", ["-q", ...words], {
      cwd: home,
      env: environment,
    });
    let said = "";
    for await (const part of child.stdout) {
      if (!said.includes("[y/N]") && `${said}${part}`.includes("[y/N]")) child.stdin.write(typed);
      said += String(part);
    }
    expect(said).toContain(`Nothing was erased.\r\ncode ${code}\r\n`);
    expect(said).not.toContain("UNEXPECTED");
  });
});
