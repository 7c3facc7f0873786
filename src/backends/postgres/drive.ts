import type { Fate } from "../../sql/fate.ts";
import type { Request, Tx } from "../../sql/operation.ts";
import type { Statement } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";

/**
 * Runs a body to its end, awaiting each statement. What is no statement costs
 * no round trip.
 */
export async function drive<T>(
  connection: Connection,
  body: Tx<T>,
  fate: Fate,
): Promise<T> {
  let step = body.next();
  while (step.done !== true) {
    const request = step.value;
    if (request.statement === undefined) {
      fate.note(request);
      step = body.next();
      continue;
    }
    fate.assertMayRun();
    let answer: unknown;
    try {
      answer = await ask(connection, request.want, request.statement);
    } catch (error) {
      fate.failed(error);
      step = body.throw(error);
      continue;
    }
    step = body.next(answer);
  }
  return step.value;
}

async function ask(
  connection: Connection,
  want: Request["want"],
  statement: Statement,
): Promise<unknown> {
  const { rows, count } = await connection.query(statement);
  if (want === "run") return count;
  return want === "row" ? rows[0] : rows;
}
