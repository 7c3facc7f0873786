import { expect, test } from "vitest";
import { Cli } from "../../src/cli/cli.ts";
import { ownVersion } from "../../src/cli/own-version.ts";
import { programOf } from "../../src/cli/program.ts";
import { holdfastCli, hostOf } from "./host.ts";

const program = programOf(new Cli(hostOf().host));
const names = program
  .createHelp()
  .visibleCommands(program)
  .map((command) => command.name());

test.each([[], ...names.map((name) => [name])])(
  "[RN14] the help of %s fits 80 columns, also on a wider terminal",
  async (...command) => {
    const { code, stdout } = await holdfastCli([...command, "--help"], {
      isTerminal: true,
      columns: 200,
    });
    expect(code).toBe(0);
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
  },
);

test("[RN14] the help of a narrow terminal fits it", async () => {
  const { stdout } = await holdfastCli(["show", "--help"], { isTerminal: true, columns: 60 });
  expect(stdout.split("\n").filter((line) => line.length > 60)).toEqual([]);
});

test("[RN14] the help lists all commands in groups", async () => {
  const { stdout } = await holdfastCli(["-h"]);
  const headings = [...stdout.matchAll(/^(\S.*):$/gm)].map(([, heading]) => heading);
  expect(headings).toEqual([
    "Options",
    "Run workflows",
    "Look at runs",
    "Control runs",
    "Maintain a database",
    "Commands",
  ]);
  for (const name of names) expect(stdout).toMatch(new RegExp(`^  ${name} `, "m"));
});

test("[RN14] -h is --help of a command too, and -V is --version", async () => {
  for (const command of ["list", "schedules"])
    expect((await holdfastCli([command, "-h"])).stdout).toBe(
      (await holdfastCli([command, "--help"])).stdout,
    );
  expect((await holdfastCli(["-V"])).stdout).toBe(`${ownVersion()}\n`);
});
