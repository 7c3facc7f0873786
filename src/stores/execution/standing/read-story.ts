import { standingKinds } from "../../../model/execution/contradiction.ts";
import { integersOf, textsOf } from "../../../sql/dialect.ts";
import { row, rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { Story, type StandingEvent, type StandingResponse, type StandingRow } from "./story.ts";

/** Bodies of other events, such as those of steps, may be large and are not needed here. */
const eventFields: Statement = sql`
  e.execution, e.version, e.at, e.responses, e.kind, e.call, e.seen,
  CASE WHEN e.kind IN ${textsOf(standingKinds)} THEN e.body ELSE '{}' END AS body`;

const responseFields: Statement = sql`
  r.execution, r.seq, r.at, r.kind, r.inbox, r.source, r.outcome, r.finished_version`;

/** The events at version 0 of some executions, by their keys. */
export function* readCreations(keys: readonly number[]): Tx<ReadonlyMap<number, StandingEvent>> {
  const found = yield* rows<StandingEvent>(sql`
    SELECT ${eventFields} FROM holdfast_execution_event e
    WHERE e.execution IN ${integersOf(keys)} AND e.version = 0`);
  return new Map(found.map((event) => [event.execution, event]));
}

/** The logs of these rows since their last start, in the snapshot in which the rows were read. */
export function* readStories(found: readonly StandingRow[]): Tx<ReadonlyMap<number, Story>> {
  if (found.length === 0) return new Map();
  const keys = found.map(({ key }) => key);
  const creations = yield* readCreations(keys);
  const stories = new Map(
    found.map((each) => [each.key, new Story(each, creations.get(each.key))]),
  );
  // One more of each than the row counts, which shows that the row is behind.
  const events = yield* rows<StandingEvent>(sql`
    SELECT ${eventFields} FROM holdfast_execution x
      JOIN holdfast_execution_event e ON e.execution = x.key
        AND e.version > 0 AND e.version >= x.history_from AND e.version <= x.version + 1
    WHERE x.key IN ${integersOf(keys)} ORDER BY x.key, e.version`);
  for (const event of events) stories.get(event.execution)?.add([event], []);
  const responses = yield* rows<StandingResponse>(sql`
    SELECT ${responseFields} FROM holdfast_execution x
      JOIN holdfast_execution_response r ON r.execution = x.key
        AND r.seq > x.responses_from AND r.seq <= x.responses + 1
    WHERE x.key IN ${integersOf(keys)} ORDER BY x.key, r.seq`);
  for (const response of responses) stories.get(response.execution)?.add([], [response]);
  for (const each of found) {
    const story = stories.get(each.key);
    story?.addLeft(yield* readLeft(each, story));
  }
  return stories;
}

/** A part of a long log. */
export interface StoryPart {
  readonly events: readonly StandingEvent[];
  readonly responses: readonly StandingResponse[];
}

/**
 * Continues reading a long log, up to `limit` events and responses each; fewer mean that the end of
 * the log was reached.
 */
export function* readOn(found: StandingRow, story: Story, limit: number): Tx<StoryPart> {
  const { version, seq } = story.next;
  const events = yield* rows<StandingEvent>(sql`
    SELECT ${eventFields} FROM holdfast_execution_event e
    WHERE e.execution = ${found.key} AND e.version >= ${version} AND e.version <= ${found.version + 1}
    ORDER BY e.version LIMIT ${limit}`);
  const responses = yield* rows<StandingResponse>(sql`
    SELECT ${responseFields} FROM holdfast_execution_response r
    WHERE r.execution = ${found.key} AND r.seq >= ${seq} AND r.seq <= ${found.responses + 1}
    ORDER BY r.seq LIMIT ${limit}`);
  return { events, responses };
}

/** The first unread signal before the last start that the run waits for. */
export function* readLeft(
  found: StandingRow,
  story: Story | undefined,
): Tx<StandingResponse | undefined> {
  const seen = story?.seenBeforeStart;
  if (seen === undefined) return undefined;
  return yield* row<StandingResponse>(sql`
    SELECT ${responseFields} FROM holdfast_execution_response r
    WHERE r.execution = ${found.key} AND r.kind = 'signal' AND r.read_by IS NULL
      AND r.seq > ${seen} AND r.seq <= ${found.responses_from}
    ORDER BY r.seq LIMIT 1`);
}
