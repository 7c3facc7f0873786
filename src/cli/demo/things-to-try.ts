import { ownCommand } from "../process/own-process.ts";
import { quoted } from "../text/quoted.ts";

/** The end of the demo: next commands to copy. */
export function thingsToTry(database: string, order: string): readonly string[] {
  const holdfast = ownCommand();
  const db = `--db ${quoted(database)}`;
  return [
    "Three things to try:",
    `  1. See how ${order} was interrupted and resumed:  ${holdfast} show ${order} ${db}`,
    `  2. List all runs of this file:  ${holdfast} list ${db}`,
    `  3. Write your own:  ${holdfast} init  writes a file; edit it while  ${holdfast} dev <file>  runs it`,
    "",
    `The database stays in ${database}; remove its folder when you are done.`,
  ];
}
