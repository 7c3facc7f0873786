import type { FunctionName } from "../../../model/ids/function-name.ts";
import { sql, type Statement } from "../../../sql/statement.ts";

/** An execution that may be locked next. */
export interface Candidate {
  readonly key: number;
  readonly id: string;
  readonly function: FunctionName;
  readonly due_at: number;
  readonly concurrency_key: string | null;
  /** 1 if a worker has had it before. */
  readonly is_begun: number;
}

/** All columns of a candidate except `is_begun`. */
export const candidateColumns: Statement = sql`key, id, function, due_at, concurrency_key`;

export function longestDueFirst(a: Candidate, b: Candidate): number {
  return a.due_at - b.due_at || (a.id < b.id ? -1 : 1);
}
