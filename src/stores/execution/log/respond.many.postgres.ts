import { rows, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

/** The end of a child, to be delivered to the parent. */
export interface ChildResponse {
  readonly execution: number;
  readonly seq: number;
  readonly at: number;
  readonly inbox: string;
  readonly ordinal: number;
  readonly source: string;
  readonly outcome: string;
  readonly child: number;
  readonly finishedVersion: number;
  readonly valueHash: string;
}

/** Assigns places in inboxes whose executions the transaction has locked. */
export class Inboxes {
  readonly #last = new Map<string, number>();
  readonly #answered = new Set<string>();

  note(execution: number, inbox: string, lastOrdinal: number): void {
    this.#last.set(`${execution} ${inbox}`, lastOrdinal);
  }

  noteAnswered(execution: number, source: string): void {
    this.#answered.add(`${execution} ${source}`);
  }

  isAnswered(execution: number, source: string): boolean {
    return this.#answered.has(`${execution} ${source}`);
  }

  /** The place of the next response, from this source. */
  nextOrdinal(execution: number, inbox: string, source: string): number {
    const ordinal = (this.#last.get(`${execution} ${inbox}`) ?? 0) + 1;
    this.note(execution, inbox, ordinal);
    this.noteAnswered(execution, source);
    return ordinal;
  }
}

export function* inboxesOnPostgres(
  answers: readonly {
    readonly execution: number;
    readonly inbox: string;
    readonly source: string;
  }[],
): Tx<Inboxes> {
  const inboxes = new Inboxes();
  if (answers.length === 0) return inboxes;
  const found = yield* rows<{
    readonly execution: number;
    readonly inbox: string;
    readonly source: string;
    readonly earlier: number | null;
    readonly ordinal: number | null;
  }>(sql`
    SELECT given.execution, given.inbox, given.source,
      (SELECT r.seq FROM holdfast_execution_response r
        WHERE r.execution = given.execution AND r.source = given.source) AS earlier,
      (SELECT r.ordinal FROM holdfast_execution_response r
        WHERE r.execution = given.execution AND r.inbox = given.inbox
        ORDER BY r.ordinal DESC LIMIT 1) AS ordinal
    FROM unnest(
      ${answers.map(({ execution }) => execution)}::bigint[],
      ${answers.map(({ inbox }) => inbox)}::text[],
      ${answers.map(({ source }) => source)}::text[]
    ) AS given (execution, inbox, source)`);
  for (const { execution, inbox, source, earlier, ordinal } of found) {
    inboxes.note(execution, inbox, ordinal ?? 0);
    if (earlier !== null) inboxes.noteAnswered(execution, source);
  }
  return inboxes;
}

export function* insertChildResponsesOnPostgres(responses: readonly ChildResponse[]): Tx<void> {
  yield* run(sql`
    INSERT INTO holdfast_execution_response
      (execution, seq, at, inbox, ordinal, source, outcome, child, finished_version, value_hash, kind)
    SELECT given.*, 'child' FROM unnest(
      ${responses.map(({ execution }) => execution)}::bigint[],
      ${responses.map(({ seq }) => seq)}::bigint[],
      ${responses.map(({ at }) => at)}::bigint[],
      ${responses.map(({ inbox }) => inbox)}::text[],
      ${responses.map(({ ordinal }) => ordinal)}::bigint[],
      ${responses.map(({ source }) => source)}::text[],
      ${responses.map(({ outcome }) => outcome)}::text[],
      ${responses.map(({ child }) => child)}::bigint[],
      ${responses.map(({ finishedVersion }) => finishedVersion)}::bigint[],
      ${responses.map(({ valueHash }) => valueHash)}::text[]
    ) AS given`);
}
