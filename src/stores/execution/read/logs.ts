import type { Encoded } from "../../../model/encoded.ts";
import { HoldfastError } from "../../../model/errors.ts";
import { excerpt } from "../../../model/excerpt.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { parseRunId } from "../../../model/prefixed-id.ts";
import type { RunId } from "../../../model/prefixed-id.ts";
import { checkedCount } from "../../../model/shape.ts";
import { run, plainOperation } from "../../../sql/operation.ts";
import type { Operation } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { lockedKey } from "../lock/locked-key.ts";
import { assertFits } from "../log/text-limit.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error";

const levels: Readonly<Record<LogLevel, true>> = {
  trace: true,
  debug: true,
  info: true,
  warn: true,
  error: true,
};

export function isLogLevel(level: string): level is LogLevel {
  return Object.hasOwn(levels, level);
}

/** A line about an execution, by its code or by the worker that runs it. */
export interface NewLogLine {
  readonly at: number;
  readonly level: LogLevel;
  /** At most 64 KiB as UTF-8. */
  readonly message: string;
  readonly run?: RunId | undefined;
  readonly payload?: Encoded | undefined;
}

export interface AppendLogs {
  readonly id: ExecutionId;
  /** Kept in this order. */
  readonly lines: readonly NewLogLine[];
}

/** A line takes a statement; more of them would hold the transaction for too long. */
const linesMax = 200;

/**
 * Adds lines to the log of an execution, all of them or none. Finished ones
 * take lines too: the last words often come after the end.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`,
 *   `ID_MALFORMED`, `TEXT_INVALID`, `VALUE_TOO_LARGE`.
 */
export const appendLogs: Operation<AppendLogs, void> = plainOperation(
  "appendLogs",
  {
    key: (input: AppendLogs) => input.id,
    *one({ id, lines }) {
      checkedCount("lines.length", lines.length, { min: 1, max: linesMax });
      for (const line of lines) assertLine(line);
      // The lock gives the lines of one execution their keys in the order in
      // which they become visible, so that a reader's cursor passes over none.
      const execution = yield* lockedKey(id);
      for (const { at, level, message, run: runId, payload } of lines)
        yield* run(sql`
        INSERT INTO holdfast_execution_log (execution, at, run, level, message, payload)
        VALUES (${execution}, ${at}, ${runId ?? null}, ${level}, ${message}, ${payload ?? null})`);
    },
  },
);

function assertLine({ at, level, message, run: runId }: NewLogLine): void {
  if (runId !== undefined) parseRunId(runId);
  checkedCount("at", at);
  if (!isLogLevel(level))
    throw new HoldfastError(
      "OPTION_INVALID",
      `There is no log level ${excerpt(level)}. There are: ${Object.keys(levels).join(", ")}.`,
      { option: "level" },
    );
  assertFits("A log message", message);
}
