import type { SessionHandle } from "../../model/session.ts";
import { lockToEnd } from "../../sql/dialect.ts";
import {
  announce,
  row,
  rows,
  run,
  plainOperation,
} from "../../sql/operation.ts";
import type { Operation } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { leaseChanged } from "../lease/topics.ts";
import { queueWork } from "../queue/topics.ts";
import type { SessionRef } from "./session-row.ts";

export interface DeleteSession {
  readonly session: SessionRef;
  readonly at: number;
}

export interface DeletedSession extends SessionHandle {
  readonly key: number;
  /** False when it had been deleted before. */
  readonly wasLiving: boolean;
  /** True when nothing of it is left but the tombstone. */
  readonly isReclaimed: boolean;
}

interface TombstoneRow extends SessionHandle {
  readonly key: number;
  readonly deleted_at: number | null;
  readonly reclaimed_at: number | null;
}

/**
 * Makes a session a tombstone: from now on its handles are fenced and its id
 * may be used again. What it owned is removed in slices afterwards. May be
 * repeated; undefined when there never was such a session.
 */
export const deleteSession: Operation<
  DeleteSession,
  DeletedSession | undefined
> = plainOperation("deleteSession", {
  key: (input: DeleteSession) => input.session.id,
  *one({ session: { id, generation }, at }) {
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
        UPDATE holdfast_session SET deleted_at = ${at}, name = NULL, model = NULL, cwd = NULL, parent = NULL,
          caused_by = NULL, origin = NULL, config = NULL, current_frame = NULL, leaf = NULL, fork_node = NULL, fork_top = NULL,
          node_count = 0, user_message_count = 0, first_user_message = NULL
        WHERE key = ${found.key}`);
      // Whoever waits for its work or its lease waits in vain.
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

/** An import that has written nothing for so long is over: an hour, since a step of one takes seconds. */
export const importIdleMs = 3_600_000;

/** The keys of deleted sessions of which something is left, the newest first: forks before their sources. */
export const unreclaimedSessions: Operation<
  UnreclaimedSessions,
  readonly number[]
> = plainOperation("unreclaimedSessions", {
  key: (input: UnreclaimedSessions) => input.id ?? "",
  *one({ id, at, before, limit }) {
    const left = sql`deleted_at IS NOT NULL AND reclaimed_at IS NULL
      AND (importing_at IS NULL OR importing_at <= ${at - importIdleMs})`;
    const which = id === undefined ? left : sql`${left} AND id = ${id}`;
    const found = yield* rows<{ readonly key: number }>(sql`
      SELECT key FROM holdfast_session WHERE ${which} AND key < ${before} ORDER BY key DESC LIMIT ${limit}`);
    return found.map(({ key }) => key);
  },
});
