import { unreachable } from "../../model/errors.ts";
import type { Span } from "../../model/execution/span.ts";
import { spokenDuration } from "../../model/time/spoken.ts";
import { oneLine, type Colour, type Style } from "./style.ts";
import { clipped, fitted, widthOf } from "./text-width.ts";

interface TimelineOptions {
  readonly now: number;
  readonly style: Style;
  /** The width of the terminal; undefined for another program. */
  readonly width: number | undefined;
  /** The instant since which the code has run without recording anything. */
  readonly runningSince?: number | null;
}

/** A bar of the log, or the code that runs now. */
type Bar =
  | Span
  | {
      readonly kind: "running";
      readonly version: number;
      readonly began: number;
      readonly ended: null;
    };

const rowsMax = 20;
const nameColumnsMax = 28;
const barColumnsMin = 10;
const barColumnsMax = 60;
/** The width that is drawn for, unless a terminal tells its own. */
const usualWidth = 80;
const gap = "  ";

/**
 * Draws bars over one axis of time, a line for each: `=` where a body ran, `-` where the run waited,
 * `>` at the end of what lasts. Of many bars it draws the longest. Nothing for a run that took no
 * time.
 */
export function timelineLines(
  recorded: readonly Span[],
  { now, style, width = usualWidth, runningSince = null }: TimelineOptions,
): readonly string[] {
  const spans: readonly Bar[] =
    runningSince === null
      ? recorded
      : [...recorded, { kind: "running", version: 0, began: runningSince, ended: null }];
  const endOf = ({ began, ended }: Pick<Bar, "began" | "ended">): number =>
    Math.max(began, ended ?? now);
  const from = spans.reduce((first, { began }) => Math.min(first, began), Infinity);
  const until = spans.reduce((last, span) => Math.max(last, endOf(span)), -Infinity);
  if (!(until > from)) return [];
  const shown = longest(spans, endOf);
  const rows = shown.map((span) => ({
    span,
    name: oneLine(nameOf(span)),
    words: wordsOf(span, endOf(span) - span.began),
  }));
  const nameColumns = Math.min(
    nameColumnsMax,
    Math.floor(width / 3),
    Math.max(...rows.map(({ name }) => widthOf(name))),
  );
  const free = width - nameColumns - 2 * gap.length;
  const wordColumns = Math.max(...rows.map(({ words }) => words.length));
  const columns = Math.min(barColumnsMax, Math.max(barColumnsMin, free - wordColumns));
  const scale: Scale = { from, columns, msPerColumn: (until - from) / columns };
  const left = spans.length - shown.length;
  return [
    style("bold", "Timeline") +
      style(
        "dim",
        ` of ${spokenDuration(until - from)}${left === 0 ? "" : ` (the ${shown.length} longest of ${spans.length})`}`,
      ),
    ...rows.map(({ span, name, words }) => {
      const bar = style(colourOf(span), drawn(span, endOf(span), scale));
      const shownWords = clipped(words, free - columns);
      const cells = [fitted(name, nameColumns), bar, style("dim", shownWords)];
      return (shownWords === "" ? cells.slice(0, 2) : cells).join(gap);
    }),
  ];
}

/** Bars that last come first, then the longest; in the order of their beginnings. */
function longest(spans: readonly Bar[], endOf: (span: Bar) => number): readonly Bar[] {
  if (spans.length <= rowsMax) return spans;
  const rank = (span: Bar): number =>
    span.ended === null ? Number.MAX_VALUE : endOf(span) - span.began;
  const kept = new Set(spans.toSorted((a, b) => rank(b) - rank(a)).slice(0, rowsMax));
  return spans.filter((span) => kept.has(span));
}

interface Scale {
  readonly from: number;
  readonly columns: number;
  readonly msPerColumn: number;
}

/** One line of the axis with a bar: at least one character, however short it is. */
function drawn(span: Bar, end: number, { from, columns, msPerColumn }: Scale): string {
  const cells = Array.from({ length: columns }, () => " ");
  const fill = (began: number, ended: number, mark: string): void => {
    const first = Math.min(columns - 1, Math.floor((began - from) / msPerColumn));
    const last = Math.max(first, Math.ceil((ended - from) / msPerColumn) - 1);
    cells.fill(mark, first, Math.min(columns, last + 1));
  };
  fill(span.began, end, isRunning(span) ? "=" : "-");
  if ("attempts" in span)
    for (const { began, ended } of span.attempts) fill(began, ended ?? end, "=");
  if (span.ended === null) cells[columns - 1] = ">";
  return cells.join("");
}

/** True where the whole bar is work; a step draws its attempts. */
function isRunning({ kind }: Bar): boolean {
  return kind === "child" || kind === "attempt" || kind === "running";
}

function nameOf(span: Bar): string {
  switch (span.kind) {
    case "step":
    case "transaction":
    case "child":
      return span.name;
    case "receive":
      return `signal ${span.name}`;
    case "external":
      return "answer from outside";
    case "attempt":
      return `attempt ${span.attempt}`;
    case "death":
      return span.outcome === "ownerDied" ? "its process died" : "its worker was gone";
    case "running":
    case "sleep":
    case "paused":
    case "cancelling":
    case "parked":
      return span.kind;
    default:
      return unreachable(span);
  }
}

/** The time that it took, and its end unless that is the usual one. */
function wordsOf(span: Bar, ms: number): string {
  const attempts = "attempts" in span ? span.attempts.length : 1;
  const ending = "outcome" in span ? unusual[span.outcome ?? ""] : undefined;
  return [
    span.ended === null ? `${spokenDuration(ms)} so far` : spokenDuration(ms),
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...(ending === undefined ? [] : [ending]),
  ].join(", ");
}

const unusual: Readonly<Partial<Record<string, string>>> = {
  failed: "failed",
  timedOut: "timed out",
  cancelled: "cancelled",
  released: "released",
  died: "its process died",
};

function colourOf(span: Bar): Colour {
  const ending = "outcome" in span ? span.outcome : undefined;
  if (ending === "failed" || ending === "died" || span.kind === "death") return "red";
  switch (span.kind) {
    case "step":
    case "transaction":
    case "child":
    case "attempt":
    case "running":
      return "cyan";
    case "paused":
    case "cancelling":
    case "parked":
      return "yellow";
    default:
      return "dim";
  }
}
