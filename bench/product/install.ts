import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nodeWithSqlite } from "../../scripts/node-with-sqlite.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";
import { bytesBeneath, npm, packed, packedFrom } from "./tarball.ts";

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

/**
 * How long it takes from `npm install <tarball>` in an empty folder to the
 * result of a first run: where better-sqlite3 is installed, which is compiled
 * when no build of it can be fetched, and where it is left out, on a Node that
 * has node:sqlite. Needs the registry, or a cache of npm that has been filled.
 */
export function install(): Promise<object> {
  return inScratch((folder) => {
    const tarball = packed(folder);
    const empty = packedNothing(folder);
    const newer = nodeWithSqlite();
    const without = () => newcomer(folder, newer, ["--omit=optional", tarball], firstProgram);
    const nothing = () => newcomer(folder, newer, [empty], "");
    // Fills the caches of npm and of the system.
    without();
    const values: number[] = [];
    const ceilings: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      values.push(without().seconds);
      ceilings.push(nothing().seconds);
    }
    const ratios = values.map((value, round) => value / (ceilings[round] ?? Number.NaN));
    const { tree, firstRunSeconds } = without();
    return Promise.resolve({
      value: rounded(median(values)),
      unit: "s from npm install to the result of a first run, without a compiler",
      ceiling: rounded(median(ceilings)),
      ratio: rounded(median(ratios)),
      rounds,
      firstRunSeconds,
      tree,
      withCompiler: newcomer(folder, process.execPath, [tarball], firstProgram),
    });
  });
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
function newcomer(folder: string, node: string, what: readonly string[], program: string) {
  const home = mkdtempSync(join(folder, "newcomer-"));
  writeFileSync(join(home, "package.json"), JSON.stringify({ private: true }));
  writeFileSync(join(home, "app.mjs"), program);
  const startedMs = performance.now();
  npm(["install", "--no-audit", "--no-fund", ...what], home);
  const installedMs = performance.now();
  const printed = execFileSync(node, ["app.mjs"], {
    cwd: home,
    encoding: "utf8",
  });
  const endedMs = performance.now();
  if (program !== "" && printed !== "hello world\n")
    throw new Error(`The first run printed ${JSON.stringify(printed)}.`);
  return {
    seconds: rounded((endedMs - startedMs) / 1000),
    firstRunSeconds: rounded((endedMs - installedMs) / 1000),
    driver: existsSync(join(home, "node_modules/better-sqlite3/build"))
      ? "better-sqlite3"
      : "node:sqlite",
    tree: bytesBeneath(join(home, "node_modules")),
  };
}
