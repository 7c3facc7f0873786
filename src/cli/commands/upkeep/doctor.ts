import type { Command } from "commander";
import { databaseFacts } from "../../../open/database-facts.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { executionContext } from "../../../stores/execution/context.ts";
import type { Damaged } from "../../../stores/damage.ts";
import type { Executions } from "../../../stores/execution/executions.ts";
import { findUnserved, type Unserved } from "../../../stores/execution/read/unserved.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { everyItem } from "../../../stores/every-page.ts";
import { exitCodes } from "../../exit-codes.ts";
import { ownVersion } from "../../own-version.ts";
import { oneLine, type Colour } from "../../text/style.ts";
import { canBeRead } from "../can-be-read.ts";
import { findingsOf, type Finding, type Symptoms } from "./findings.ts";

const marks: Readonly<Record<Finding["level"], readonly [Colour, string]>> = {
  ok: ["green", "ok"],
  note: ["blue", "note"],
  problem: ["red", "problem"],
};

const patienceMs = 2_000;
const parkedMax = 100;

/** `holdfast doctor`: finds problems of a database, and how to fix each. */
export function addDoctor(program: Command, cli: Cli): void {
  program
    .command("doctor")
    .description(
      "checks driver, file, processes, parked runs, unserved functions and clocks, and says how to fix each problem",
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
              ? "No problems found."
              : `${problems.length} ${problems.length === 1 ? "problem" : "problems"}. Run npx holdfast check to check the rows.`,
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
    `${style(colour, word.padEnd(8))} ${about.padEnd(10)} ${oneLine(text)}`,
    ...(fix === undefined
      ? []
      : [style("dim", `         → ${oneLine(withDatabase(fix, dbOption))}`)]),
  ];
}

/** Points the commands in it at the same database. */
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
  const due = await database.read(
    findUnserved(executionContext(database, {})),
    { dueBy: now - patienceMs },
    wait,
  );
  const { unserved, unreadable } = await readableOf(pages.executions, due, wait);
  return {
    facts: await databaseFacts(database, pathOrUrl, options),
    parked,
    hasMoreParked: isCut,
    damaged: [...damaged, ...unreadable],
    unserved,
    nextTimerAt: await pages.executions.nextTimerAt(wait),
    clockOffsetMs: database.stats().clockOffsetMs,
    now,
    warnings,
  };
}

/** Reports an unreadable run as damage, since no worker takes it. */
async function readableOf(
  executions: Executions,
  due: readonly Unserved[],
  wait: WaitOptions,
): Promise<{ readonly unserved: readonly Unserved[]; readonly unreadable: readonly Damaged[] }> {
  const unserved: Unserved[] = [];
  const unreadable: Damaged[] = [];
  for (const run of due)
    if (await canBeRead(executions, run.id, wait)) unserved.push(run);
    else unreadable.push({ table: "holdfast_execution_event", key: run.id });
  return { unserved, unreadable };
}
