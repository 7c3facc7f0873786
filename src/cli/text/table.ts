import { oneLine, type Colour, type Style } from "./style.ts";
import { clipped, fitted, widthOf } from "./text-width.ts";

/** A cell: its text and colour. */
export type Cell = string | { readonly text: string; readonly colour: Colour };

export interface TableOptions {
  readonly headings: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  readonly style: Style;
  /** The width at which lines are cut; undefined keeps them whole, for other programs. */
  readonly width: number | undefined;
  /**
   * Keeps the last cells readable where the first are long: the first then have a line each, and the
   * rest follow below.
   */
  readonly stacks?: boolean;
}

/** The columns that the last cell of a table needs to say something. */
const lastColumnsMin = 24;

const gap = "  ";

/** Formats columns as wide as their widest cell, the last one cut to the terminal. */
export function tableLines(options: TableOptions): readonly string[] {
  const { headings, rows, style, width } = options;
  const texts = rows.map((row) => row.map((cell) => oneLine(textOf(cell))));
  const widths = headings.map((heading, column) =>
    Math.max(widthOf(heading), ...texts.map((row) => widthOf(row[column] ?? ""))),
  );
  const fixed = widths.slice(0, -1).reduce((sum, columns) => sum + columns + gap.length, 0);
  if (options.stacks === true && width !== undefined && fixed + lastColumnsMin > width)
    return stackedLines(options);
  const lineOf = (
    cells: readonly string[],
    paint: (text: string, column: number) => string,
  ): string => {
    let left = width ?? Number.POSITIVE_INFINITY;
    const shown: string[] = [];
    cells.forEach((text, column) => {
      const isLast = column === cells.length - 1;
      const whole = isLast ? text : fitted(text, widths[column] ?? 0);
      const cut = clipped(whole, left);
      if (cut !== "") shown.push(paint(cut, column));
      left -= widthOf(whole) + gap.length;
    });
    return shown.join(gap);
  };
  return [
    lineOf(headings, (text) => style("dim", text)).trimEnd(),
    ...texts.map((row, index) =>
      lineOf(row, (text, column) => {
        const cell = rows[index]?.[column];
        return typeof cell === "object" ? style(cell.colour, text) : text;
      }).trimEnd(),
    ),
  ];
}

/** A table whose first column has lines of its own. */
function stackedLines({ headings, rows, style, width }: TableOptions): readonly string[] {
  const [first = "", ...others] = headings;
  const indent = "  ";
  const rest = tableLines({
    headings: others,
    rows: rows.map((row) => row.slice(1)),
    style,
    width: width === undefined ? undefined : width - indent.length,
  });
  const heads = [first, ...rows.map((row) => oneLine(textOf(row[0] ?? "")))];
  return heads.flatMap((head, index) => [
    index === 0 ? style("dim", head) : head,
    `${indent}${rest[index] ?? ""}`,
  ]);
}

function textOf(cell: Cell): string {
  return typeof cell === "string" ? cell : cell.text;
}
