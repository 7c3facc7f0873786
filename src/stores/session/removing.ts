import { HoldfastError } from "../../model/errors.ts";
import {
  checkedCount,
  givenFunction,
  givenInvalid,
  givenList,
  givenSignal,
  optionsOf,
} from "../../model/shape.ts";
import { attachments as attachmentsIn } from "../attachment/attachments.ts";
import type { Attachments } from "../attachment/attachments.ts";
import { pendingCopies } from "../attachment/attachment-row.ts";
import type { WaitOptions } from "../../sql/database.ts";
import { addedProcesses, noProcesses } from "../process/end-report.ts";
import type { SessionProcesses } from "../process/end-report.ts";
import { forgetProcesses } from "../process/session-end.ts";
import type { ForgottenProcesses } from "../process/session-end.ts";
import { checkedId } from "./checks.ts";
import { deleteSession, unreclaimedSessions } from "./delete.ts";
import type { SessionSurroundings } from "./context.ts";
import { generationKeys } from "./graph/generations.ts";
import { reclaimSlice } from "./reclaim.ts";
import type { ReclaimedSlice } from "./reclaim.ts";
import { sessionNamed } from "./session-name.ts";
import type { SessionName } from "./session-name.ts";
import { measureNodes, measureParts } from "./sizes.ts";
import type { Sized, SmallParts } from "./sizes.ts";
import { tombstoneNodes, vacuumSlice } from "./graph/tombstones.ts";

export interface RemovalReport {
  /** False when there never was such a session. */
  readonly existed: boolean;
  /** The generation that was deleted, now or before. */
  readonly generation: number | undefined;
  readonly rows: number;
  /** Blobs that nothing else referred to. */
  readonly blobs: number;
  readonly attachments: number;
  /** Nodes that forks still show; they go with the last such fork. */
  readonly sharedNodes: number;
  /**
   * Of `erase`: files of attachments that only this session had and that are
   * still there. They go with `removeForgotten` of the `attachments` that know the
   * folder.
   */
  readonly bytesPending: number;
  /**
   * What became of the background work that it could address. Nothing is
   * cancelled: that is for the host to decide. Deleting again tells the same
   * again, whereas what was removed is counted once.
   */
  readonly processes: SessionProcesses;
}

/** For a session that there never was. */
export const nothingRemoved: RemovalReport = {
  existed: false,
  generation: undefined,
  rows: 0,
  blobs: 0,
  attachments: 0,
  sharedNodes: 0,
  bytesPending: 0,
  processes: noProcesses,
};

export interface SessionRemovalOptions {
  readonly signal?: AbortSignal;
  /** Rows per transaction: 500 unless told. More is faster and holds up others longer. */
  readonly rowsPerSlice?: number;
  /** Told after every slice. */
  readonly onProgress?: (soFar: RemovalReport) => void;
}

export interface SessionEraseOptions extends SessionRemovalOptions {
  /** Where attachments are, when not in the database: their bytes go too. */
  readonly attachments?: Attachments;
}

export interface VacuumReport {
  readonly removed: number;
  /** Removed from this session, and still shown by a fork. */
  readonly shared: number;
}

export interface SessionSizes extends SmallParts {
  readonly nodes: Sized;
  readonly totalBytes: number;
}

/** Removing sessions and parts of them. */
export interface SessionRemovals {
  /**
   * Deletes a session: from the first moment on it is gone for everybody and
   * its handles are fenced; what it owned is then removed in slices. Repeating
   * it goes on with a removal that was interrupted. The id may be used again.
   */
  delete(
    session: SessionName,
    options?: SessionRemovalOptions,
  ): Promise<RemovalReport>;
  /**
   * Deletes a session and every older generation of its id: payloads, blobs
   * without other owners and attachments. What is left is a tombstone: id,
   * generation, times, and the ids of processes that ran on. Erase forks too when `sharedNodes` is not 0: they
   * show those nodes. What was removed can be read by nobody through the
   * database; its bytes are overwritten as the file's pages are used again, on
   * SQLite all at once by `VACUUM`, on Postgres by the server's own vacuum.
   */
  erase(
    session: SessionName,
    options?: SessionEraseOptions,
  ): Promise<RemovalReport>;
  /** Goes on with removals that were interrupted, of any session. */
  reclaim(options?: SessionRemovalOptions): Promise<RemovalReport>;
  /** Hides nodes at once; unknown ids are ignored. Tells how many it hid. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  tombstone(
    session: SessionName,
    ids: readonly string[],
    options?: WaitOptions,
  ): Promise<number>;
  /** Removes hidden nodes that no fork shows. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  vacuum(
    session: SessionName,
    options?: Omit<SessionRemovalOptions, "onProgress">,
  ): Promise<VacuumReport>;
  /** What a session takes, shared blobs included. @throws HoldfastError `SESSION_NOT_FOUND`, `SESSION_DELETED` */
  sizes(session: SessionName, options?: WaitOptions): Promise<SessionSizes>;
}

const tombstonesMax = 1_000;
const nodesPerPage = 5_000;
const sessionsPerPage = 100;

export function sessionRemovals(around: SessionSurroundings): SessionRemovals {
  const { database, clock, textOf, isShownAs } = around;
  const remove = async (
    session: SessionName,
    options: SessionRemovalOptions,
  ): Promise<Removal> => {
    const removal = new Removal(around, options);
    const input = { session: sessionNamed(session), at: clock.now() };
    const deleted = await database.write(deleteSession, input, {
      signal: options.signal,
    });
    if (deleted === undefined) return removal;
    removal.found(deleted.generation);
    await (deleted.isReclaimed
      ? removal.forgetProcesses(deleted.key)
      : removal.reclaim(deleted.key));
    return removal;
  };
  return {
    async delete(session, options) {
      return (await remove(session, optionsOf(options))).report;
    },
    async erase(session, options) {
      const given = optionsOf(options);
      const { attachments: files = attachmentsIn(database), signal } = given;
      if (typeof files?.removeForgotten !== "function")
        throw givenInvalid("attachments", "what attachments() returns", files);
      const removal = await remove(session, given);
      const { id } = sessionNamed(session);
      await removal.reclaimAll(id);
      await files.removeForgotten({ ...(signal && { signal }) });
      const bytesPending = await database.read("pendingBytes", function* () {
        return yield* pendingCopies(yield* generationKeys(id));
      });
      return { ...removal.report, bytesPending };
    },
    async reclaim(options) {
      const removal = new Removal(around, optionsOf(options));
      await removal.reclaimAll(undefined);
      return removal.report;
    },
    async tombstone(session, ids, options) {
      checkedCount("The number of nodes", givenList("ids", ids).length, {
        min: 0,
        max: tombstonesMax,
      });
      const input = {
        session: sessionNamed(session),
        ids: ids.map((id) => checkedId("A node", id)),
        textOf,
        isShownAs,
      };
      return ids.length === 0
        ? 0
        : database.write(tombstoneNodes, input, options);
    },
    vacuum: async (session, options) =>
      vacuumed(around, session, optionsOf(options)),
    sizes: (session, options) => measured(around, session, options),
  };
}

async function vacuumed(
  { database }: SessionSurroundings,
  session: SessionName,
  options: Omit<SessionRemovalOptions, "onProgress">,
): Promise<VacuumReport> {
  const rowsMax = rowsPerSlice(options);
  let after: number | undefined = 0;
  let [removed, shared] = [0, 0];
  while (after !== undefined) {
    const slice: {
      readonly removed: number;
      readonly kept: number;
      readonly next: number | undefined;
    } = await database.write(
      vacuumSlice,
      { session: sessionNamed(session), after, rowsMax },
      { signal: options.signal },
    );
    removed += slice.removed;
    shared += slice.kept;
    after = slice.next;
  }
  return { removed, shared };
}

async function measured(
  { database }: SessionSurroundings,
  session: SessionName,
  options?: WaitOptions,
): Promise<SessionSizes> {
  const ref = sessionNamed(session);
  const parts = await database.read(measureParts, ref, options);
  let nodes: Sized = { count: 0, bytes: 0 };
  let after: number | undefined = 0;
  while (after !== undefined) {
    const page: Sized & { readonly last: number | undefined } =
      await database.read(
        measureNodes,
        { session: ref, after, limit: nodesPerPage },
        options,
      );
    nodes = {
      count: nodes.count + page.count,
      bytes: nodes.bytes + page.bytes,
    };
    after = page.last;
  }
  const sized: readonly Sized[] = Object.values(parts);
  const totalBytes = sized.reduce((sum, { bytes }) => sum + bytes, nodes.bytes);
  return { nodes, ...parts, totalBytes };
}

function rowsPerSlice(options: SessionRemovalOptions): number {
  const { rowsPerSlice: rows = 500 } = options;
  return checkedCount("rowsPerSlice", rows, {
    min: 1,
    max: 10_000,
  });
}

/** Removes what is left of a session that was given up. */
export async function reclaimGivenUp(
  around: SessionSurroundings,
  session: number,
): Promise<void> {
  await new Removal(around, {}).reclaim(session);
}

/** One call of `delete`, `erase` or `reclaim`. */
class Removal {
  readonly #around: SessionSurroundings;
  readonly #options: SessionRemovalOptions;
  readonly #rowsMax: number;
  /** Those asked for, which are counted once. A source may be looked at again for each of its forks. */
  readonly #done = new Set<number>();
  #report = nothingRemoved;

  constructor(around: SessionSurroundings, options: SessionRemovalOptions) {
    this.#around = around;
    this.#options = options;
    givenFunction("onProgress", options.onProgress);
    givenSignal(options.signal);
    this.#rowsMax = rowsPerSlice(options);
  }

  get report(): RemovalReport {
    return this.#report;
  }

  found(generation: number): void {
    this.#report = { ...this.#report, existed: true, generation };
  }

  /** Every deleted session, or generation of one id, of which something is left. */
  async reclaimAll(id: string | undefined): Promise<void> {
    const { database, clock } = this.#around;
    let before = Number.MAX_SAFE_INTEGER;
    for (;;) {
      const at = clock.now();
      const page = { id, at, before, limit: sessionsPerPage };
      const keys = await database.read(unreclaimedSessions, page);
      for (const key of keys) if (!this.#done.has(key)) await this.reclaim(key);
      if (keys.length < sessionsPerPage) return;
      before = keys.at(-1) ?? 0;
    }
  }

  /** Removes what a deleted session owned, and what its source only kept for it. */
  async reclaim(session: number, isSource = false): Promise<void> {
    const { database, clock, graceMs } = this.#around;
    if (!isSource) {
      this.#done.add(session);
      await this.forgetProcesses(session);
    }
    let before: number | undefined;
    for (;;) {
      const at = clock.now();
      const putUntil = at - graceMs;
      const slice: ReclaimedSlice = await database.write(
        reclaimSlice,
        { session, before, at, putUntil, rowsMax: this.#rowsMax },
        { signal: this.#options.signal },
      );
      this.#count(isSource ? { ...slice, shared: 0 } : slice);
      if (slice.before === undefined) {
        if (slice.alsoReclaim !== undefined)
          await this.reclaim(slice.alsoReclaim, true);
        return;
      }
      if (this.#options.signal?.aborted === true) throw stopped();
      before = slice.before;
    }
  }

  /** Apart from the slices, since processes are locked before sessions. What was done before is told again. */
  async forgetProcesses(session: number): Promise<void> {
    const { database, clock } = this.#around;
    const { processes: others } = this.#report;
    for (let isDone = false; !isDone;) {
      const slice: ForgottenProcesses = await database.write(
        forgetProcesses,
        { session, at: clock.now(), rowsMax: this.#rowsMax },
        { signal: this.#options.signal },
      );
      this.#report = {
        ...this.#report,
        processes: addedProcesses(others, slice.report),
      };
      isDone = slice.isDone;
    }
  }

  #count(slice: ReclaimedSlice): void {
    const { rows, blobs, attachments, sharedNodes } = this.#report;
    this.#report = {
      ...this.#report,
      rows: rows + slice.rows,
      blobs: blobs + slice.blobs,
      attachments: attachments + slice.attachments,
      sharedNodes: sharedNodes + slice.shared,
    };
    this.#options.onProgress?.(this.#report);
  }
}

function stopped(): HoldfastError {
  return new HoldfastError(
    "ABORTED",
    "The removal was stopped between two slices. The session is deleted; call it again to go on.",
  );
}
