import { HoldfastError } from "../../../model/errors.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { checkedCount, draftOf, givenInvalid, givenList } from "../../../model/shape.ts";
import { isRecord } from "../../../model/values/spoken-kind.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import type { ExecutionContext } from "../context.ts";
import { lockedKey, standing } from "../state-row.ts";
import { assertFits } from "../checks.ts";

/** The source location of the events of some versions. */
export interface BacktraceDraft {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  /** At most 64 KiB as UTF-8. */
  readonly stack: string;
}

export interface BacktraceView extends BacktraceDraft {
  /** Equal for equal stacks: their text is stored once. */
  readonly hash: string;
}

interface AppendBacktraces {
  readonly id: ExecutionId;
  readonly ranges: readonly BacktraceView[];
}

/** A range takes two statements; more ranges would hold the transaction for too long. */
const rangesMax = 200;

export function givenBacktraces(
  { database }: ExecutionContext,
  id: string,
  ranges: readonly BacktraceDraft[],
  wait?: WaitOptions,
): Call<AppendBacktraces> {
  const execution = parseExecutionId(id);
  const given = givenList("ranges", ranges, rangesMax);
  checkedCount("ranges.length", given.length, { min: 1 });
  return {
    input: {
      id: execution,
      ranges: given.map((range) => {
        const { from, to, stack } = checkedRange(range);
        return { from, to, stack, hash: database.sha256Hex(stack) };
      }),
    },
    wait: onlyWait(wait),
  };
}

function checkedRange(draft: BacktraceDraft): BacktraceDraft {
  const range = draftOf("a backtrace", draft, ["from", "to", "stack"]);
  checkedCount("from", range.from);
  checkedCount("to", range.to, { min: range.from + 1 });
  assertFits("A stack", range.stack);
  return range;
}

/**
 * Adds backtraces to an execution, all or none.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_EXISTS` when a
 *   range begins where a different one does.
 */
export const appendBacktraces = storeOperation("appendBacktraces", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, ranges }: AppendBacktraces): Tx<void> {
    const execution = yield* lockedKey(id);
    for (const { from, to, hash, stack } of ranges) {
      // Written even if it exists, so that retention cannot remove it in the meantime.
      yield* run(sql`
        INSERT INTO holdfast_execution_stack (hash, stack) VALUES (${hash}, ${stack}) ON CONFLICT (hash) DO UPDATE SET stack = excluded.stack`);
      const inserted = yield* run(sql`
        INSERT INTO holdfast_execution_backtrace (execution, version_from, version_to, hash)
        VALUES (${execution}, ${from}, ${to}, ${hash}) ON CONFLICT (execution, version_from) DO NOTHING`);
      if (inserted === 0) yield* assertSame(id, execution, { from, to, hash });
    }
  },
});

/** The range that begins first or last, or the innermost one that contains a version. */
export type WhichBacktrace = "first" | "last" | { readonly version: number };

interface ReadBacktrace {
  readonly id: ExecutionId;
  readonly which: WhichBacktrace;
}

export function givenBacktrace(
  _: ExecutionContext,
  id: string,
  which: WhichBacktrace,
  wait?: WaitOptions,
): Call<ReadBacktrace> {
  return {
    input: { id: parseExecutionId(id), which: checkedWhich(which) },
    wait: onlyWait(wait),
  };
}

function checkedWhich(which: WhichBacktrace): WhichBacktrace {
  if (which === "first" || which === "last") return which;
  if (!isRecord(which)) throw givenInvalid("which", '"first", "last" or { version }', which);
  const { version } = draftOf("which", which, ["version"]);
  return { version: checkedCount("version", version) };
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `BACKTRACE_NOT_FOUND`. */
export const readBacktrace = storeOperation("readBacktrace", {
  key: (input) => input.id,
  *one(_: ExecutionContext, { id, which }: ReadBacktrace): Tx<BacktraceView> {
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

function chosen(which: WhichBacktrace): Statement {
  if (which === "first") return sql`1 = 1 ORDER BY r.version_from ASC`;
  if (which === "last") return sql`1 = 1 ORDER BY r.version_from DESC`;
  const { version } = which;
  return sql`r.version_from <= ${version} AND r.version_to > ${version} ORDER BY r.version_from DESC`;
}

/** Checks that the existing range is the same. @throws HoldfastError `BACKTRACE_EXISTS` */
function* assertSame(
  id: ExecutionId,
  execution: number,
  { from, to, hash }: Omit<BacktraceView, "stack">,
): Tx<void> {
  const same = yield* row(sql`
    SELECT hash FROM holdfast_execution_backtrace
    WHERE execution = ${execution} AND version_from = ${from} AND version_to = ${to} AND hash = ${hash}`);
  if (same === undefined) throw backtraceExists(id, from);
}

function backtraceExists(id: ExecutionId, from: number): HoldfastError {
  return new HoldfastError(
    "BACKTRACE_EXISTS",
    `Run ${id} already has a backtrace from version ${from}; nothing was written. Pass each range once.`,
    { id, from },
  );
}

function backtraceNotFound(id: ExecutionId, which: WhichBacktrace): HoldfastError {
  return new HoldfastError(
    "BACKTRACE_NOT_FOUND",
    typeof which === "string"
      ? `Run ${id} has no backtrace. Backtraces are captured only on request.`
      : `Run ${id} has no backtrace that covers version ${which.version}.`,
    { id, which: typeof which === "string" ? which : which.version },
  );
}
