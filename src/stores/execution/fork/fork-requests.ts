import { splitDelayId, delayId } from "../../../model/ids/delay-id.ts";
import type { Created, ExecutionEvent } from "../../../model/execution/event.ts";
import { memberText } from "../../../model/ids/join-set-member.ts";
import { childId, splitToParts } from "../../../model/ids/execution-id.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { textsOf } from "../../../sql/dialect.ts";
import { announce, rows, run } from "../../../sql/operation.ts";
import type { Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { createUnder } from "../log/create.ts";
import { eventColumns, eventColumnsOf, eventOf } from "../event-row.ts";
import type { EventRow } from "../event-row.ts";
import type { BegunBody } from "../../../model/execution/begun.ts";
import { begunBodies, type RetriedSource } from "./fork-begun.ts";
import { assertFew } from "./fork-copy.ts";
import { readCreatedEvent, readCreatedEvents } from "../lock/locked.ts";
import { timerSet } from "../topics.ts";

export interface Copy {
  readonly key: number;
  readonly id: ExecutionId;
  /** The version after which the copied run begins. */
  readonly historyFrom: number;
  readonly isRetry: boolean;
}

/** Each request takes some statements; more of them would hold the transaction for too long. */
const openRequestsMax = 1_000;

/**
 * Repeats the requests of the copied run that the copied responses do not answer. Open requests of
 * earlier runs under the id are not repeated.
 * @throws HoldfastError `FORK_TOO_LARGE`
 */
export function* requestAnew(copy: Copy, at: number): Tx<void> {
  const requests = yield* openRequests(copy);
  const former = yield* formerChildren(
    requests.flatMap(({ event }) => (event.kind === "childRequested" ? event.child : [])),
    { at, isRetry: copy.isRetry },
  );
  for (const { version, event } of requests) {
    if (event.kind === "delayRequested") {
      const { joinSet, index } = splitDelayId(event.delay);
      const delay = delayId(copy.id, joinSet, index);
      yield* run(sql`
        INSERT INTO holdfast_execution_delay (id, execution, inbox, expires_at, is_paused)
        VALUES (${delay}, ${copy.key}, ${joinSet}, ${event.expiresAt}, 0)`);
      yield* rewrite(copy.key, version, { ...event, delay });
      yield* announce(timerSet, copy.id);
      continue;
    }
    const parts = splitToParts(event.child);
    const created = former.get(event.child);
    // Requested but never created: only the log was written, and the run will request it again.
    if (parts === undefined || created === undefined) continue;
    const child = childId(copy.id, parts.joinSet, parts.index);
    yield* createUnder(copy.key, { id: child, at, created });
    yield* rewrite(copy.key, version, { ...event, child });
  }
}

type Request = Extract<ExecutionEvent, { readonly kind: "childRequested" | "delayRequested" }>;

interface OpenRequest {
  readonly version: number;
  readonly event: Request;
}

const requestsPerPage = 1_000;

function* openRequests({ id, key, historyFrom }: Copy): Tx<readonly OpenRequest[]> {
  const answers = yield* rows<{ readonly source: string }>(sql`
    SELECT source FROM holdfast_execution_response WHERE execution = ${key} AND kind <> 'signal'`);
  const answered = new Set(answers.map(({ source }) => source));
  const withdrawn = yield* withdrawals(key, historyFrom);
  const open: OpenRequest[] = [];
  for (let after = historyFrom; ;) {
    const page = yield* rows<EventRow>(sql`
      SELECT ${eventColumns} FROM holdfast_execution_event
      WHERE execution = ${key} AND version > ${after} AND kind IN ('childRequested', 'delayRequested')
      ORDER BY version LIMIT ${requestsPerPage}`);
    for (const logged of page) {
      const { version } = logged;
      const event = eventOf(logged).event as Request;
      if (event.kind === "childRequested") {
        if (!answered.has(event.child)) open.push({ version, event });
        continue;
      }
      const { joinSet, index } = splitDelayId(event.delay);
      const gone = withdrawn.get(memberText(joinSet, index)) ?? 0;
      if (!answered.has(event.delay) && gone < version) open.push({ version, event });
    }
    assertFew(id, "open requests", open.length, openRequestsMax);
    if (page.length < requestsPerPage) return open;
    after = page.at(-1)?.version ?? after;
  }
}

/** Withdrawn delays, by set and index, with the last version at which they were withdrawn. */
function* withdrawals(execution: number, after: number): Tx<ReadonlyMap<string, number>> {
  const found = yield* rows<{
    readonly version: number;
    readonly withdrawn: string;
  }>(sql`
    SELECT version, withdrawn FROM holdfast_execution_event
    WHERE execution = ${execution} AND version > ${after} AND withdrawn IS NOT NULL ORDER BY version`);
  const versions = new Map<string, number>();
  for (const { version, withdrawn } of found)
    for (const member of JSON.parse(withdrawn) as readonly string[]) versions.set(member, version);
  return versions;
}

/** The creations of the source's children; children that were never created are missing. */
function* formerChildren(
  ids: readonly ExecutionId[],
  copying: { readonly at: number; readonly isRetry: boolean },
): Tx<ReadonlyMap<ExecutionId, Created>> {
  const former = new Map<ExecutionId, Created>();
  if (ids.length === 0) return former;
  const found = yield* rows<{
    readonly id: ExecutionId;
    readonly key: number;
    readonly created_at: number;
  }>(sql`
    SELECT id, key, created_at FROM holdfast_execution WHERE id IN ${textsOf(ids)}`);
  const events = yield* readCreatedEvents(found);
  const children: (RetriedSource & { readonly createdAt: number })[] = [];
  for (const { id, key, created_at: createdAt } of found) {
    const created = events.get(key) ?? (yield* readCreatedEvent(id, key));
    children.push({ id, key, created, createdAt });
  }
  // A child keeps nothing of its log: it starts with its first line.
  const begun = copying.isRetry
    ? yield* begunBodies(children, { historyFrom: 0, keptUpTo: 0 })
    : undefined;
  for (const { id, key, created, createdAt } of children)
    former.set(id, createdAnew(id, created, { ...copying, createdAt, begun: begun?.get(key) }));
  return former;
}

/**
 * The creation of a copy: now, with as much time until its deadline as the original had. A retry
 * does the same work, and keeps its idempotency keys. Any other copy does work of its own.
 */
export function createdAnew(
  id: ExecutionId,
  created: Created,
  { createdAt, at, isRetry, begun = [] }: CreatingAnew,
): Created {
  const { deadlineAt, keysOf = id, begun: _former, ...others } = created;
  return {
    ...others,
    ...(isRetry && { keysOf }),
    ...(isRetry && begun.length > 0 && { begun }),
    deadlineAt: deadlineAt === null ? null : deadlineAt + at - createdAt,
    scheduledAt: at,
    isPaused: false,
  };
}

interface CreatingAnew {
  readonly createdAt: number;
  readonly at: number;
  readonly isRetry: boolean;
  /** The bodies that a retry may repeat. */
  readonly begun?: readonly BegunBody[] | undefined;
}

/** Rewrites an event of the copy, which no worker holds yet. */
function* rewrite(execution: number, version: number, event: ExecutionEvent): Tx<void> {
  yield* run(sql`
    UPDATE holdfast_execution_event SET body = ${eventColumnsOf(event).body}
    WHERE execution = ${execution} AND version = ${version}`);
}
