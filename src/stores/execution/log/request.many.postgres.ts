import { eventsInvalid } from "../../../model/execution/errors.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { announce, rows, run, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import type { PlacedEvent } from "../rows.many.postgres.ts";
import { timerSet } from "../topics.ts";
import type { AppendEvents } from "./append.ts";
import type { NewExecution } from "./create.ts";
import { announcedStarts, insertStates } from "./create.many.postgres.ts";
import type { DelayRequested } from "./delay-requests.ts";

/** The requests in the appends of a set. */

/**
 * The inputs without requests for taken names, which `one` decides. Delays are requested with a
 * version, so their names cannot be taken once the version has proved right.
 */
export function* withFreeRequests(inputs: readonly AppendEvents[]): Tx<readonly AppendEvents[]> {
  const asked = inputs.flatMap((input, n) =>
    namesIn(input).map((name) => ({ n, id: input.id, name })),
  );
  if (asked.length === 0) return inputs;
  const found = yield* rows<{
    readonly n: number;
    readonly delay: number | null;
    readonly child: number | null;
    readonly response: number | null;
  }>(sql`
    SELECT given.n,
      (SELECT d.key FROM holdfast_execution_delay d WHERE d.id = given.name) AS delay,
      (SELECT c.key FROM holdfast_execution c WHERE c.id = given.name) AS child,
      (SELECT r.seq FROM holdfast_execution_response r
        WHERE r.execution = (SELECT e.key FROM holdfast_execution e WHERE e.id = given.id)
          AND r.source = given.name) AS response
    FROM unnest(
      ${asked.map(({ n }) => n)}::bigint[],
      ${asked.map(({ id }) => id)}::text[],
      ${asked.map(({ name }) => name)}::text[]
    ) AS given (n, id, name)`);
  const taken = new Set<number>();
  for (const { n, delay, child, response } of found)
    if (delay !== null || child !== null || response !== null) taken.add(n);
  return inputs.filter((input, n) => !taken.has(n) && isEachOnce(namesIn(input)));
}

function namesIn({ events, children = [] }: AppendEvents): readonly string[] {
  const names: string[] = children.map(({ id }) => id);
  for (const event of events) if (event.kind === "delayRequested") names.push(event.delay);
  return names;
}

function isEachOnce(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

export interface PlacedDelay {
  readonly id: ExecutionId;
  readonly execution: number;
  readonly event: DelayRequested;
}

export function* insertDelaysOnPostgres(delays: readonly PlacedDelay[]): Tx<void> {
  const events = delays.map(({ event }) => event);
  yield* run(sql`
    INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
    SELECT given.*, 0 FROM unnest(
      ${events.map(({ delay }) => delay)}::text[],
      ${delays.map(({ execution }) => execution)}::bigint[],
      ${events.map(({ joinSet }) => joinSet)}::text[],
      ${events.map(({ expiresAt }) => expiresAt)}::bigint[]
    ) AS given`);
  for (const { id } of delays) yield* announce(timerSet, id);
}

/**
 * Creates children under parents that the set has locked; their first events are still to be
 * inserted.
 * @throws HoldfastError `EVENTS_INVALID` when one has been created since, which
 *   sends the whole set to `one`.
 */
export function* insertChildrenOnPostgres(
  children: readonly NewExecution[],
  parents: ReadonlyMap<ExecutionId, number>,
): Tx<readonly PlacedEvent[]> {
  const keys = yield* insertStates(children, parents);
  const taken = children.find(({ id }) => !keys.has(id));
  if (taken !== undefined) throw eventsInvalid(taken.id, "childExists", "it already exists.");
  return yield* announcedStarts(children, keys);
}
