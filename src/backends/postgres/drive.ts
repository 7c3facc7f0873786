import type { HoldfastError } from "../../model/errors.ts";
import type { Fate } from "../../sql/fate.ts";
import type { Request, Tx } from "../../sql/operation.ts";
import { inStatement } from "../../sql/statement-errors.ts";
import type { Statement } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";

/**
 * Runs a body to its end, awaiting each statement. Requests without a statement cost no round trip.
 */
export async function drive<T>(connection: Connection, start: () => Tx<T>, fate: Fate): Promise<T> {
  const body = fate.during(start);
  let step = fate.during(() => body.next());
  while (step.done !== true) {
    const request = step.value;
    // A bare `yield` has no request.
    const statement = (request as Request | undefined)?.statement;
    if (statement === undefined) {
      const answer = fate.note(request);
      step = fate.during(() => body.next(answer));
      continue;
    }
    const { want } = request;
    fate.assertMayRun(want, statement.template);
    let answer: unknown;
    try {
      answer = await ask(connection, want, statement);
    } catch (error) {
      const located = inStatement(error as HoldfastError, fate.name, statement.template.postgres);
      fate.failed(located);
      step = fate.during(() => body.throw(located));
      continue;
    }
    step = fate.during(() => body.next(answer));
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
