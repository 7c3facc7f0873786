import { readFileSync } from "node:fs";
import path from "node:path";
import { Argument, Command, Option } from "commander";
import { format } from "prettier";
import { expect, test } from "vitest";
import { projectRoot } from "../../scripts/project.ts";
import { withCommands } from "../../scripts/render-cli-docs.ts";
import { Cli } from "../../src/cli/cli.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { programOf } from "../../src/cli/program.ts";
import { hostOf } from "./host.ts";

const page = readFileSync(path.join(projectRoot, "docs/cli.md"), "utf8");

test("docs/cli.md says of every command what the program says: else run npm run cli-docs", async () => {
  const program = programOf(new Cli(hostOf().host));
  const rendered = withCommands(page, program);
  expect(page).toBe(await format(rendered, { parser: "markdown" }));
});

test("docs/cli.md has every exit code", () => {
  const codes = [...page.matchAll(/^\| ([\d, ]+?) +\|/gm)].flatMap(([, list]) =>
    String(list).split(", ").map(Number),
  );
  expect(codes).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 130, 143]);
  expect(Object.values(exitCodes)).toEqual(codes);
});

test("a command is rendered with its arguments and options", () => {
  const program = new Command("tool");
  program
    .command("go")
    .description("goes somewhere")
    .argument("<place>", "where to")
    .addArgument(new Argument("[by...]", "how").choices(["car", "train"]))
    .option("--fast", "in a hurry")
    .addOption(new Option("--class <class>", "which").choices(["1st", "2nd", "3rd"]));
  const marks = "<!-- commands: written by npm run cli-docs --><!-- end of commands -->";
  expect(withCommands(`before ${marks} after`, program)).toBe(
    [
      "before <!-- commands: written by npm run cli-docs -->",
      "",
      "### `tool go <place> [by...]`",
      "",
      "Goes somewhere.",
      "",
      "- `place`: where to.",
      "- `by`: how: `car` or `train`.",
      "- `--fast`: in a hurry.",
      "- `--class <class>`: which: `1st`, `2nd` or `3rd`.",
      "",
      "<!-- end of commands --> after",
    ].join("\n"),
  );
});
