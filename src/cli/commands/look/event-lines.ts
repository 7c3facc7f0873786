import { spokenEvent } from "../../../model/execution/spoken-event.ts";
import { exactInstant, spokenDuration } from "../../../model/time/spoken.ts";
import { isStoredError } from "../../../model/values/restored-error.ts";
import type { CliContext } from "../../context.ts";
import { tableLines } from "../../text/table.ts";
import { valueText } from "../../text/value-text.ts";
import type { RunPicture, TimedEvent } from "./run-picture.ts";

interface EventLinesOptions {
  /** The number of events that the log has. */
  readonly count: number;
  /** True to print the results of steps and children. */
  readonly withValues: boolean;
}

/** The width under which the date stands above the lines. */
const wideColumns = 60;

/** The log of a run as lines: what happened, why attempts failed, and the signals between. */
export function eventLines(
  context: CliContext,
  { events, signals }: Pick<RunPicture, "events" | "signals">,
  { count, withValues }: EventLinesOptions,
): readonly string[] {
  if (events.length === 0) return [];
  const { style, width } = context;
  const { timeZone } = context.host;
  const isNarrow = width !== undefined && width < wideColumns;
  const happened = withSignals(events, signals, withValues);
  const rows = happened.map(({ version, at, words }, index) => {
    const before = happened[index - 1]?.at;
    const instant = exactInstant(at, timeZone);
    return [
      { text: version, colour: "dim" as const },
      isNarrow ? instant.slice(timeFrom) : instant,
      before === undefined ? "" : `+${spokenDuration(at - before)}`,
      words,
    ];
  });
  const day = exactInstant(events[0]?.at ?? 0, timeZone).slice(0, timeFrom - 1);
  return [
    style("bold", "Log") +
      (isNarrow ? style("dim", ` from ${day}`) : "") +
      (count > events.length
        ? style("dim", ` (the last ${events.length} of ${count}: --events ${count} shows all)`)
        : ""),
    ...tableLines({
      headings: ["", "AT", "", "EVENT"],
      rows,
      style,
      width,
    }),
  ];
}

/** The place of the time in `2026-11-17 09:00:05.123`. */
const timeFrom = 11;

interface Happening {
  /** Empty for a signal: it is not an event of the log, so a fork cannot start there. */
  readonly version: string;
  readonly at: number;
  readonly words: string;
}

/** The events, merged with the signals sent since the first of them. */
function withSignals(
  events: RunPicture["events"],
  signals: RunPicture["signals"],
  withValues: boolean,
): readonly Happening[] {
  const from = events[0]?.at ?? 0;
  const logged = events
    // A rest says nothing: the requests before it say what the run waits for.
    .filter(({ event }) => event.kind !== "waiting")
    .map((each) => ({
      version: String(each.version),
      at: each.at,
      words: wordsOf(each, withValues),
    }));
  const sent = signals
    .filter(({ at }) => at >= from)
    .map(({ at, signal, value }) => ({
      version: "",
      at,
      words: `signal ${signal} arrived: ${valueText(value)}`,
    }));
  // Sorting is stable, so events precede signals of the same instant.
  return [...logged, ...sent].toSorted((a, b) => a.at - b.at);
}

function wordsOf({ event, at, tookMs, answer }: TimedEvent, withValues: boolean): string {
  const took = tookMs === undefined ? "" : `, took ${spokenDuration(tookMs)}`;
  const said = `${spokenEvent(event, at)}${took}`;
  const because = (error: unknown): string =>
    isStoredError(error) ? `: ${error.name}: ${error.message}` : "";
  const valued = (value: unknown): string => (withValues ? `: ${valueText(value)}` : "");
  switch (event.kind) {
    case "attemptFailed":
    case "stepAttemptFailed":
      return said + because(event.error);
    case "stepFinished":
    case "transactionFinished":
      return said + (event.outcome === "failed" ? because(event.value) : valued(event.value));
    case "childRequested":
      if (answer === undefined) return said;
      if (answer.kind === "completed") return said + valued(answer.value);
      if (answer.kind === "failed") return `${said}, failed${because(answer.error)}`;
      return `${said}, ${answer.kind === "timedOut" ? "timed out" : answer.kind}`;
    default:
      return said;
  }
}
