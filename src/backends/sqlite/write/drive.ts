import { safely } from "../../../model/safely.ts";
import type { Fate } from "../../../sql/fate.ts";
import type { Request, Tx } from "../../../sql/operation.ts";
import { inStatement } from "../../../sql/statement-errors.ts";
import type { Statement } from "../../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./failures.ts";

/** SQLite ended the transaction itself: all its changes are gone. */
export class TransactionEnded extends Error {}

/** Another process holds a lock: the whole transaction must be retried. */
export class Busy extends Error {}

/** True for errors of the transaction, as opposed to the call. A body may throw anything. */
export function isOfTransaction(thrown: unknown): thrown is Busy | TransactionEnded {
  return safely(() => thrown instanceof Busy || thrown instanceof TransactionEnded, false);
}

/**
 * Runs a body to its end, synchronously. A statement's error is thrown into the body only while its
 * transaction still exists. After SQLite has rolled back by itself, as a full disk makes it do,
 * further statements would commit one by one. So then the body is never resumed.
 */
export function drive<T>(body: Tx<T>, connection: Connection, fate: Fate): T {
  let step = body.next();
  while (step.done !== true) {
    const request = step.value;
    // A bare `yield` has no request.
    const statement = (request as Request | undefined)?.statement;
    if (statement === undefined) {
      step = body.next(fate.note(request));
      continue;
    }
    fate.assertMayRun(request.want, statement.template);
    let answer: unknown;
    try {
      answer = execute(connection, request.want, statement);
    } catch (error) {
      if (isBusy(error)) throw new Busy("busy", { cause: error });
      const located = inStatement(connection.failure(error), fate.name, statement.template.sqlite);
      if (!connection.inTransaction) throw new TransactionEnded("ended", { cause: located });
      fate.failed(located);
      step = body.throw(located);
      continue;
    }
    step = body.next(answer);
  }
  return step.value;
}

function execute(connection: Connection, want: Request["want"], statement: Statement): unknown {
  switch (want) {
    case "run":
      return connection.run(statement);
    case "row":
      return connection.row(statement);
    default:
      return connection.rows(statement);
  }
}
