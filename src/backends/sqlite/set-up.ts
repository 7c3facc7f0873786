import { Fate } from "../../sql/fate.ts";
import type { Tx } from "../../sql/operation.ts";
import type { Statement } from "../../sql/statement.ts";
import { isBusy, statementFailure } from "./write/failures.ts";
import { threadError } from "./log/log-thread.ts";
import type { LogThread } from "./log/log-thread.ts";

/** A statement in the form sent to the thread. */
interface Plain {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly returnsRows: boolean;
}

/**
 * Switches the file to write-ahead logging. The switch flushes the file and its folder, which is
 * why it runs on the thread.
 * @returns the journal mode, which is a different one when the switch is refused.
 */
export async function switchToLog(thread: LogThread): Promise<unknown> {
  const [answer] = await execute(thread, [
    { ...control("PRAGMA journal_mode = WAL"), returnsRows: true },
  ]);
  return Object.values(answer ?? {})[0];
}

/**
 * Runs a body on the thread, in one transaction that holds the write lock from its start. The body
 * runs here, and its writes are sent together with its next query: a message per statement took
 * four times as long as the whole. So the body does not learn how many rows a statement changed.
 */
export function transactOnThread<T>(thread: LogThread, start: () => Tx<T>): Promise<T> {
  return runOnThread(thread, start, [control("COMMIT")]);
}

/**
 * Runs a body and the write that restarts the log, and rolls both back. Obstacles to them show
 * before anything is changed. A transaction that is rolled back leaves no trace in the log.
 */
export async function rehearseOnThread(thread: LogThread, start: () => Tx<unknown>): Promise<void> {
  await runOnThread(thread, start, [
    control("UPDATE holdfast_tick SET n = n + 1"),
    control("ROLLBACK"),
  ]);
}

async function runOnThread<T>(
  thread: LogThread,
  start: () => Tx<T>,
  end: readonly Plain[],
): Promise<T> {
  await execute(thread, [control("BEGIN IMMEDIATE")]);
  try {
    const fate = new Fate("open", undefined);
    const body = start();
    let unsent: Plain[] = [];
    let step = body.next();
    while (step.done !== true) {
      const { want, statement } = step.value;
      let answer: unknown;
      if (statement === undefined) fate.note(step.value);
      else unsent.push(plain(statement, want !== "run"));
      if (want === "row" || want === "rows") {
        const rows = await execute(thread, unsent);
        unsent = [];
        answer = want === "row" ? rows[0] : rows;
      }
      step = body.next(answer);
    }
    await execute(thread, [...unsent, ...end]);
    return step.value;
  } catch (error) {
    // SQLite may have ended the transaction itself; then there is nothing to undo.
    await execute(thread, [control("ROLLBACK")]).catch(() => undefined);
    throw error;
  }
}

function control(text: string): Plain {
  return { text, parameters: [], returnsRows: false };
}

function plain({ template, parameters }: Statement, returnsRows: boolean): Plain {
  return {
    text: template.sqlite,
    // Drivers bind numbers as REAL, so integers are sent as bigint.
    parameters: parameters.map((parameter) =>
      Number.isInteger(parameter) ? BigInt(parameter as number) : parameter,
    ),
    returnsRows,
  };
}

async function execute(
  thread: LogThread,
  statements: readonly Plain[],
): Promise<readonly object[]> {
  const { value, failure } = await thread.ask({ mode: "EXECUTE", statements });
  if (failure === undefined) return value as readonly object[];
  // Busy errors are for the caller, which retries.
  const error = threadError(failure);
  throw isBusy(error) ? error : statementFailure(error, "write", (table) => table);
}
