import { HoldfastError } from "../../../model/errors.ts";
import { askedIn } from "../../../model/execution/question.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { checkedJsonSchema } from "../../../model/json-schema/check-schema.ts";
import { schemaFault } from "../../../model/json-schema/schema-fault.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { onlyWait, type Call } from "../../method.ts";
import { judgedAt, type ExecutionContext, type Finished } from "../context.ts";
import { eventAt } from "../event-row.ts";
import { appendTo } from "../log/append-to.ts";
import { corruptLog, lockedRecord, type ExecutionRecord } from "../state-row.ts";

/** The reply to an answer. */
export type AnswerReply =
  /** This answer counts: the code that asked receives it. */
  | { readonly kind: "accepted" }
  /** The same answer was accepted before. */
  | { readonly kind: "replayed" }
  /**
   * The question had ended: with another answer, by its timeout, or because the run ended. The
   * result says which, and shows the answer.
   */
  | { readonly kind: "tooLate"; readonly result: ExecutionResult };

interface ResolveExternal {
  readonly id: ExecutionId;
  readonly at: number;
  readonly finished: Finished;
  /** Records the timeout of an overdue question. A call that throws instead leaves that to a timer. */
  readonly endsOverdue?: true;
}

export function givenResolve(
  { clock, values }: ExecutionContext,
  id: string,
  result: ExecutionResult,
  wait?: WaitOptions,
): Call<ResolveExternal> {
  const input = {
    id: parseExecutionId(id),
    at: clock.now(),
    finished: values.finished(result),
  };
  return { input, wait: onlyWait(wait) };
}

export function givenAnswer(
  context: ExecutionContext,
  id: string,
  value: unknown,
  wait?: WaitOptions,
): Call<ResolveExternal> {
  // A refusal names the path from this value, not from the result around it.
  context.values.value(value);
  const given = givenResolve(context, id, { kind: "completed", value }, wait);
  return { ...given, input: { ...given.input, endsOverdue: true } };
}

type Resolution =
  | { readonly kind: "accepted" | "replayed" }
  | { readonly kind: "tooLate"; readonly finished: Finished };

/**
 * Resolves an external execution, and answers its parent. The first result stays; the same result
 * again is allowed. An answer is ordered with the timeout by the row that both lock: one that comes
 * after the deadline is too late, even if no timer has ended the question yet.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `NOT_EXTERNAL`, `ANSWER_INVALID`
 */
export const resolveExternal = storeOperation("resolveExternal", {
  key: (input) => input.id,
  *one(context: ExecutionContext, input: ResolveExternal): Tx<Resolution> {
    const { id, finished } = input;
    const record = yield* lockedRecord(id);
    const at = judgedAt(context, input.at);
    const { role, pending, version } = record.state;
    if (role !== "external")
      throw new HoldfastError(
        "NOT_EXTERNAL",
        `Run ${id} is run by workers, so it cannot be resolved from outside. Cancel it, or signal it.`,
        { id },
      );
    if (pending.kind !== "finished") {
      const isLate = yield* isOverdue(record, at);
      const end = isLate ? context.endings.timedOut : finished;
      if (!isLate) yield* assertFits(context, record, finished);
      if (!isLate || input.endsOverdue === true) yield* appendTo(context, record, at, [end]);
      return isLate ? { kind: "tooLate", finished: end } : { kind: "accepted" };
    }
    const event = (yield* eventAt(record.key, version))?.event;
    if (event?.kind !== "finished") throw corruptLog(id, version);
    if (event.resultHash === finished.resultHash) return { kind: "replayed" };
    return { kind: "tooLate", finished: event };
  },
});

function* isOverdue({ key }: ExecutionRecord, at: number): Tx<boolean> {
  const found = yield* row<{ readonly deadline_at: number | null }>(sql`
    SELECT deadline_at FROM holdfast_execution WHERE key = ${key}`);
  const deadlineAt = found?.deadline_at ?? null;
  return deadlineAt !== null && deadlineAt <= at;
}

/** Checks an answer with the schema of its question. A failure is not an answer, so it may always end a question. */
function* assertFits(
  { values }: ExecutionContext,
  { id, key, function: name }: ExecutionRecord,
  { resultKind, result }: Finished,
): Tx<void> {
  if (resultKind !== "completed") return;
  const created = (yield* eventAt(key, 0))?.event;
  if (created?.kind !== "created") throw corruptLog(id, 0);
  const { schema } = askedIn(name, values.readValue(created.input));
  if (schema === undefined) return;
  const answer = values.readResult(result);
  // Checked again, since another version of this library may have asked.
  const fault =
    answer.kind === "completed" ? schemaFault(checkedJsonSchema(schema), answer.value) : undefined;
  if (fault === undefined) return;
  throw new HoldfastError(
    "ANSWER_INVALID",
    `The answer to ${id} does not fit the schema of the question: ${fault.path} ${fault.message}. The question stays open.`,
    { id, issues: [fault] },
  );
}

export function shownReply({ values }: ExecutionContext, resolution: Resolution): AnswerReply {
  if (resolution.kind !== "tooLate") return { kind: resolution.kind };
  const { result, resultKind } = resolution.finished;
  return { kind: "tooLate", result: values.readResult(result, resultKind) };
}

/** @throws HoldfastError `RESOLUTION_CONFLICT` */
export function shownResolved(
  _: ExecutionContext,
  resolution: Resolution,
  { id }: ResolveExternal,
): "accepted" | "replayed" {
  if (resolution.kind !== "tooLate") return resolution.kind;
  const { resultKind } = resolution.finished;
  throw new HoldfastError(
    "RESOLUTION_CONFLICT",
    resultKind === "completed"
      ? `Run ${id} was already resolved with another value, which stays.`
      : `Run ${id} has already ended as ${resultKind}, so it can no longer be resolved.`,
    { id, resultKind },
  );
}
