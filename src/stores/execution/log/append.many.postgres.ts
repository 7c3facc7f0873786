import { showsProgress } from "../../../model/execution/history-event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { LoneStatement, ManyForm } from "../../../sql/lone-statement.ts";
import { done, rows } from "../../../sql/operation.ts";
import type { Done, Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { AppendEvents } from "./append.ts";
import type { AppendOutcome } from "./append-to.ts";
import type { NewExecution } from "./create.ts";
import { eventColumnsOf } from "../event-row.ts";
import { isFinish, isQuiet, responsesAtTimeout, responsesSeen, runNamed } from "./event-check.ts";
import { finishManyOnPostgres } from "./finish.many.postgres.ts";
import {
  insertChildrenOnPostgres,
  insertDelaysOnPostgres,
  withFreeRequests,
  type PlacedDelay,
} from "./request.many.postgres.ts";
import { insertEventsOnPostgres, type PlacedEvent } from "../rows.many.postgres.ts";

/** The set form of `appendEvents`, for quiet events, requests and the end. */
export const appendManyOnPostgres: ManyForm<AppendEvents, AppendOutcome> = Object.assign(
  appendMany,
  { lone: appendLone },
);

function* appendMany(
  inputs: readonly AppendEvents[],
): Tx<readonly (Done<AppendOutcome> | undefined)[]> {
  const answers = new Map<AppendEvents, AppendOutcome>();
  // Ends come first: they may wait for a row, and must not do so while the set holds other rows.
  yield* finishManyOnPostgres(inputs.filter(isFinish), answers);
  yield* appendQuietEvents(inputs.filter(isQuiet), answers);
  return inputs.map((input) => {
    const answer = answers.get(input);
    return answer === undefined ? undefined : done(answer);
  });
}

/** Kinds that add only a row to the log, whatever the row of the run says. */
const loneKinds: ReadonlySet<string> = new Set([
  "stepFinished",
  "stepAttemptFailed",
  "transactionFinished",
  "receiveRequested",
  "patched",
]);

/**
 * One run that does one step after the other: its append is one statement and one round trip. In a
 * set, that would be a nested loop.
 */
function appendLone(input: AppendEvents): LoneStatement<AppendOutcome> | undefined {
  const { id, key, version, at, events, children = [], withdraw, fence } = input;
  if (children.length > 0 || withdraw !== undefined) return undefined;
  if (!events.every(({ kind }) => loneKinds.has(kind))) return undefined;
  const columns = events.map(eventColumnsOf);
  const statement = sql`
    WITH moved AS (
      UPDATE holdfast_execution e SET version = e.version + ${events.length}, deaths = 0, alone_deaths = 0
      FROM (
        SELECT found.key FROM holdfast_execution found
        WHERE found.id = ${id} AND found.version = ${version - 1} AND found.state <> 'finished'
          AND found.lifecycle = 'active' AND found.role <> 'external'
          AND found.responses >= ${responsesSeen(events)}
          AND found.key = COALESCE(${key ?? null}, found.key)
          AND found.executor IS NOT DISTINCT FROM COALESCE(${fence?.executor ?? null}, found.executor)
          AND found.run IS NOT DISTINCT FROM COALESCE(${fence?.run ?? null}, found.run)
        FOR NO KEY UPDATE SKIP LOCKED
      ) AS locked
      WHERE e.key = locked.key
      RETURNING e.key, e.responses
    )
    INSERT INTO holdfast_execution_event (execution, version, at, responses, kind, call, seen, body, payload)
    SELECT moved.key, given.version, ${at}, moved.responses, given.kind, given.call, given.seen, given.body, given.payload
    FROM moved, unnest(
      ${events.map((_, index) => version + index)}::bigint[],
      ${columns.map(({ kind }) => kind)}::text[],
      ${columns.map(({ call }) => call)}::bigint[],
      ${columns.map(({ seen }) => seen)}::bigint[],
      ${columns.map(({ body }) => body)}::text[],
      ${columns.map(({ payload }) => payload)}::text[]
    ) AS given (version, kind, call, seen, body, payload)
    RETURNING pg_current_xact_id() AS tx`;
  return { statement, value: { nextVersion: version + events.length, at } };
}

interface Moved {
  /** The position of the input, from 1 on. */
  readonly n: number;
  readonly key: number;
  readonly responses: number;
}

/**
 * Two statements: the second takes its rows only from arrays. Inserting in the first, joined to the
 * rows that it moved, would be a nested loop, since the planner expects a few rows of each part.
 * Requests take one more statement before these, and one for each kind of request.
 */
function* appendQuietEvents(
  given: readonly AppendEvents[],
  answers: Map<AppendEvents, AppendOutcome>,
): Tx<void> {
  const inputs = yield* withFreeRequests(given);
  if (inputs.length === 0) return;
  const placed: PlacedEvent[] = [];
  const delays: PlacedDelay[] = [];
  const children: NewExecution[] = [];
  const parents = new Map<ExecutionId, number>();
  for (const { n, key, responses } of yield* moveVersions(inputs)) {
    const input = inputs[n - 1];
    if (input === undefined) continue;
    const { id, at, events } = input;
    let { version } = input;
    for (const event of events) {
      placed.push({ place: { execution: key, version, at, responses }, event });
      if (event.kind === "delayRequested") delays.push({ id, execution: key, event });
      version += 1;
    }
    children.push(...(input.children ?? []));
    parents.set(id, key);
    answers.set(input, { nextVersion: version, at });
  }
  if (children.length > 0) placed.push(...(yield* insertChildrenOnPostgres(children, parents)));
  if (placed.length > 0) yield* insertEventsOnPostgres(placed);
  if (delays.length > 0) yield* insertDelaysOnPostgres(delays);
}

/**
 * Moves the versions of the rows and skips the others: locked, missing or finished rows, inactive
 * ones, and ones held by another run. Rows with another version or another number of new starts, or
 * with more responses seen than exist, are skipped too, and timeouts of receives that have not seen
 * every response. Each row is looked up by its id in a locking subquery, which the planner cannot
 * turn around. A plain join compared every input with every row of a table without statistics (200
 * inputs: 16 instead of 2 ms).
 */
function* moveVersions(inputs: readonly AppendEvents[]): Tx<readonly Moved[]> {
  return yield* rows<Moved>(sql`
    WITH locked AS MATERIALIZED (
      SELECT found.key, given.events, given.progress, given.n
      FROM unnest(
        ${inputs.map(({ id }) => id)}::text[],
        ${inputs.map(({ key }) => key ?? null)}::bigint[],
        ${inputs.map(({ version }) => version - 1)}::bigint[],
        ${inputs.map(({ events }) => events.length)}::bigint[],
        ${inputs.map(({ events }) => Number(events.some(showsProgress)))}::bigint[],
        ${inputs.map(({ events }) => responsesSeen(events))}::bigint[],
        ${inputs.map(({ events }) => responsesAtTimeout(events))}::bigint[],
        ${inputs.map(({ events }) => runNamed(events))}::bigint[],
        ${inputs.map(({ fence }) => fence?.executor ?? null)}::text[],
        ${inputs.map(({ fence }) => fence?.run ?? null)}::text[]
      ) WITH ORDINALITY AS given (id, key, version, events, progress, seen, most, continuation, executor, run, n), LATERAL (
        SELECT e.key FROM holdfast_execution e
        WHERE e.id = given.id AND e.version = given.version AND e.state <> 'finished' AND e.lifecycle = 'active'
          AND e.role <> 'external' AND e.responses >= given.seen
          AND (given.most IS NULL OR e.responses <= given.most)
          AND (given.continuation IS NULL OR given.continuation = e.continuations)
          AND (given.key IS NULL OR given.key = e.key)
          AND (given.executor IS NULL OR (given.executor = e.executor AND given.run = e.run))
        FOR NO KEY UPDATE SKIP LOCKED
      ) AS found
    )
    UPDATE holdfast_execution e SET version = e.version + locked.events,
      deaths = CASE WHEN locked.progress = 1 THEN 0 ELSE e.deaths END,
      alone_deaths = CASE WHEN locked.progress = 1 THEN 0 ELSE e.alone_deaths END
    FROM locked WHERE e.key = locked.key
    RETURNING locked.n, e.key, e.responses`);
}
