import type { Command } from "commander";
import { databaseFacts } from "../../../open/database-facts.ts";
import { executionContext } from "../../../stores/execution/context.ts";
import { findUnserved } from "../../../stores/execution/read/unserved.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { everyItem } from "../../every-page.ts";
import { exitCodes } from "../../exit-codes.ts";
import { ownVersion } from "../../own-version.ts";
import { harmless, type Colour } from "../../text/style.ts";
import { findingsOf, type Finding, type Symptoms } from "./findings.ts";

const marks: Readonly<Record<Finding["level"], readonly [Colour, string]>> = {
  ok: ["green", "ok"],
  note: ["blue", "note"],
  problem: ["red", "problem"],
};

const patienceMs = 2_000;
const parkedMax = 100;

/** `holdfast doctor`: what is wrong with a database, and what to do about it. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command("doctor")
    .description(
      "looks at driver, file, processes, parked runs, unserved functions and clocks, and says how to mend what is wrong",
    )
    .action(
      cli.action(async (context) => {
        const findings = [versions(), ...findingsOf(await symptomsOf(context))];
        const problems = findings.filter(({ level }) => level === "problem");
        context.answer({ isWell: problems.length === 0, findings }, () =>
          [
            ...findings.flatMap((finding) => findingLines(context, finding)),
            "",
            problems.length === 0
              ? "Nothing is wrong."
              : `${problems.length} ${problems.length === 1 ? "problem" : "problems"}. Rows are looked at by holdfast check.`,
          ].join("\n"),
        );
        return problems.length === 0 ? exitCodes.ok : exitCodes.findings;
      }),
    );
}

function versions(): Finding {
  return {
    level: "ok",
    about: "versions",
    text: `holdfast ${ownVersion()}, Node ${process.version}, ${process.platform} ${process.arch}`,
  };
}

function findingLines(
  { style, dbOption }: CliContext,
  { level, about, text, fix }: Finding,
): readonly string[] {
  const [colour, word] = marks[level];
  return [
    `${style(colour, word.padEnd(8))} ${about.padEnd(10)} ${harmless(text)}`,
    ...(fix === undefined
      ? []
      : [style("dim", `         → ${harmless(withDatabase(fix, dbOption))}`)]),
  ];
}

/** Commands in it are to be about the same database. */
function withDatabase(fix: string, dbOption: string): string {
  return fix.replaceAll(
    /\bholdfast (check|(show|unpark) [^\s,]+)/g,
    (command) => `${command}${dbOption}`,
  );
}

async function symptomsOf(context: CliContext): Promise<Symptoms> {
  const warnings: string[] = [];
  const opened = await context.openForReading((message) => warnings.push(message));
  const { database, pages } = opened;
  const { pathOrUrl, options } = await context.target();
  const now = database.clock.now();
  const wait = { signal: context.stop };
  const {
    items: parked,
    damaged,
    isCut,
  } = await everyItem(
    (page) => pages.executions.list({ ...page, ...wait, status: "parked" }),
    parkedMax,
  );
  return {
    facts: await databaseFacts(database, pathOrUrl, options),
    parked,
    hasMoreParked: isCut,
    damaged,
    unserved: await database.read(
      findUnserved(executionContext(database, {})),
      { dueBy: now - patienceMs },
      wait,
    ),
    nextTimerAt: await pages.executions.nextTimerAt(wait),
    clockOffsetMs: database.stats().clockOffsetMs,
    now,
    warnings,
  };
}
