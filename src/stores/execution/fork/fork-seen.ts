import { controlKinds } from "../../../model/execution-event.ts";
import type { ExecutionState } from "../../../model/execution-state.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { row } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";

type Starts = Pick<
  ExecutionState,
  "historyFrom" | "responsesFrom" | "continuations"
>;

/** Where the run begins that the events up to a version end in. */
export function* startsUpTo(
  execution: number,
  { continuations }: Pick<ExecutionState, "continuations">,
  version: number,
): Tx<Starts> {
  const none = { historyFrom: 0, responsesFrom: 0, continuations: 0 };
  if (continuations === 0) return none;
  const found = yield* row<{
    readonly n: number;
    readonly version: number | null;
  }>(sql`
    SELECT COUNT(*) AS n, MAX(version) AS version FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version} AND kind = 'continued'`);
  const historyFrom = found?.version ?? null;
  if (found === undefined || historyFrom === null) return none;
  const start = yield* row<{ readonly responses: number }>(sql`
    SELECT responses FROM holdfast_execution_event
    WHERE execution = ${execution} AND version = ${historyFrom}`);
  return {
    historyFrom,
    responsesFrom: start?.responses ?? 0,
    continuations: found.n,
  };
}

/**
 * The last response that the events up to `version` know of: they were given
 * it, or asked a set and got it at once, or did so before they went on. An
 * answer that came after the last of them is not theirs. Those of earlier runs
 * under the id are, since the boundary between the runs is counted in them.
 */
export function* lastSeen(
  execution: number,
  state: Pick<ExecutionState, "continuations" | "responses">,
  version: number,
): Tx<number> {
  const seen = yield* row<{ readonly seq: number | null }>(sql`
    SELECT MAX(seen) AS seq FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version}`);
  const last = yield* row<{
    readonly version: number;
    readonly responses: number;
  }>(sql`
    SELECT version, responses FROM holdfast_execution_event
    WHERE execution = ${execution} AND version <= ${version} AND kind NOT IN ${textsOf(controlKinds)}
    ORDER BY version DESC LIMIT 1`);
  const asked = yield* row<{ readonly seq: number | null }>(sql`
    SELECT MAX(r.seq) AS seq FROM holdfast_execution_event q
      JOIN holdfast_execution_response r
        ON r.execution = q.execution AND r.inbox = q.inbox AND r.ordinal = q.ordinal
    WHERE q.execution = ${execution} AND q.version <= ${version} AND q.ordinal IS NOT NULL
      AND (r.seq <= q.responses OR (q.version < ${last?.version ?? 0} AND r.seq <= ${last?.responses ?? 0}))`);
  const { responsesFrom } = yield* startsUpTo(execution, state, version);
  const known = Math.max(seen?.seq ?? 0, asked?.seq ?? 0, responsesFrom);
  // A caller may have claimed to have seen what has not come yet.
  return Math.min(known, state.responses);
}
