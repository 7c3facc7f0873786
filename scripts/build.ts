import { execFileSync } from "node:child_process";
import { copyFileSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { projectRoot } from "./project.ts";

/**
 * Builds dist/, or the folder that is named, from nothing: compiles src/, then copies the entries of
 * threads and processes with what they share. Those are plain JavaScript (some
 * with types beside them), so that the same file runs from src/ and from
 * dist/; the compiler leaves them alone.
 */
const source = path.join(projectRoot, "src");
const output = path.resolve(process.argv[2] ?? path.join(projectRoot, "dist"));

rmSync(output, { recursive: true, force: true });

const compiler = path.join(projectRoot, "node_modules/typescript/bin/tsc");
try {
  execFileSync(
    process.execPath,
    [
      compiler,
      "-p",
      path.join(projectRoot, "tsconfig.build.json"),
      "--outDir",
      output,
    ],
    { stdio: "inherit" },
  );
} catch {
  // The compiler has said what is wrong. It writes files all the same, and
  // half a build must not be taken for one.
  rmSync(output, { recursive: true, force: true });
  process.exit(1);
}

for (const file of readdirSync(source, {
  recursive: true,
  encoding: "utf8",
})) {
  if (/\.(js|d\.ts)$/.test(file)) {
    copyFileSync(path.join(source, file), path.join(output, file));
  }
}
