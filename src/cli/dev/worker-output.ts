import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { harmless } from "../text/style.ts";

/** What a process prints, line by line, on either of its outputs. */
export function onLines({ stdout, stderr }: ChildProcess, tell: (line: string) => void): void {
  for (const input of [stdout, stderr])
    if (input !== null)
      createInterface({ input }).on("line", (line) => tell(withColoursOnly(line)));
}

// oxlint-disable-next-line no-control-regex -- What colours are made of.
const colours = /\u001b\[[\d;]*m/g;

/** A text that may be coloured, and cannot move the cursor of a terminal that is drawn on. */
export function withColoursOnly(text: string): string {
  const found = text.match(colours) ?? [];
  const plain = text
    .split(colours)
    .map((part, index) => harmless(part) + (found[index] ?? ""))
    .join("");
  return found.length === 0 ? plain : `${plain}\u001b[0m`;
}
