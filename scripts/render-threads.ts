import path from "node:path";
import { buildSync } from "esbuild";

const home = "src/backends/sqlite";

/** Where the texts go, and what each of them begins with. */
export const threadsFile: string = `${home}/threads.generated.ts`;
const entries = {
  flushThread: "write/flush-thread.js",
  checkpointThread: "log/checkpoint-thread.js",
  heavyThread: "heavy/heavy-thread.js",
  heavyProcess: "heavy/heavy-process.js",
};

/** Node may run a text as a module, which has no `require`, when its options say so. */
const banner = `(()=>{"use strict";const require=process.getBuiltinModule("node:module").createRequire(process.execPath);`;

/** The text of src/backends/sqlite/threads.generated.ts: the same for the same files. */
export function renderThreads(root: string): string {
  const texts = Object.entries(entries).map(
    ([name, entry]) => `export const ${name}: string =\n  ${JSON.stringify(bundled(root, entry))};`,
  );
  return [
    "// Written by `npm run threads` from the entries of threads and processes. Do not edit.",
    ...texts,
    "",
  ].join("\n");
}

/** One entry with all that it imports, in one text. Names are kept for stacks. */
function bundled(root: string, entry: string): string {
  const { outputFiles } = buildSync({
    absWorkingDir: root,
    entryPoints: [path.join(home, entry)],
    bundle: true,
    write: false,
    platform: "node",
    format: "cjs",
    target: "node20.19",
    minifyWhitespace: true,
    banner: { js: banner },
    footer: { js: "})();" },
    logLevel: "warning",
  });
  return outputFiles.map(({ text }) => text).join("");
}
