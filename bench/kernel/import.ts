import { execFileSync } from "node:child_process";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundleDoors, doors } from "../../scripts/bundle-doors.ts";
import { projectRoot } from "../../scripts/project.ts";
import { inScratch, median, rounded } from "../scratch.ts";
import { size } from "../sizes.ts";

const rounds = size(15, 1);

/** How long a process that has just started takes to import each door of the built package. */
export function importing(): Promise<object> {
  return inScratch(async (folder) => {
    await bundleDoors(join(folder, "dist"));
    cpSync(join(projectRoot, "package.json"), join(folder, "package.json"));
    symlinkSync(join(projectRoot, "node_modules"), join(folder, "node_modules"), "junction");
    const times = doors().map((door) => ({ door, ms: [] as number[] }));
    const starts: number[] = [];
    // The first round, which fills the system's cache of files, is left out.
    for (let round = 0; round <= rounds; round += 1) {
      starts.push(startMs());
      for (const { door, ms } of times) {
        const one = importMs(join(folder, "dist", `${door}.js`));
        if (round > 0) ms.push(one);
      }
    }
    const middles = times.map(({ door, ms }) => [door, rounded(median(ms))] as const);
    const value = Math.max(...middles.map(([, ms]) => ms));
    const ceiling = rounded(median(starts.slice(1)));
    return {
      value,
      unit: "ms to import the door that takes longest",
      ceiling,
      ratio: rounded(value / ceiling),
      rounds,
      doors: Object.fromEntries(middles),
    };
  });
}

/** How long Node takes to start and end, which tells how fast the machine is now. */
function startMs(): number {
  const startedMs = performance.now();
  execFileSync(process.execPath, ["--eval", ""]);
  return performance.now() - startedMs;
}

/** Without the start of Node. */
function importMs(file: string): number {
  const script = `
    const startedMs = performance.now();
    await import(${JSON.stringify(pathToFileURL(file).href)});
    console.log(performance.now() - startedMs);`;
  return Number(
    execFileSync(process.execPath, ["--input-type=module", "--eval", script], {
      encoding: "utf8",
    }),
  );
}
