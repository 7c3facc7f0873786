import { readdirSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { projectRoot } from "./project.ts";

/**
 * Bundles the doors of src/ into a folder, with chunks for what they share:
 * hundreds of small files take longer to import than to run. What we depend on
 * stays outside. Source maps contain their sources.
 */
export async function bundleDoors(output: string): Promise<void> {
  await build({
    absWorkingDir: projectRoot,
    entryPoints: doors().map((door) => `src/${door}.ts`),
    outdir: output,
    bundle: true,
    splitting: true,
    chunkNames: "chunks/[hash]",
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20.19",
    sourcemap: true,
    logLevel: "warning",
  });
}

/** Their names: each file right in src/ is a subpath of the package. */
export function doors(): readonly string[] {
  return readdirSync(path.join(projectRoot, "src"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => path.basename(file, ".ts"));
}
