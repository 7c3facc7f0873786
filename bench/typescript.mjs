import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";
import { transform } from "esbuild";

/**
 * Loads TypeScript for the benchmarks. Not tsx, which gives every function its
 * name whenever it is made: closures of a hot path then cost more than the
 * path, and users' bundles have nothing of the kind.
 */
if (isMainThread) register(import.meta.url);

export async function load(url, context, nextLoad) {
  if (!/^file:.*\.ts$/.test(url)) return nextLoad(url, context);
  const text = await readFile(new URL(url), "utf8");
  const { code } = await transform(text, { loader: "ts", target: "es2023" });
  return { format: "module", source: code, shortCircuit: true };
}
