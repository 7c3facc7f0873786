import { LastLocks } from "../../../model/execution/pruned.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import { durationMs, type Duration } from "../../../model/time/durations.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { row, rows, run, storeOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { sweep, sweepOptions, type SweepOptions } from "../../removal.ts";
import type { ExecutionContext } from "../context.ts";
import { eventOf, type EventRow } from "../event-row.ts";
import { removeBacktraces, removeTreeSlice } from "./remove-tree.ts";
import { corruptLog, lockedRecord, soundEvent, standing } from "../state-row.ts";

export interface PruneOptions extends SweepOptions<PruneReport> {
  /**
   * The time for which the key of a read signal is remembered, so that a repeated send is
   * recognized; defaults to 30 days.
   */
  readonly signalMemory?: Duration;
}

export interface PruneReport {
  readonly events: number;
  readonly responses: number;
  /** Children removed with everything under them. */
  readonly trees: number;
  /** Children kept because a descendant has not finished, or has a process that was not pruned. */
  readonly skipped: number;
}

const nothing: PruneReport = { events: 0, responses: 0, trees: 0, skipped: 0 };

/**
 * Removes the rows of runs before the last new start, slice by slice:
 *
 *   responses   except unread signals, and signals whose keys must be remembered
 *   events      after the responses: while both exist, the log tells which responses were read
 *   children    finished ones that no response refers to any more
 *
 *   0 created   1 … (pruned, except the last locks)   7 continued   8 … the current run
 *
 * `pruned_before` is the version of the new start: missing rows before it are not damage, and
 * nothing can be copied from there.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `OPTION_INVALID`, `DURATION_INVALID`, `ID_MALFORMED`, `ABORTED`
 */
export async function pruneHistory(
  context: ExecutionContext,
  execution: string,
  options?: PruneOptions,
): Promise<PruneReport> {
  const { database, clock } = context;
  const id = parseExecutionId(execution);
  const sweeping = sweepOptions<PruneOptions>(options, ["signalMemory"]);
  const { rowsPerSlice: rowsMax, signal, signalMemory = "30 days" } = sweeping;
  const memoryMs = durationMs(signalMemory, "signalMemory");
  const boundary = await database.read(lastStart(context), id);
  if (boundary === undefined) return nothing;
  const kept = await keptBefore(context, boundary);
  const children = forgottenChildren(context, boundary);
  let child: IteratorResult<ExecutionId, void> | undefined;
  return sweep<PruneReport>(context, sweeping, async () => {
    if (child === undefined) {
      const signalsBefore = clock.now() - memoryMs;
      const { rows: removed, ...pruned } = await database.write(
        pruneSlice(context),
        { ...boundary, kept, rowsMax, signalsBefore },
        { signal },
      );
      if (removed >= rowsMax) return { report: { ...nothing, ...pruned }, isDone: false };
      child = await children.next();
      if (removed > 0 || child.done === true)
        return {
          report: { ...nothing, ...pruned },
          isDone: child.done === true,
        };
    }
    if (child.done === true) return { report: nothing, isDone: true };
    const { left } = await database.write(
      removeTreeSlice(context),
      { id: child.value, at: clock.now(), rowsMax, leaves: "nothing" },
      { signal },
    );
    if (left !== "more") child = await children.next();
    const report = {
      ...nothing,
      trees: left === "gone" ? 1 : 0,
      skipped: left === "unfinished" || left === "process" ? 1 : 0,
    };
    return { report, isDone: child.done === true };
  });
}

/** The start of the current run, and its number among the runs under the id. */
interface Boundary {
  readonly id: ExecutionId;
  readonly key: number;
  readonly version: number;
  readonly responses: number;
  readonly continuation: number;
}

const lastStart = storeOperation("lastStart", {
  key: (id) => id,
  *one(_: ExecutionContext, id: ExecutionId): Tx<Boundary | undefined> {
    const { key } = yield* standing(id);
    const found = yield* row<{
      readonly version: number;
      readonly responses: number;
    }>(sql`
      SELECT history_from AS version, responses_from AS responses FROM holdfast_execution WHERE key = ${key}`);
    if (found === undefined || found.version === 0) return undefined;
    const { version, responses } = found;
    const { event } = yield* soundEvent(id, key, version);
    if (event.kind !== "continued") throw corruptLog(id, version);
    const { continuation } = event;
    return { id, key, version, responses, continuation };
  },
});

const eventsPerLook = 2_000;

/** The versions of the events to keep, searched from the new start backwards. */
async function keptBefore(
  context: ExecutionContext,
  { key, version }: Boundary,
): Promise<readonly number[]> {
  const locks = new LastLocks();
  for (let before = version; !locks.isComplete;) {
    const found: readonly EventRow[] = await context.database.read(eventsBefore(context), {
      key,
      before,
    });
    for (const each of found)
      if (each.kind === "locked" || each.kind === "forked")
        locks.look(each.version, eventOf(each).event);
    if (found.length < eventsPerLook) break;
    before = found.at(-1)?.version ?? 0;
    await context.database.pause();
  }
  return locks.versions;
}

interface EventsBefore {
  readonly key: number;
  readonly before: number;
}

/** A page of events from a version down, with only the bodies of locks. */
const eventsBefore = storeOperation("eventsBefore", {
  key: (input) => String(input.key),
  *one(_: ExecutionContext, { key, before }: EventsBefore): Tx<readonly EventRow[]> {
    return yield* rows<EventRow>(sql`
      SELECT version, at, responses, kind, call, seen,
        CASE WHEN kind IN ('locked', 'forked') THEN body ELSE '{}' END AS body, NULL AS payload
      FROM holdfast_execution_event
      WHERE execution = ${key} AND version > 0 AND version < ${before}
      ORDER BY version DESC LIMIT ${eventsPerLook}`);
  },
});

interface PruneSlice extends Boundary {
  readonly kept: readonly number[];
  readonly rowsMax: number;
  /** Read signals that were sent before this instant are removed. */
  readonly signalsBefore: number;
}

interface PrunedSlice {
  readonly events: number;
  readonly responses: number;
  /** The rows removed, including backtraces; fewer than requested means that none are left. */
  readonly rows: number;
}

/** Removes rows of one execution, up to a limit. */
const pruneSlice = storeOperation("pruneSlice", {
  key: (input) => input.id,
  *one(_: ExecutionContext, input: PruneSlice): Tx<PrunedSlice> {
    const { id, key, version, rowsMax } = input;
    const record = yield* lockedRecord(id);
    // Another execution has taken the id since.
    if (record.key !== key) return { events: 0, responses: 0, rows: 0 };
    yield* run(sql`
      UPDATE holdfast_execution SET pruned_before = ${version} WHERE key = ${key} AND pruned_before < ${version}`);
    const responses = yield* removeResponses(input);
    let removed = responses;
    if (removed < rowsMax)
      removed += yield* removeBacktraces(key, rowsMax - removed, {
        from: 1,
        upTo: version,
      });
    const events = removed < rowsMax ? yield* removeEvents(input, rowsMax - removed) : 0;
    return { events, responses, rows: removed + events };
  },
});

function* removeResponses({
  key,
  responses,
  continuation,
  rowsMax,
  signalsBefore,
}: PruneSlice): Tx<number> {
  return yield* run(sql`
    DELETE FROM holdfast_execution_response WHERE execution = ${key} AND seq IN (
      SELECT seq FROM holdfast_execution_response
      WHERE execution = ${key} AND seq <= ${responses}
        AND (kind <> 'signal' OR (read_by < ${continuation} AND at < ${signalsBefore}))
      ORDER BY seq LIMIT ${rowsMax})`);
}

function* removeEvents({ key, version, kept }: PruneSlice, rowsMax: number): Tx<number> {
  return yield* run(sql`
    DELETE FROM holdfast_execution_event WHERE execution = ${key} AND version IN (
      SELECT version FROM holdfast_execution_event
      WHERE execution = ${key} AND version > 0 AND version < ${version}
        AND version NOT IN ${integersOf(kept)}
      ORDER BY version LIMIT ${rowsMax})`);
}

/**
 * Finished children whose responses have been removed; the responses of the current run still
 * exist.
 */
async function* forgottenChildren(
  context: ExecutionContext,
  { key }: Boundary,
): AsyncGenerator<ExecutionId, void> {
  for (let after: ChildPlace | undefined; ;) {
    const found: readonly ChildPlace[] = await context.database.read(endedChildren(context), {
      parent: key,
      after,
    });
    for (const { id } of found) yield id;
    if (found.length < childrenPerRead) return;
    after = found.at(-1);
    await context.database.pause();
  }
}

const childrenPerRead = 100;

interface ChildPlace {
  readonly id: ExecutionId;
  readonly created_at: number;
}

interface ChildrenOf {
  readonly parent: number;
  readonly after: ChildPlace | undefined;
}

const endedChildren = storeOperation("endedChildren", {
  key: (input) => String(input.parent),
  *one(_: ExecutionContext, { parent, after }: ChildrenOf): Tx<readonly ChildPlace[]> {
    const { created_at: createdAt, id } = after ?? { created_at: -1, id: "" };
    return yield* rows<ChildPlace>(sql`
      SELECT x.id, x.created_at FROM holdfast_execution AS x
      WHERE x.parent = ${parent} AND x.state = 'finished' AND (x.created_at, x.id) > (${createdAt}, ${id})
        AND NOT EXISTS (SELECT 1 FROM holdfast_execution_response r WHERE r.execution = ${parent} AND r.source = x.id)
      ORDER BY x.created_at, x.id LIMIT ${childrenPerRead}`);
  },
});
