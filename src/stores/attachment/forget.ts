import { HoldfastError } from "../../model/errors.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { row, rows, run, plainOperation } from "../../sql/operation.ts";
import type { Operation, Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { lockedSession } from "../session/session-row.ts";
import type { SessionRef } from "../session/session-row.ts";

/**
 * Forgets attachments, and condemns the copies of those that no session has
 * any more. Each question is a statement of its own, and the order matters:
 *
 * 1. The copies are locked, so that whoever intends the same bytes either has
 *    recorded it, or waits and finds them condemned and writes a new copy.
 * 2. What is to go is forgotten, which may be an intent newer than the locks.
 * 3. So the copies are asked for again; those of a newer intent are among them.
 * 4. The manifest is asked last: every copy found before had its intent by then.
 */
function* forgetting(
  ids: readonly string[],
  forget: () => Tx<number>,
  session: number | null,
): Tx<number> {
  yield* lockedCopies(ids);
  const forgotten = yield* forget();
  const copies = yield* lockedCopies(ids);
  const kept = yield* rows<{ readonly id: string }>(sql`
    SELECT DISTINCT id FROM holdfast_attachment WHERE id IN ${textsOf(ids)}`);
  const isKept = new Set(kept.map(({ id }) => id));
  yield* condemn(
    copies.filter(({ id }) => !isKept.has(id)).map(({ name }) => name),
    session,
  );
  return forgotten;
}

function* lockedCopies(
  ids: readonly string[],
): Tx<readonly { readonly name: string; readonly id: string }[]> {
  return yield* rows<{ name: string; id: string }>(sql`
    SELECT name, id FROM holdfast_attachment_copy
    WHERE id IN ${textsOf(ids)} AND state <> 'condemned' ORDER BY name ${lockRow}`);
}

function* condemn(names: readonly string[], session: number | null): Tx<void> {
  if (names.length === 0) return;
  yield* run(sql`
    UPDATE holdfast_attachment_copy SET state = 'condemned', condemned_for = ${session}
    WHERE name IN ${textsOf(names)} AND state <> 'condemned'`);
}

/**
 * Forgets attachments of a session that is being deleted, at most so many;
 * fewer means that none is left. Their bytes go with the next sweep.
 */
export function* forgetAttachments(
  session: number,
  rowsMax: number,
): Tx<number> {
  const found = yield* rows<{ readonly id: string }>(sql`
    SELECT id FROM holdfast_attachment WHERE session = ${session} ORDER BY id LIMIT ${rowsMax}`);
  if (found.length === 0) return 0;
  const ids = found.map(({ id }) => id);
  return yield* forgetting(
    ids,
    () =>
      run(sql`
        DELETE FROM holdfast_attachment WHERE session = ${session} AND id IN ${textsOf(ids)}`),
    session,
  );
}

interface Forget {
  readonly session: SessionRef;
  readonly id: string;
}

/**
 * Forgets one attachment that no commit refers to; false when it was not there.
 * What a commit refers to goes with its session.
 *
 * @throws HoldfastError `ATTACHMENT_COMMITTED`
 */
export const forgetAttachment: Operation<Forget, boolean> = plainOperation(
  "forgetAttachment",
  {
    key: (input: Forget) => input.session.id,
    *one({ session, id }) {
      const { key } = yield* lockedSession(session);
      const forgotten = yield* forgetting(
        [id],
        () =>
          run(sql`
            DELETE FROM holdfast_attachment WHERE session = ${key} AND id = ${id} AND committed_at IS NULL`),
        key,
      );
      if (forgotten > 0) return true;
      const kept = yield* row(sql`
        SELECT id FROM holdfast_attachment WHERE session = ${key} AND id = ${id}`);
      if (kept !== undefined) throw attachmentCommitted(id);
      return false;
    },
  },
);

function attachmentCommitted(id: string): HoldfastError {
  return new HoldfastError(
    "ATTACHMENT_COMMITTED",
    `A commit refers to attachment ${id}, so it stays as long as its session. Nothing was changed. Delete or erase the session to remove it.`,
    { id },
  );
}

interface SweepSlice {
  /** Intents up to this instant are given up. */
  readonly until: number;
  readonly limit: number;
}

interface Swept {
  readonly count: number;
  /** True when nothing was left to look at. */
  readonly isDone: boolean;
}

/** Gives up puts that never ended: whoever still writes such a copy is told so at the end. */
export const giveUpPuts: Operation<SweepSlice, Swept> = plainOperation(
  "giveUpPuts",
  {
    key: () => "",
    *one({ until, limit }: SweepSlice) {
      const unfinished = yield* rows<{ readonly name: string }>(sql`
        SELECT name FROM holdfast_attachment_copy
        WHERE state = 'writing' AND made_at <= ${until} ORDER BY name LIMIT ${limit} ${lockRow}`);
      yield* condemn(
        unfinished.map(({ name }) => name),
        null,
      );
      return { count: unfinished.length, isDone: unfinished.length < limit };
    },
  },
);

/** Forgets old intents that no commit has made good. */
export const sweepIntents: Operation<SweepSlice, Swept> = plainOperation(
  "sweepIntents",
  {
    key: () => "",
    *one({ until, limit }: SweepSlice) {
      const old = yield* rows<{
        readonly session: number;
        readonly id: string;
      }>(sql`
        SELECT session, id FROM holdfast_attachment
        WHERE committed_at IS NULL AND intent_at <= ${until} ORDER BY intent_at, session, id LIMIT ${limit}`);
      if (old.length === 0) return { count: 0, isDone: true };
      const ids = [...new Set(old.map(({ id }) => id))];
      const count = yield* forgetting(
        ids,
        () => forgetIntents(old, until),
        null,
      );
      return { count, isDone: old.length < limit };
    },
  },
);

/** Only these, however many other sessions intend the same bytes. In one order, so that no two sweeps wait for each other. */
function* forgetIntents(
  old: readonly { readonly session: number; readonly id: string }[],
  until: number,
): Tx<number> {
  const sessions = [...new Set(old.map(({ session }) => session))];
  let count = 0;
  for (const session of sessions.toSorted((a, b) => a - b)) {
    const own = old.filter((intent) => intent.session === session);
    // Asked again in the deletion: a commit or another put may have come since.
    count += yield* run(sql`
      DELETE FROM holdfast_attachment
      WHERE session = ${session} AND id IN ${textsOf(own.map(({ id }) => id))}
        AND committed_at IS NULL AND intent_at <= ${until}`);
  }
  return count;
}

interface CondemnedAfter {
  readonly store: string;
  readonly after: string;
  readonly limit: number;
}

/** Copies that nothing refers to and whose bytes are to go, by name. */
export const condemnedCopies: Operation<CondemnedAfter, readonly string[]> =
  plainOperation("condemnedCopies", {
    key: () => "",
    *one({ store, after, limit }: CondemnedAfter) {
      const found = yield* rows<{ readonly name: string }>(sql`
        SELECT name FROM holdfast_attachment_copy
        WHERE store = ${store} AND state = 'condemned' AND name > ${after} ORDER BY name LIMIT ${limit}`);
      return found.map(({ name }) => name);
    },
  });

/** Forgets condemned copies whose bytes are gone. */
export const forgetCopies: Operation<
  { readonly names: readonly string[] },
  number
> = plainOperation("forgetCopies", {
  key: () => "",
  *one({ names }: { readonly names: readonly string[] }) {
    return yield* run(sql`
      DELETE FROM holdfast_attachment_copy WHERE name IN ${textsOf(names)} AND state = 'condemned'`);
  },
});
