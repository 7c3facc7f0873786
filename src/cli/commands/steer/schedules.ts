import type { Command } from "commander";
import { spokenDuration, spokenInstant } from "../../../model/time/spoken.ts";
import { firedRunId, parseRunScheduleName } from "../../../model/trigger/run-schedule.ts";
import { executionContext } from "../../../stores/execution/context.ts";
import { lists } from "../../../stores/list.ts";
import { runScheduleList, type RunSchedule } from "../../../stores/schedule/runs/list.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { everyItem } from "../../../stores/every-page.ts";
import { beforeFields, runBefore, startedText } from "../../run-before.ts";
import { tableLines } from "../../text/table.ts";

/** `holdfast schedules …`: lists and controls schedules. */
export function addSchedules(program: Command, cli: Cli): void {
  const schedules = program
    .command("schedules")
    .description("lists and controls schedules, which start runs at set times")
    // The default command would take an unknown word for an argument.
    .hook("preSubcommand", (command) => {
      const [word] = command.args;
      const names = command.commands.map((each) => each.name());
      if (word === undefined || word.startsWith("-") || names.includes(word)) return;
      command.error(`unknown command 'schedules ${word}'. The commands are: ${names.join(", ")}`);
    });
  schedules
    .command("list", { isDefault: true })
    .description("lists schedules with their next instants")
    .action(
      cli.action(async (context) => {
        const { database } = await context.openForReading();
        const list = lists(executionContext(database, {}), runScheduleList);
        const { items, damaged } = await everyItem((page) =>
          list({ ...page, signal: context.stop }),
        );
        if (context.isJson) return context.printJson({ items, damaged });
        if (items.length > 0) context.print(scheduleTable(context, items));
        else context.note("No schedules.");
        context.noteDamaged(damaged);
      }),
    );
  for (const { name, description, done, before } of changes)
    schedules
      .command(name)
      .description(description)
      .argument("<name>", "the name of the schedule")
      .action(
        cli.action(async (context, _, schedule: string) => {
          const holdfast = await context.openForWriting();
          const isChanged = await holdfast.schedules[name](schedule);
          context.answer(
            { name: schedule, isChanged },
            () => `${schedule} ${isChanged ? done : before}`,
          );
        }),
      );
  schedules
    .command("fire")
    .description("starts a run of a schedule now, outside its cadence")
    .argument("<name>", "the name of the schedule")
    .option("--key <key>", "firing twice with one key gives one run")
    .action(
      cli.action(async (context, { key }: { key?: string }, schedule: string) => {
        const holdfast = await context.openForWriting();
        const known =
          key === undefined ? undefined : firedRunId(parseRunScheduleName(schedule), key);
        const before = await runBefore(context, holdfast.executions, known);
        const { id } = await holdfast.schedules.fire(schedule, key === undefined ? {} : { key });
        context.answer({ name: schedule, id, ...beforeFields(before) }, () =>
          startedText(id, schedule, before),
        );
      }),
    );
}

const changes = [
  {
    name: "pause",
    description: "pauses a schedule; runs that have started continue",
    done: "was paused.",
    before: "was already paused.",
  },
  {
    name: "resume",
    description: "resumes a schedule at its next instant",
    done: "was resumed.",
    before: "was not paused.",
  },
  {
    name: "remove",
    description: "removes a schedule; a worker whose module exports it creates it again",
    done: "was removed.",
    before: "does not exist.",
  },
] as const;

function scheduleTable(context: CliContext, items: readonly RunSchedule[]): string {
  const now = context.now();
  return tableLines({
    headings: ["NAME", "FUNCTION", "WHEN", "ZONE", "LAST", "NEXT"],
    rows: items.map((schedule) => {
      const { name, cadence, lastAt, isPaused } = schedule;
      const timeZone = cadence.kind === "cron" ? cadence.timeZone : context.host.timeZone;
      const instant = (at: number): string => spokenInstant(at, now, timeZone);
      return [
        name,
        schedule.function,
        cadenceText(schedule),
        timeZone,
        lastAt === null ? "" : instant(lastAt),
        isPaused ? { text: "paused", colour: "yellow" } : nextText(schedule, now, instant),
      ];
    }),
    style: context.style,
    width: context.width,
  }).join("\n");
}

function nextText(
  { next, waiting, failure }: RunSchedule,
  now: number,
  instant: (at: number) => string,
): string {
  const [first] = next;
  const isLate = first !== undefined && now - first > 60_000;
  return [
    next.map(instant).join(", "),
    ...(isLate ? ["overdue: check that a worker has it"] : []),
    ...(waiting > 0 ? [`${waiting} queued`] : []),
    ...(failure === null ? [] : [`failed with ${failure}`]),
  ].join("; ");
}

function cadenceText({ cadence }: RunSchedule): string {
  return cadence.kind === "cron" ? cadence.expression : `every ${spokenDuration(cadence.everyMs)}`;
}
