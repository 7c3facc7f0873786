import { HoldfastError } from "../../../model/errors.ts";
import type { ExecutionId } from "../../../model/execution-id.ts";
import { checkedCount } from "../../../model/shape.ts";
import { row, run, plainOperation } from "../../../sql/operation.ts";
import type { Operation, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { Statement } from "../../../sql/statement.ts";
import { lockedKey } from "../lock/locked-key.ts";
import { standing } from "./read.ts";
import { assertFits } from "../log/text-limit.ts";

/** Where in the code the events of some versions came from. */
export interface BacktraceRange {
  /** Included. */
  readonly from: number;
  /** Excluded. */
  readonly to: number;
  /** Equal for equal stacks: their text is kept once. */
  readonly hash: string;
  readonly stack: string;
}

export interface AppendBacktraces {
  readonly id: ExecutionId;
  readonly ranges: readonly BacktraceRange[];
}

/** A range takes two statements; more of them would hold the transaction for too long. */
const rangesMax = 200;

/**
 * Adds backtraces to an execution, all of them or none.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_EXISTS` when a
 *   range begins where a different one does, `TEXT_INVALID`, `OPTION_INVALID`, `VALUE_TOO_LARGE`.
 */
export const appendBacktraces: Operation<AppendBacktraces, void> =
  plainOperation("appendBacktraces", {
    key: (input: AppendBacktraces) => input.id,
    *one({ id, ranges }) {
      checkedCount("ranges.length", ranges.length, { min: 1, max: rangesMax });
      for (const range of ranges) assertRange(range);
      const execution = yield* lockedKey(id);
      for (const { from, to, hash, stack } of ranges) {
        // Written also when it is there, so that retention cannot take it away meanwhile.
        yield* run(sql`
          INSERT INTO holdfast_execution_stack (hash, stack) VALUES (${hash}, ${stack}) ON CONFLICT (hash) DO UPDATE SET stack = excluded.stack`);
        const inserted = yield* run(sql`
          INSERT INTO holdfast_execution_backtrace (execution, version_from, version_to, hash)
          VALUES (${execution}, ${from}, ${to}, ${hash}) ON CONFLICT (execution, version_from) DO NOTHING`);
        if (inserted === 0)
          yield* assertSame(id, execution, { from, to, hash });
      }
    },
  });

export interface ReadBacktrace {
  readonly id: ExecutionId;
  /** The range that begins first or last, or the innermost one that holds a version. */
  readonly which: "first" | "last" | { readonly version: number };
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_NOT_FOUND`, `OPTION_INVALID`. */
export const readBacktrace: Operation<ReadBacktrace, BacktraceRange> =
  plainOperation("readBacktrace", {
    key: (input: ReadBacktrace) => input.id,
    *one({ id, which }) {
      const { key } = yield* standing(id);
      const found = yield* row<{
        readonly version_from: number;
        readonly version_to: number;
        readonly hash: string;
        readonly stack: string;
      }>(sql`
        SELECT r.version_from, r.version_to, r.hash, b.stack
        FROM holdfast_execution_backtrace AS r JOIN holdfast_execution_stack AS b ON b.hash = r.hash
        WHERE r.execution = ${key} AND ${chosen(which)} LIMIT 1`);
      if (found === undefined) throw backtraceNotFound(id, which);
      const { version_from: from, version_to: to, hash, stack } = found;
      return { from, to, hash, stack };
    },
  });

function chosen(which: ReadBacktrace["which"]): Statement {
  if (which === "first") return sql`1 = 1 ORDER BY r.version_from ASC`;
  if (which === "last") return sql`1 = 1 ORDER BY r.version_from DESC`;
  const version = checkedCount("version", which.version);
  return sql`r.version_from <= ${version} AND r.version_to > ${version} ORDER BY r.version_from DESC`;
}

function assertRange({ from, to, stack }: BacktraceRange): void {
  checkedCount("from", from);
  checkedCount("to", to, { min: from + 1 });
  assertFits("A stack", stack);
}

/** The same range again is fine. @throws HoldfastError `BACKTRACE_EXISTS` */
function* assertSame(
  id: ExecutionId,
  execution: number,
  { from, to, hash }: Omit<BacktraceRange, "stack">,
): Tx<void> {
  const same = yield* row(sql`
    SELECT hash FROM holdfast_execution_backtrace
    WHERE execution = ${execution} AND version_from = ${from} AND version_to = ${to} AND hash = ${hash}`);
  if (same === undefined) throw backtraceExists(id, from);
}

function backtraceExists(id: ExecutionId, from: number): HoldfastError {
  return new HoldfastError(
    "BACKTRACE_EXISTS",
    `Execution ${id} has a backtrace from version ${from} on already; nothing was written. Give each range once.`,
    { id, from },
  );
}

function backtraceNotFound(
  id: ExecutionId,
  which: ReadBacktrace["which"],
): HoldfastError {
  const wanted = typeof which === "string" ? which : which.version;
  return new HoldfastError(
    "BACKTRACE_NOT_FOUND",
    typeof which === "string"
      ? `Execution ${id} has no backtrace. They are captured only when asked for.`
      : `Execution ${id} has no backtrace that holds version ${which.version}.`,
    { id, which: wanted },
  );
}
