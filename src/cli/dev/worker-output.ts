import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { withColoursOnly } from "../text/style.ts";

/** Passes on the output of a process, line by line, from both streams. */
export function onLines({ stdout, stderr }: ChildProcess, tell: (line: string) => void): void {
  for (const input of [stdout, stderr])
    if (input !== null) createInterface({ input }).on("line", (line) => tell(unpaintedAtEnd(line)));
}

/** Keeps the colours of a line from spreading to later text. */
export function unpaintedAtEnd(line: string): string {
  const shown = withColoursOnly(line);
  return shown.includes("\u001b") ? `${shown}\u001b[0m` : shown;
}
