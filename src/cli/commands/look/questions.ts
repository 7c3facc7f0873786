import { Option, type Command } from "commander";
import { spokenDuration } from "../../../model/time/spoken.ts";
import { listQuestions, type RunWait } from "../../../runtime/client/questions.ts";
import type { Question } from "../../../stores/execution/read/questions.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { instantOption, wholeNumberOption } from "../../options/option-values.ts";
import { tableLines } from "../../text/table.ts";
import { valueText } from "../../text/value-text.ts";

interface QuestionsOptions {
  readonly kind?: "question" | RunWait["kind"];
  readonly function?: string;
  readonly run?: string;
  readonly tag?: string;
  readonly until?: number;
  readonly limit?: number;
  readonly after?: string;
}

/** `holdfast questions`: what runs ask people, newest first. */
export function addQuestions(program: Command, cli: Cli): void {
  program
    .command("questions")
    .description("lists the open questions of runs, newest first")
    .option("--function <name>", "only of runs of this function")
    .option("--run <id>", "only of this run and the runs below it")
    .option("--tag <tag>", "only questions with this tag; for other kinds runs with this tag")
    .option("--until <time>", "only what was asked before this time", instantOption(cli.host))
    .addOption(
      new Option(
        "--kind <kind>",
        "list what else runs wait for, by function, run or tag (default: question)",
      ).choices(["question", "signal", "sleep"]),
    )
    .option(
      "--limit <count>",
      "the number of questions, 1 to 1000 (default: 50)",
      wholeNumberOption,
    )
    .option("--after <cursor>", "continue after the previous page: its next cursor")
    .action(
      cli.action(async (context, options: QuestionsOptions) => {
        const { pages, database, sealed } = await context.openForReading();
        const { kind, function: name, run, tag, until, limit, after } = options;
        const filter = { kind, function: name, run, tag, askedBefore: until, limit, after };
        const given = Object.entries(filter).filter(([, value]) => value !== undefined);
        const page = await listQuestions(
          { pages, clock: database.clock },
          { ...Object.fromEntries(given), signal: context.stop },
        );
        const { items, next, damaged, looked } = page;
        if (context.isJson)
          return context.printJson({
            items,
            next: next ?? null,
            ...(looked !== undefined && { looked }),
            damaged,
          });
        if (items.length > 0) context.print(questionTable(context, items));
        else context.note(next === undefined ? "No open questions." : "None on this page.");
        const first = items.find((item) => item.kind === "question");
        if (first !== undefined)
          context.note(`Answer one with: npx holdfast answer ${first.id} '…'${context.dbOption}`);
        context.noteDamaged(damaged);
        if (next !== undefined) context.note(`More: --after ${next}`);
        if (sealed !== undefined) context.note(`Values are shown as sealed. ${sealed.message}`);
      }),
    );
}

function questionTable(context: CliContext, items: readonly (Question | RunWait)[]): string {
  const now = context.now();
  return tableLines({
    headings: ["ID", "FUNCTION", "ASKED", "UNTIL", "ABOUT"],
    rows: items.map((item) => [
      item.kind === "question" ? item.id : item.run,
      item.function,
      `${spokenDuration(now - item.askedAt)} ago`,
      item.expiresAt === null ? "" : `in ${spokenDuration(Math.max(0, item.expiresAt - now))}`,
      aboutText(item),
    ]),
    style: context.style,
    width: context.width,
  }).join("\n");
}

function aboutText(item: Question | RunWait): string {
  switch (item.kind) {
    case "signal":
      return `signal ${item.signal}`;
    case "sleep":
      return "sleep";
    case "question":
      return item.about === undefined ? "" : valueText(item.about);
  }
}
