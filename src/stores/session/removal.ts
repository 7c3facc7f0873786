import type { SessionHandle } from "../../model/session/session.ts";
import { givenInvalid } from "../../model/shape.ts";
import { lockToEnd } from "../../sql/dialect.ts";
import { announce, row, rows, storeOperation, run, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { pendingCopies } from "../attachment/attachment-row.ts";
import { attachments as attachmentsIn, type Attachments } from "../attachment/attachments.ts";
import { leaseChanged } from "../lease/topics.ts";
import {
  addedProcesses,
  forgetProcesses,
  type ForgottenProcesses,
} from "../process/session-end-row.ts";
import { queueWork } from "../queue/topics.ts";
import { sweep, sweepOptions, type SweepOptions, type SweptSlice } from "../removal.ts";
import type { SessionContext } from "./context.ts";
import { addedRemovals, nothingRemoved, type RemovalReport } from "./parts.ts";
import type { Executions } from "../execution/executions.ts";
import {
  cancelTurns,
  eraseTurns,
  forgetParent,
  refuseSubSession,
  subSessions,
} from "./turn-removal.ts";
import { importIdleMs, reclaimSlice, type ReclaimedSlice } from "./reclaim.ts";
import { sessionNamed, type SessionName } from "../session-name.ts";
import { generationKeys, type SessionRef } from "../session-row.ts";

export interface SessionEraseOptions extends SweepOptions<RemovalReport> {
  /** The attachments, when they are not in the database: their bytes are removed too. */
  readonly attachments?: Attachments;
}

/** Deletes a session, and removes its data in slices. */
export async function removeSession(
  context: SessionContext,
  runs: Executions,
  session: SessionName,
  options: SweepOptions<RemovalReport> | undefined,
): Promise<RemovalReport> {
  const removal = new Removal(context, sweepOptions(options));
  await removal.delete(sessionNamed(session), ({ key }, wait) =>
    cancelTurns(context, runs, key, wait),
  );
  return removal.report;
}

/** Does the same with all older generations of its id, and removes the bytes of its attachments. */
export async function eraseSession(
  context: SessionContext,
  runs: Executions,
  session: SessionName,
  options: SessionEraseOptions | undefined,
): Promise<RemovalReport> {
  const { database } = context;
  const { attachments: files = attachmentsIn(database), ...known } = sweepOptions(options, [
    "attachments",
  ]);
  if (typeof files?.removeForgotten !== "function")
    throw givenInvalid("attachments", "the result of attachments()", files);
  const ref = sessionNamed(session);
  const wait = { signal: known.signal };
  await refuseSubSession(context, ref, wait);
  const removal = new Removal(context, known);
  await eraseWith(removal, { context, runs, options: known, passed: new Set() }, ref);
  await files.removeForgotten({
    ...(known.signal && { signal: known.signal }),
  });
  const bytesPending = await database.read("pendingBytes", function* () {
    return yield* pendingCopies(yield* generationKeys(ref.id));
  });
  return { ...removal.report, bytesPending };
}

interface Erasing {
  readonly context: SessionContext;
  readonly runs: Executions;
  readonly options: SweepOptions<RemovalReport> & { readonly rowsPerSlice: number };
  /** The keys of the sessions that were begun with. Two may name each other as their parent. */
  readonly passed: Set<number>;
}

/**
 * Erases a session: first it is deleted, so that nothing begins any more, then come the runs of its
 * turns, the sessions below it, and its rows. Its parent is forgotten last: until then an
 * interrupted call finds it again.
 */
async function eraseWith(removal: Removal, erasing: Erasing, ref: SessionRef): Promise<void> {
  const { context, runs, options, passed } = erasing;
  const wait = { signal: options.signal };
  let below = { ...nothingRemoved };
  await removal.delete(ref, async (deleted) => {
    passed.add(deleted.key);
    const turnRows = await eraseTurns(context, runs, deleted, wait);
    below = { ...below, rows: below.rows + turnRows };
    for (const { key, id, generation } of await subSessions(context, ref.id, wait)) {
      if (passed.has(key)) continue;
      const sub = new Removal(context, options);
      await eraseWith(sub, erasing, { id, generation });
      below = addedRemovals(below, sub.report);
    }
  });
  await removal.reclaimAll(ref.id);
  const { generation } = removal.report;
  if (generation !== undefined) await forgetParent(context, { id: ref.id, generation }, wait);
  removal.add(below);
}

/** Resumes interrupted removals of all sessions. */
export async function reclaimSessions(
  context: SessionContext,
  options: SweepOptions<RemovalReport> | undefined,
): Promise<RemovalReport> {
  const removal = new Removal(context, sweepOptions(options));
  await removal.reclaimAll(undefined);
  return removal.report;
}

/** Removes the remains of an abandoned session. */
export async function reclaimGivenUp(context: SessionContext, session: number): Promise<void> {
  await new Removal(context, sweepOptions({})).reclaim(session);
}

/** The counts of a slice. */
type Removed = Pick<RemovalReport, "rows" | "blobs" | "attachments" | "sharedNodes">;

type Slices = AsyncGenerator<SweptSlice<Removed>, void>;

const sessionsPerPage = 100;

/** One call of `delete`, `erase` or `reclaim`. */
class Removal {
  readonly #context: SessionContext;
  readonly #options: SweepOptions<RemovalReport>;
  readonly #rowsMax: number;
  /**
   * Requested sessions, each counted once. A source may be examined again for each of its forks.
   */
  readonly #done = new Set<number>();
  #report = nothingRemoved;

  constructor(
    context: SessionContext,
    options: SweepOptions<RemovalReport> & { readonly rowsPerSlice: number },
  ) {
    this.#context = context;
    this.#options = options;
    this.#rowsMax = options.rowsPerSlice;
  }

  get report(): RemovalReport {
    return this.#report;
  }

  get #wait(): { readonly signal: AbortSignal | undefined } {
    return { signal: this.#options.signal };
  }

  /** Counts what was removed besides. */
  add(other: RemovalReport): void {
    this.#report = addedRemovals(this.#report, other);
  }

  /** Deletes a session. `before` runs once it is deleted, and before any of its rows is removed. */
  async delete(
    session: SessionRef,
    before: (
      deleted: DeletedSession,
      wait: { readonly signal: AbortSignal | undefined },
    ) => Promise<void>,
  ): Promise<void> {
    const { database, clock } = this.#context;
    const deleted = await database.write(
      deleteSession(this.#context),
      { session, at: clock.now() },
      this.#wait,
    );
    if (deleted === undefined) return;
    const { key, generation, isReclaimed } = deleted;
    this.#report = { ...this.#report, existed: true, generation };
    await before(deleted, this.#wait);
    await (isReclaimed ? this.#forgetProcesses(key) : this.reclaim(key));
  }

  /** Removes the data of a deleted session, and the data that its source kept only for it. */
  async reclaim(session: number): Promise<void> {
    await this.#sweep(this.#slicesOf(session));
  }

  /** Every deleted session, or generation of one id, that has data left. */
  async reclaimAll(id: string | undefined): Promise<void> {
    await this.#sweep(this.#slicesOfAll(id));
  }

  async #sweep(slices: Slices): Promise<void> {
    const { signal, onProgress } = this.#options;
    const { rows: rowsBefore, blobs, attachments, sharedNodes } = this.#report;
    const counted = (removed: Removed): void => {
      this.#report = {
        ...this.#report,
        rows: rowsBefore + removed.rows,
        blobs: blobs + removed.blobs,
        attachments: attachments + removed.attachments,
        sharedNodes: sharedNodes + removed.sharedNodes,
      };
      onProgress?.(this.#report);
    };
    const options = { ...(signal && { signal }), onProgress: counted };
    await sweep(this.#context, options, async () => {
      const step = await slices.next();
      return step.done === true ? { report: nothingRemoved, isDone: true } : step.value;
    });
  }

  async *#slicesOfAll(id: string | undefined): Slices {
    const { database, clock } = this.#context;
    let before = Number.MAX_SAFE_INTEGER;
    for (;;) {
      const at = clock.now();
      const page = { id, at, before, limit: sessionsPerPage };
      const keys: readonly number[] = await database.read(unreclaimedSessions(this.#context), page);
      for (const key of keys)
        if (!this.#done.has(key))
          for await (const { report } of this.#slicesOf(key)) yield { report, isDone: false };
      if (keys.length < sessionsPerPage) return;
      before = keys.at(-1) ?? 0;
    }
  }

  async *#slicesOf(session: number, isSource = false): Slices {
    const { database, clock, graceMs } = this.#context;
    if (!isSource) {
      this.#done.add(session);
      await this.#forgetProcesses(session);
    }
    for (let before: number | undefined; ;) {
      const at = clock.now();
      const putUntil = at - graceMs;
      const slice: ReclaimedSlice = await database.write(
        reclaimSlice(this.#context),
        { session, before, at, putUntil, rowsMax: this.#rowsMax },
        this.#wait,
      );
      const { rows: removed, blobs, attachments, shared, alsoReclaim } = slice;
      const sharedNodes = isSource ? 0 : shared;
      ({ before } = slice);
      yield {
        report: { rows: removed, blobs, attachments, sharedNodes },
        isDone: before === undefined && alsoReclaim === undefined,
      };
      if (before !== undefined) continue;
      if (alsoReclaim !== undefined) yield* this.#slicesOf(alsoReclaim, true);
      return;
    }
  }

  /**
   * Runs outside the slices, since processes are locked before sessions. Earlier results are
   * reported again.
   */
  async #forgetProcesses(session: number): Promise<void> {
    const { database, clock } = this.#context;
    const { processes: others } = this.#report;
    for (let isDone = false; !isDone;) {
      const slice: ForgottenProcesses = await database.write(
        forgetProcesses,
        { session, at: clock.now(), rowsMax: this.#rowsMax },
        this.#wait,
      );
      const processes = addedProcesses(others, slice.report);
      this.#report = { ...this.#report, processes };
      isDone = slice.isDone;
    }
  }
}

interface DeleteSession {
  readonly session: SessionRef;
  readonly at: number;
}

interface DeletedSession extends SessionHandle {
  readonly key: number;
  /** False when it had been deleted before. */
  readonly wasLiving: boolean;
  /** True when only its tombstone is left. */
  readonly isReclaimed: boolean;
}

interface TombstoneRow extends SessionHandle {
  readonly key: number;
  readonly deleted_at: number | null;
  readonly reclaimed_at: number | null;
}

/**
 * Turns a session into a tombstone. From now on its handles are fenced, and its id can be used
 * again. Its data is removed in slices afterwards. Its parent stays known until it is erased, so
 * that erasing the parent finds it. May be repeated; undefined when no such session ever existed.
 */
export const deleteSession = storeOperation("deleteSession", {
  key: (input) => input.session.id,
  *one(
    _: SessionContext,
    { session: { id, generation }, at }: DeleteSession,
  ): Tx<DeletedSession | undefined> {
    const which =
      generation === undefined
        ? sql`id = ${id} AND generation > 0`
        : sql`id = ${id} AND generation = ${generation}`;
    const columns = sql`SELECT key, id, generation, deleted_at, reclaimed_at FROM holdfast_session`;
    const found =
      (yield* row<TombstoneRow>(sql`
        ${columns} WHERE ${which} AND deleted_at IS NULL ${lockToEnd}`)) ??
      (yield* row<TombstoneRow>(sql`
        ${columns} WHERE ${which} ORDER BY generation DESC LIMIT 1 ${lockToEnd}`));
    if (found === undefined) return undefined;
    if (found.deleted_at === null) {
      yield* run(sql`
        UPDATE holdfast_session SET deleted_at = ${at}, name = NULL, model = NULL, cwd = NULL,
          caused_by = NULL, origin = NULL, config = NULL, current_frame = NULL, leaf = NULL, agent = NULL,
          open_turn = NULL, turn_due_at = NULL, turn_batch = NULL, stop_turn = NULL, fork_node = NULL, fork_top = NULL,
          node_count = 0, user_message_count = 0, first_user_message = NULL
        WHERE key = ${found.key}`);
      // Waits for its work or its lease end now.
      yield* announce(leaseChanged, id);
      yield* announce(queueWork, id);
    }
    return {
      key: found.key,
      id: found.id,
      generation: found.generation,
      wasLiving: found.deleted_at === null,
      isReclaimed: found.reclaimed_at !== null,
    };
  },
});

interface UnreclaimedSessions {
  readonly at: number;
  /** Only generations of this id. */
  readonly id: string | undefined;
  readonly before: number;
  readonly limit: number;
}

/** The keys of deleted sessions that have data left, newest first: forks before their sources. */
const unreclaimedSessions = storeOperation("unreclaimedSessions", {
  key: (input) => input.id ?? "",
  *one(_: SessionContext, { id, at, before, limit }: UnreclaimedSessions): Tx<readonly number[]> {
    const left = sql`deleted_at IS NOT NULL AND reclaimed_at IS NULL
      AND (importing_at IS NULL OR importing_at <= ${at - importIdleMs})`;
    const which = id === undefined ? left : sql`${left} AND id = ${id}`;
    const found = yield* rows<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_session WHERE ${which} AND key < ${before} ORDER BY key DESC LIMIT ${limit}`);
    return found.map(({ key }) => key);
  },
});
