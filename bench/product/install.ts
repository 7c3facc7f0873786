import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { packed, packedFrom } from "../../scripts/pack.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { bytesBeneath } from "./bytes.ts";
import { node, runtimes, type Runtime } from "./runtimes.ts";

const rounds = size(3, 1);

/** The least that a newcomer can run: one file, one step, one result. */
const firstProgram = `
  import { openHoldfast, workflow } from "holdfast";
  const greet = workflow("greet", (ctx, name) =>
    ctx.step("greet", () => \`hello \${name}\`));
  const holdfast = await openHoldfast("./app.db");
  await holdfast.work([greet]);
  const run = await holdfast.start(greet, "world");
  console.log(await run.result());
  await holdfast.close();`;

/** Packages that the first program needs besides ours. Node 20 has no SQLite of its own. */
const drivers: Readonly<Record<string, readonly string[]>> = { "node 20": ["better-sqlite3@12"] };

/**
 * The time from the installation of the tarball in an empty folder to the
 * result of a first run on a SQLite file: on Node 24 in rounds beside an empty
 * package, and once on each runtime. better-sqlite3 12 is compiled when no
 * build of it can be fetched. Needs the registry, or a filled cache of npm.
 */
export function install(): Promise<object> {
  return inScratch((folder) => {
    const tarball = packed(folder);
    const empty = packedNothing(folder);
    const usual = node(24);
    const ours = () => newcomer(folder, usual, [tarball], firstProgram);
    // Fills the caches of npm and of the system.
    ours();
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      values.push(ours().seconds);
      ceilings.push(newcomer(folder, usual, [empty], "").seconds);
    }
    const ratios = values.map((value, round) => value / (ceilings[round] ?? Number.NaN));
    const each = [...runtimes].map(([name, find]) => [
      name,
      attempt(find, (runtime) =>
        newcomer(folder, runtime, [tarball, ...(drivers[name] ?? [])], firstProgram),
      ),
    ]);
    return Promise.resolve({
      value: rounded(median(values)),
      unit: "s from npm install to the result of a first run on Node 24",
      ceiling: rounded(median(ceilings)),
      ratio: rounded(median(ratios)),
      rounds,
      runtimes: Object.fromEntries(each) as object,
      withFasterDriver: attempt(
        () => usual,
        (runtime) => newcomer(folder, runtime, [tarball, "better-sqlite3"], firstProgram),
      ),
    });
  });
}

/** The figures of a runtime, or the reason why there are none. */
function attempt(find: () => Runtime, measure: (runtime: Runtime) => object): object {
  try {
    return measure(find());
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) };
  }
}

/** A package without files or dependencies: what npm and Node take for themselves. */
function packedNothing(folder: string): string {
  const source = join(folder, "nothing");
  mkdirSync(source);
  writeFileSync(
    join(source, "package.json"),
    JSON.stringify({ name: "nothing", version: "0.0.0" }),
  );
  return packedFrom(source, folder);
}

/** Installs into an empty folder and runs a program there. */
function newcomer(folder: string, runtime: Runtime, packages: readonly string[], program: string) {
  const home = mkdtempSync(join(folder, "newcomer-"));
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true }));
  writeFileSync(join(home, "app.mjs"), program);
  const { binary, version, installs } = runtime;
  const startedMs = performance.now();
  if (installs === "bun") succeed(runtime, binary, ["add", ...packages], home);
  else succeed(runtime, "npm", ["install", "--no-audit", "--no-fund", ...packages], home);
  const installedMs = performance.now();
  const printed = succeed(runtime, binary, ["app.mjs"], home);
  const endedMs = performance.now();
  if (program !== "" && printed !== "hello world\n")
    throw new Error(`The first run printed ${JSON.stringify(printed)}.`);
  const modules = join(home, "node_modules");
  return {
    version,
    seconds: rounded((endedMs - startedMs) / 1000),
    firstRunSeconds: rounded((endedMs - installedMs) / 1000),
    driver: existsSync(join(modules, "better-sqlite3")) ? "better-sqlite3" : "node:sqlite",
    packages: packagesIn(modules),
    tree: bytesBeneath(modules),
  };
}

/** Runs a command, with the runtime as `node` for npm and for install scripts. */
function succeed(
  { binary }: Runtime,
  command: string,
  args: readonly string[],
  cwd: string,
): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: "utf8",
    env: { ...process.env, PATH: `${dirname(binary)}${delimiter}${process.env["PATH"] ?? ""}` },
    shell: process.platform === "win32",
  });
  if (status === 0) return stdout;
  const said = stderr.trim().split("\n").slice(-5).join(" ");
  throw error ?? new Error(`\`${command} ${args.join(" ")}\` ended with ${status}: ${said}`);
}

function packagesIn(modules: string): number {
  const names = readdirSync(modules).filter((name) => !name.startsWith("."));
  return names.flatMap((name) => (name.startsWith("@") ? readdirSync(join(modules, name)) : [name]))
    .length;
}
