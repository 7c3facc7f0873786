import { ownCommand } from "../process/own-process.ts";
import { quoted } from "../text/quoted.ts";

/** How the demo ends: what its user can do next, as commands to copy. */
export function thingsToTry(database: string, order: string): readonly string[] {
  const holdfast = ownCommand();
  const db = `--db ${quoted(database)}`;
  return [
    "Three things to try:",
    `  1. See how ${order} was killed and went on:  ${holdfast} show ${order} ${db}`,
    `  2. List all runs of this file:  ${holdfast} list ${db}`,
    `  3. Write your own:  ${holdfast} init  writes a file; change it while  ${holdfast} dev <file>  runs it`,
    "",
    `The database stays in ${database}; remove its folder when you are done.`,
  ];
}
