import type { FunctionName } from "../../../../src/model/function-name.ts";
import type { Database } from "../../../../src/sql/database.ts";
import {
  waitForPending,
  waitForResponses,
  waitForResult,
} from "../../../../src/stores/execution/lock/wait.ts";
import { executionId } from "../../execution/awaited-executions.ts";

/** Waits for what a line says, such as "result r1", and tells what was found. */
export async function awaitLine(
  database: Database,
  line: string,
): Promise<unknown> {
  const [command, argument = ""] = line.split(" ");
  switch (command) {
    case "result":
      return (await waitForResult(database, executionId(argument))).result;
    case "responses": {
      const id = executionId(argument);
      return (await waitForResponses(database, id, 0)).map(({ seq }) => seq);
    }
    case "pending": {
      const name = argument as FunctionName;
      await waitForPending(database, database.clock, [{ name }]);
      return "due";
    }
    default:
      throw new Error(`Nobody can wait for "${line}".`);
  }
}
