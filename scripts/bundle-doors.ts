import { chmodSync, readdirSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { projectRoot } from "./project.ts";

/** The command of the package, beside the doors: it shares their chunks, so what it loads of the user's knows the same classes. */
const command = "cli/main";

/**
 * Bundles the doors of src/ and the command into a folder, with chunks for
 * what they share: hundreds of small files take longer to import than to run.
 * What we depend on stays outside. Nothing is minified and each part names its
 * source file, so stacks can be read without source maps, which with their
 * sources took more than half of the package.
 */
export async function bundleDoors(output: string): Promise<void> {
  await build({
    absWorkingDir: projectRoot,
    entryPoints: [...doors(), command].map((entry) => `src/${entry}.ts`),
    outdir: output,
    bundle: true,
    splitting: true,
    chunkNames: "chunks/[hash]",
    packages: "external",
    platform: "node",
    format: "esm",
    target: "node20.19",
    logLevel: "warning",
  });
  // Installers do this too; it also runs from here.
  chmodSync(path.resolve(projectRoot, output, `${command}.js`), 0o755);
}

/** Their names: each file right in src/ is a subpath of the package. */
export function doors(): readonly string[] {
  return readdirSync(path.join(projectRoot, "src"))
    .filter((file) => file.endsWith(".ts"))
    .map((file) => path.basename(file, ".ts"));
}
