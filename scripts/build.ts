import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { bundleDoors, doors } from "./bundle-doors.ts";
import { dropUnreachable } from "./drop-unreachable.ts";
import { projectRoot } from "./project.ts";

/**
 * Builds dist/, or the folder that is named, from nothing: the doors as
 * bundles, and beside them the declarations that they lead to.
 */
const output = path.resolve(process.argv[2] ?? path.join(projectRoot, "dist"));

rmSync(output, { recursive: true, force: true });
try {
  writeDeclarations();
  await bundleDoors(output);
} catch (error) {
  // The compiler writes files all the same, and half a build must not be taken for one.
  rmSync(output, { recursive: true, force: true });
  console.error((error as Error).message);
  process.exitCode = 1;
}

function writeDeclarations(): void {
  const compiler = path.join(projectRoot, "node_modules/typescript/bin/tsc");
  const config = path.join(projectRoot, "tsconfig.build.json");
  execFileSync(process.execPath, [compiler, "-p", config, "--outDir", output], {
    stdio: "inherit",
  });
  // The compiler leaves alone what is written by hand, beside plain JavaScript.
  const source = path.join(projectRoot, "src");
  for (const file of readdirSync(source, { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".d.ts")) copyFileSync(path.join(source, file), path.join(output, file));
  dropUnreachable(
    output,
    doors().map((door) => `${door}.d.ts`),
  );
}
