import { columnsOf } from "../host.ts";
import { jsonText } from "../text/json.ts";
import { styleOf, withColoursOnly, type Style } from "../text/style.ts";
import { clipped, widthOf } from "../text/text-width.ts";

/** The display of a running command: lines that stay, and below them a part that is redrawn. */
export interface Screen {
  /** False where nothing can be redrawn: a pipe, a file, a dumb terminal. */
  readonly isLive: boolean;
  readonly style: Style;
  columns(): number;
  rows(): number;
  /** Prints a line that stays, with the same facts as data for other programs. */
  say(line: string, data?: object): void;
  /** Redraws the part at the bottom; does nothing if `isLive` is false. */
  show(lines: readonly string[]): void;
  /** Keeps or erases the last drawing, and restores the terminal. */
  close(options?: { readonly isErased?: boolean }): void;
}

const unstyled: Style = (_, text) => text;

/** The required part of an output stream. */
export interface Output {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  write(text: string): unknown;
}

/**
 * The screen for a stream. It redraws on a terminal, and only prints lines
 * elsewhere; under `--json` each line is a document with a message.
 */
export function screenOn(
  output: Output,
  env: Readonly<Record<string, string | undefined>>,
  { isJson = false }: { readonly isJson?: boolean } = {},
): Screen {
  const isLive = !isJson && output.isTTY === true && env["TERM"] !== "dumb";
  const style = isLive ? styleOf(output, { env }) : unstyled;
  return isLive
    ? new TerminalScreen(output, style)
    : {
        isLive,
        style,
        columns: () => 80,
        rows: () => 24,
        say: (line, data) =>
          void output.write(
            `${isJson ? jsonText({ message: line.trim(), ...data }) : withColoursOnly(line)}\n`,
          ),
        show: () => undefined,
        close: () => undefined,
      };
}

const hideCursor = "\u001b[?25l";
const showCursor = "\u001b[?25h";
const clearLine = "\u001b[K";
const clearBelow = "\u001b[J";
// oxlint-disable-next-line no-control-regex -- What colours are made of.
const colours = /\u001b\[\d+m/g;

class TerminalScreen implements Screen {
  readonly isLive = true;
  readonly style: Style;
  readonly #output: Output;
  #drawn: readonly string[] = [];
  #isCursorHidden = false;
  #isClosed = false;
  readonly #restore = (): void => this.close();

  constructor(output: Output, style: Style) {
    this.#output = output;
    this.style = style;
  }

  columns(): number {
    return Math.max(20, columnsOf(this.#output));
  }

  rows(): number {
    return Math.max(3, this.#output.rows ?? 24);
  }

  say(line: string): void {
    const drawn = this.#drawn;
    this.#output.write(`${this.#start()}${clearBelow}${withColoursOnly(line)}\n`);
    this.#drawn = [];
    this.show(drawn);
  }

  show(lines: readonly string[]): void {
    if (this.#isClosed) return;
    if (!this.#isCursorHidden) {
      this.#isCursorHidden = true;
      // Restores the cursor however the process ends.
      process.once("exit", this.#restore);
      this.#output.write(hideCursor);
    }
    // Keeps one free line below the last one, or the terminal scrolls.
    const fitting = lines.slice(0, this.rows() - 1).map((line) => this.#cut(line));
    const text = fitting.map((line) => `${line}${clearLine}\n`).join("");
    this.#output.write(`${this.#start()}${text}${clearBelow}`);
    this.#drawn = fitting;
  }

  close({ isErased = false }: { readonly isErased?: boolean } = {}): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    process.off("exit", this.#restore);
    if (isErased) this.#output.write(`${this.#start()}${clearBelow}`);
    this.#drawn = [];
    if (this.#isCursorHidden) this.#output.write(showCursor);
  }

  /** Cuts a line that is too wide, which removes its colours. Lines of frames are already cut. */
  #cut(line: string): string {
    const plain = line.replaceAll(colours, "");
    return widthOf(plain) <= this.columns() ? line : clipped(plain, this.columns());
  }

  /** Moves to the first drawn line. A window that became narrower has wrapped its lines. */
  #start(): string {
    const columns = this.columns();
    const height = this.#drawn.reduce((rows, line) => {
      const width = widthOf(line.replaceAll(colours, ""));
      return rows + Math.max(1, Math.ceil(width / columns));
    }, 0);
    return height === 0 ? "\r" : `\r\u001b[${height}A`;
  }
}
