import { columnsOf } from "../host.ts";
import type { CliContext } from "../context.ts";
import { oneLine } from "./style.ts";
import { clipped } from "./text-width.ts";

/** A line on a terminal that is overwritten; prints nothing elsewhere. */
export class ProgressLine {
  readonly #context: CliContext;
  readonly #isShown: boolean;
  #isDrawn = false;

  constructor(context: CliContext) {
    this.#context = context;
    this.#isShown = context.host.stderr.isTTY === true && !context.isJson;
  }

  show(text: string): void {
    if (!this.#isShown) return;
    const { stderr } = this.#context.host;
    this.#isDrawn = true;
    stderr.write(`\r\u001B[2K${clipped(oneLine(text), columnsOf(stderr) - 1)}`);
  }

  /** Erases the line; call it before any other output. */
  clear(): void {
    if (this.#isDrawn) this.#context.host.stderr.write("\r\u001B[2K");
    this.#isDrawn = false;
  }
}
