import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { doors as doorsOf } from "./bundle-doors.ts";
import { projectRoot } from "./project.ts";

/**
 * Checks the built package from outside: the doors in src/ are exactly the
 * `exports` of package.json, and each one loads and hands something out.
 */
const { name: packageName, exports } = JSON.parse(
  readFileSync(path.join(projectRoot, "package.json"), "utf8"),
) as { name: string; exports: Record<string, unknown> };
const doors = doorsOf();

const problems: string[] = [];
for (const door of doors) {
  const subpath = door === "index" ? "." : `./${door}`;
  if (exports[subpath] === undefined)
    problems.push(
      `src/${door}.ts is a door without an entry: add "${subpath}" to "exports" in package.json, or move the file into a folder.`,
    );
}
for (const [subpath, targets] of Object.entries(exports)) {
  const door = subpath === "." ? "index" : path.basename(subpath);
  const expected = JSON.stringify({
    types: `./dist/${door}.d.ts`,
    default: `./dist/${door}.js`,
  });
  if (!doors.includes(door))
    problems.push(
      `"exports" names "${subpath}" but src/${door}.ts does not exist: write that door or remove the entry.`,
    );
  else if (JSON.stringify(targets) !== expected)
    problems.push(`"exports" of "${subpath}" must be ${expected}.`);
  else if (!handsOutSomething(subpath))
    problems.push(
      `"${packageName}${subpath.slice(1)}" does not load or hands out nothing: see above, then look into src/${door}.ts.`,
    );
}

for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;

/** Loads a door as a user does: by the package's name, in plain Node. */
function handsOutSomething(subpath: string): boolean {
  const specifier = JSON.stringify(packageName + subpath.slice(1));
  try {
    const names = execFileSync(
      process.execPath,
      [
        "--input-type=module",
        "--eval",
        `console.log(Object.keys(await import(${specifier})).length)`,
      ],
      { cwd: projectRoot, encoding: "utf8" },
    );
    return Number(names) > 0;
  } catch {
    return false;
  }
}
