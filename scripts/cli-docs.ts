import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { format } from "prettier";
import { Cli } from "../src/cli/cli.ts";
import { programOf } from "../src/cli/program.ts";
import { projectRoot } from "./project.ts";
import { withCommands } from "./render-cli-docs.ts";

/** Writes what the commands say of themselves into docs/cli.md. */
const page = path.join(projectRoot, "docs/cli.md");
const nowhere = { write: () => undefined };
const program = programOf(
  new Cli({
    stdout: nowhere,
    stderr: nowhere,
    readInput: () => Promise.resolve(""),
    env: {},
    cwd: projectRoot,
    clock: { now: () => 0, wakeAt: () => () => undefined },
    timeZone: "UTC",
    stop: new AbortController().signal,
  }),
);
writeFileSync(
  page,
  await format(withCommands(readFileSync(page, "utf8"), program), {
    parser: "markdown",
  }),
);
console.log("Wrote docs/cli.md.");
