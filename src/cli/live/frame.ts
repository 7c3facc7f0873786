import { oneLine, type Colour, type Style } from "../text/style.ts";
import type { RunRow } from "./run-row.ts";
import { spokenDuration } from "../../model/time/spoken.ts";
import { statusColour } from "../text/run-text.ts";
import { clipped, fitted, widthOf } from "../text/text-width.ts";
import type { RunsView } from "./watch-runs.ts";

/** The target of a frame. */
export interface Canvas {
  readonly columns: number;
  readonly style: Style;
  readonly now: number;
}

const idColumnsMax = 30;
const functionColumnsMax = 24;
const statusColumns = 10;
const timeColumns = 7;

/** Draws one line for each run and one for the hidden ones, none wider than the canvas. */
export function frameOf(view: RunsView, canvas: Canvas): readonly string[] {
  const { rows } = view;
  const widest = (text: (row: RunRow) => string, columnsMax: number): number =>
    Math.min(
      columnsMax,
      rows.reduce((most, row) => Math.max(most, widthOf(oneLine(text(row)))), 1),
    );
  const idColumns = widest(({ id }) => id, idColumnsMax);
  const functionColumns = widest((row) => row.function, functionColumnsMax);
  const lines = rows.map((row) => {
    const time = spokenDuration((row.endedAt ?? canvas.now) - row.startedAt);
    const cells: readonly (readonly [string, Colour | undefined])[] = [
      [fitted(oneLine(row.id), idColumns), undefined],
      [fitted(oneLine(row.function), functionColumns), "dim"],
      [fitted(row.status, statusColumns), statusColour(row.status)],
      [time.padStart(timeColumns), "dim"],
      [oneLine(row.doing), undefined],
    ];
    return lineOf(cells, canvas);
  });
  const more = moreOf(view);
  return more === undefined ? lines : [...lines, lineOf([[more, "dim"]], canvas)];
}

/** `… and 120 more`, or undefined when all are shown. */
function moreOf({ hidden, isHiddenMore }: RunsView): string | undefined {
  if (hidden === 0 && !isHiddenMore) return undefined;
  const count = hidden.toLocaleString("en");
  return isHiddenMore ? `… and more than ${count} more` : `… and ${count} more`;
}

/** Joins cells into a line and cuts it to the canvas; colours take no columns. */
function lineOf(
  cells: readonly (readonly [string, Colour | undefined])[],
  { columns, style }: Canvas,
): string {
  let line = "  ";
  let left = columns - 2;
  for (const [index, [text, colour]] of cells.entries()) {
    const gap = index === 0 ? "" : "  ";
    const cut = clipped(text, left - gap.length);
    if (cut === "") break;
    line += gap + (colour === undefined ? cut : style(colour, cut));
    left -= gap.length + widthOf(cut);
  }
  return line.trimEnd();
}

/** The runs that changed between two views, oldest first. */
export function changedRows(before: RunsView | undefined, after: RunsView): readonly RunRow[] {
  const known = new Map(before?.rows.map((row) => [row.id, row]));
  return after.rows
    .filter((row) => {
      const was = known.get(row.id);
      return was?.status !== row.status || was.doing !== row.doing;
    })
    .toReversed();
}

/** A changed run as one line, for output without a terminal. */
export function changeLine(row: RunRow, now: number): string {
  const time = spokenDuration((row.endedAt ?? now) - row.startedAt);
  const doing = oneLine(row.doing);
  return (
    `${oneLine(row.id)} (${oneLine(row.function)}) ${row.status}` +
    `${row.endedAt === null ? "" : ` after ${time}`}${doing === "" ? "" : `: ${doing}`}`
  );
}
