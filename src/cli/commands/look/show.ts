import type { Command } from "commander";
import type { Interruption } from "../../../model/execution/interruption.ts";
import { isMetadata, type Metadata } from "../../../model/execution/metadata.ts";
import type { ComparedCall, Mismatch } from "../../../model/execution/mismatch.ts";
import { spokenDuration, spokenInstant } from "../../../model/time/spoken.ts";
import type { Cli } from "../../cli.ts";
import type { CliContext } from "../../context.ts";
import { wholeNumberOption } from "../../options/option-values.ts";
import { listedJson } from "../../standings.ts";
import { runTable, statusColour } from "../../text/run-text.ts";
import { barred, oneLine } from "../../text/style.ts";
import { tableLines } from "../../text/table.ts";
import { timelineLines } from "../../text/timeline.ts";
import { errorLines, valueText } from "../../text/value-text.ts";
import { eventLines } from "./event-lines.ts";
import { questionLines } from "./question-lines.ts";
import { pictureOf, type RunPicture } from "./run-picture.ts";

const eventsShown = 50;

interface ShowOptions {
  readonly events?: number;
  readonly values?: true;
}

type Parked = Extract<Interruption, { readonly kind: "parked" }>;

/** `holdfast show <id>`: shows one run in full. */
export function addShow(program: Command, cli: Cli): void {
  program
    .command("show")
    .description("shows a run: its status, waits, timeline, log, children and error")
    .argument("<id>", "the id of the run")
    .option(
      "--events <count>",
      `the number of newest events (default: ${eventsShown}; with --json all)`,
      wholeNumberOption,
    )
    .option("--values", "include the results of steps and children in the log")
    .action(
      cli.action(async (context, options: ShowOptions, id: string) => {
        const opened = await context.openForReading();
        const picture = await pictureOf(context, opened, id);
        const { events: all } = picture;
        const count = options.events ?? (context.isJson ? all.length : eventsShown);
        const events = count === 0 ? [] : all.slice(-count);
        const children = picture.children.map(listedJson);
        context.answer({ ...picture, events, children }, () =>
          pictureText(
            context,
            { ...picture, events },
            { count: all.length, withValues: options.values === true },
          ),
        );
        context.noteDamaged(picture.damaged);
        if (opened.sealed !== undefined)
          context.note(`Values are shown as sealed. ${opened.sealed.message}`);
      }),
    );
}

function pictureText(
  context: CliContext,
  picture: RunPicture,
  log: Parameters<typeof eventLines>[2],
): string {
  const { style } = context;
  const { run, status, words, children, hasMoreChildren } = picture;
  const head = `${style("bold", run.id)}  ${run.function}  ${style(statusColour(status), status)}`;
  const parts = [
    [head, `  ${oneLine(words)}`, ...nextLines(context, picture)],
    factLines(context, picture),
    outcomeLines(context, picture),
    questionLines(picture.questions, style),
    timelineLines(picture.spans, {
      now: context.now(),
      style: context.style,
      width: context.width,
      runningSince: picture.runningSince,
    }),
    eventLines(context, picture, log),
    children.length === 0
      ? []
      : [
          style("bold", "Children"),
          runTable(context, children, (child) => indented(child.id, run.id)),
          ...(hasMoreChildren
            ? [style("dim", `… more: npx holdfast list --parent ${run.id}`)]
            : []),
        ],
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

/** Indents each level below the run. */
function indented(id: string, root: string): string {
  const depth = id.slice(root.length).split(".").length - 2;
  return `${"  ".repeat(Math.max(0, depth))}${id}`;
}

function factLines(
  context: CliContext,
  { run, input, metadata = {} }: RunPicture,
): readonly string[] {
  const now = context.now();
  const { timeZone } = context.host;
  const instant = (at: number): string =>
    `${spokenInstant(at, now, timeZone)} (${at > now ? `in ${spokenDuration(at - now)}` : `${spokenDuration(now - at)} ago`})`;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["created", instant(run.createdAt)],
    ["parent", run.parent ?? undefined],
    ["deadline", run.deadlineAt === null ? undefined : instant(run.deadlineAt)],
    ["tags", run.tags.length === 0 ? undefined : run.tags.join(", ")],
    ["metadata", isMetadata(metadata) ? spokenMetadata(metadata) : undefined],
    ["key", run.concurrencyKey ?? undefined],
    ["version", run.codeVersion ?? undefined],
    ["progress", run.progress === null ? undefined : valueText(run.progress)],
    ["input", input === undefined ? undefined : valueText(input)],
  ];
  return facts.flatMap(([name, text]) =>
    text === undefined ? [] : [`${context.style("dim", name.padEnd(9))} ${oneLine(text)}`],
  );
}

function spokenMetadata(metadata: Metadata): string | undefined {
  const entries = Object.entries(metadata).map(([name, value]) => `${name}=${value}`);
  return entries.length === 0 ? undefined : entries.join(", ");
}

/** The outcome, or the reason why it was parked: the recorded and the actual call. */
function outcomeLines(context: CliContext, { run, result }: RunPicture): readonly string[] {
  const { style } = context;
  const { interruption } = run;
  if (interruption?.kind === "parked") return parkedLines(context, interruption);
  switch (result?.kind) {
    case undefined:
    case "timedOut":
      return [];
    case "completed":
      return [`${style("dim", "result   ")} ${valueText(result.value)}`];
    case "cancelled":
      return result.reason === undefined
        ? []
        : [`${style("dim", "reason   ")} ${oneLine(result.reason)}`];
    case "failed":
      return errorLines(result.error, style);
  }
}

/** Only the message says why the code did not make the recorded call, so it is shown in full then. */
function parkedLines(context: CliContext, { code, reason, mismatch }: Parked): readonly string[] {
  const head = context.style("red", code);
  if (mismatch === undefined || mismatch.actual === null) return [head, `│ ${barred(reason)}`];
  const { call, version } = mismatch;
  return [
    `${head} at call ${call}${version === null ? "" : `, event ${version}`}`,
    ...mismatchLines(context, mismatch),
    `│ ${barred(reason.slice(reason.lastIndexOf("\n") + 1))}`,
  ];
}

/** The recorded and the actual call, one below the other, without columns that both leave empty. */
function mismatchLines(
  { style, width }: CliContext,
  { recorded, actual }: Mismatch,
): readonly string[] {
  const rows = [
    ["recorded", ...partsOf(recorded)],
    ["actual", ...partsOf(actual)],
  ];
  const headings = ["", "CALL", "NAME", "TARGET", "INPUT", "CODE VERSION"];
  const isFilled = (_: string, column: number): boolean =>
    rows.some((parts) => (parts[column] ?? "") !== "");
  return tableLines({
    headings: headings.filter(isFilled),
    rows: rows.map((parts) => parts.filter(isFilled)),
    style,
    width,
  });
}

function partsOf(call: ComparedCall | null): readonly string[] {
  if (call === null) return ["none", "", "", "", ""];
  const { kind, name, target, inputHash, codeVersion } = call;
  return [kind, name, target, inputHash?.slice(0, 12) ?? "", codeVersion ?? ""];
}

/** Suggested next commands. */
function nextLines(
  { style, dbOption }: CliContext,
  { run, status, waits, isReadable }: RunPicture,
): readonly string[] {
  const commands = ((): readonly string[] => {
    switch (status) {
      case "failed":
      case "timedOut":
        return [`npx holdfast retry ${run.id}`];
      case "paused":
        return [`holdfast resume ${run.id}`];
      case "parked":
        return [`npx holdfast unpark ${run.id}   (once the cause is fixed)`];
      case "pending":
        return isReadable ? [] : ["npx holdfast check   (workers skip an unreadable run)"];
      case "unserved":
        return [`start a worker that serves ${run.function}`];
      case "cancelling":
        return [`npx holdfast cancel ${run.id} --force   (ends it without running its cleanup)`];
      default:
        return waits.flatMap((wait) =>
          wait.kind === "signal"
            ? [`npx holdfast signal ${run.id} ${wait.signal} --value '…'`]
            : wait.kind === "external"
              ? [`npx holdfast answer ${wait.external} '…'`]
              : wait.kind === "child" && wait.parked !== undefined
                ? [`npx holdfast show ${wait.child}`]
                : [],
        );
    }
  })();
  return commands.map((text) => {
    // After the command, before the remark.
    const whole = text.startsWith("npx holdfast")
      ? text.replace(/ {3}\(|$/, (end) => `${dbOption}${end}`)
      : text;
    return style("dim", `  → ${oneLine(whole)}`);
  });
}
