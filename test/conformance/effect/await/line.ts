import type { Database } from "../../../../src/kernel.ts";
import { executions } from "../../../../src/executions.ts";

/** Waits for what a line says, such as "result r1", and tells what was found. */
export async function awaitLine(database: Database, line: string): Promise<unknown> {
  const [command, argument = ""] = line.split(" ");
  const log = executions(database);
  switch (command) {
    case "result":
      return await log.waitForResult(argument);
    case "responses":
      return (await log.waitForResponses(argument, 0)).map(({ seq }) => seq);
    case "pending":
      await log.waitForPending([argument]);
      return "due";
    default:
      throw new Error(`Nobody can wait for "${line}".`);
  }
}
