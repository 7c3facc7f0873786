import { safely } from "../../../model/safely.ts";
import type { Fate } from "../../../sql/fate.ts";
import type { Request, Tx } from "../../../sql/operation.ts";
import { inStatement } from "../../../sql/statement-errors.ts";
import type { Statement } from "../../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { isBusy } from "./failures.ts";

/** SQLite ended the transaction by itself: everything in it is gone. */
export class TransactionEnded extends Error {}

/** A lock is held elsewhere: the whole transaction is to be tried again. */
export class Busy extends Error {}

/** True for what is about the transaction, and not about the call; a body may throw anything. */
export function isOfTransaction(thrown: unknown): thrown is Busy | TransactionEnded {
  return safely(() => thrown instanceof Busy || thrown instanceof TransactionEnded, false);
}

/**
 * Runs a body to its end, synchronously. A statement's error enters the body
 * only while its transaction still exists: after SQLite rolled back by itself
 * (a full disk does it) further statements would commit one by one, so then
 * the body is never resumed.
 */
export function drive<T>(body: Tx<T>, connection: Connection, fate: Fate): T {
  let step = body.next();
  while (step.done !== true) {
    const request = step.value;
    // Of a bare `yield` there is no request.
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
