import { durationMs, type Duration } from "../../model/time/durations.ts";
import { lockRow, textsOf } from "../../sql/dialect.ts";
import { plainOperation, rows, run, type Operation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import { sweep, sweepOptions, type SweepOptions, type SweptSlice } from "../removal.ts";
import { condemn, forgetWith } from "./attachment-row.ts";
import type { AttachmentContext } from "./context.ts";

export interface SweepAttachmentsOptions extends SweepOptions<SweepReport> {
  /** The time that a commit may take after its attachments were put; defaults to 1 day. */
  readonly olderThan?: Duration;
}

export interface SweepReport {
  /** Intents that were never committed. */
  readonly forgotten: number;
  /** Copies of bytes that were removed. */
  readonly removed: number;
  /**
   * Copies that the byte store could not remove, with the code of its error. The next sweep retries
   * them.
   */
  readonly failed: readonly {
    readonly name: string;
    readonly reason: string;
  }[];
}

/**
 * Removes the remains of crashes and of turns without a commit. Any number of sweeps may run at
 * once. A sweep may stall anywhere and resume much later: the names that it then removes are
 * unused.
 */
export async function sweepAttachments(
  context: AttachmentContext,
  given: SweepAttachmentsOptions | undefined,
): Promise<SweepReport> {
  const options = sweepOptions(given, ["olderThan"]);
  const { olderThan = "1 day" } = options;
  const until = context.clock.now() - durationMs(olderThan, "olderThan");
  return inTurn(context, options, [
    sliceOf(context, options, sweepIntents, until),
    sliceOf(context, options, giveUpPuts, until),
    condemnedSlice(context, options),
  ]);
}

/** Removes condemned copies, including those of deleted sessions. */
export async function removeCondemned(
  context: AttachmentContext,
  given: SweepOptions<SweepReport> | undefined,
): Promise<SweepReport> {
  const options = sweepOptions(given);
  return inTurn(context, options, [condemnedSlice(context, options)]);
}

interface CheckedOptions extends SweepOptions<SweepReport> {
  readonly rowsPerSlice: number;
}

type NextSlice = () => Promise<SweptSlice<SweepReport>>;

const nothing: SweepReport = { forgotten: 0, removed: 0, failed: [] };

/** Runs one kind of slices after the other. */
function inTurn(
  context: AttachmentContext,
  options: CheckedOptions,
  kinds: readonly NextSlice[],
): Promise<SweepReport> {
  let kind = 0;
  return sweep(context, options, async () => {
    const swept = await kinds[kind]?.();
    if (swept === undefined) return { report: nothing, isDone: true };
    if (swept.isDone) kind += 1;
    return { report: swept.report, isDone: kind === kinds.length };
  });
}

function sliceOf(
  { database }: AttachmentContext,
  { rowsPerSlice: limit, signal }: CheckedOptions,
  operation: Operation<SweepSlice, Swept>,
  until: number,
): NextSlice {
  return async () => {
    const { forgotten, isDone } = await database.write(operation, { until, limit }, { signal });
    return { report: { ...nothing, forgotten }, isDone };
  };
}

function condemnedSlice(context: AttachmentContext, options: CheckedOptions): NextSlice {
  const { rowsPerSlice: limit, signal } = options;
  const { database, bytes } = context;
  let after = "";
  return async () => {
    const names = await database.read(
      condemnedCopies,
      { store: bytes.kind, after, limit },
      { signal },
    );
    if (names.length === 0) return { report: nothing, isDone: true };
    after = names.at(-1) ?? after;
    const report = await removeCopies(context, names, signal);
    const isDone = names.length < limit && signal?.aborted !== true;
    return { report, isDone };
  };
}

async function removeCopies(
  { database, bytes }: AttachmentContext,
  names: readonly string[],
  signal: AbortSignal | undefined,
): Promise<SweepReport> {
  const gone: string[] = [];
  const failed: { name: string; reason: string }[] = [];
  for (const name of names) {
    // Removed copies are recorded first; then the sweep reports that it was stopped.
    if (signal?.aborted === true) break;
    try {
      await bytes.remove(name);
      gone.push(name);
    } catch (error) {
      failed.push({ name, reason: codeOf(error) });
    }
  }
  const removed = await database.write(forgetCopies, { names: gone });
  return { forgotten: 0, removed, failed };
}

/** Returns the code and not the message, which may contain paths. */
function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : "unknown";
}

interface SweepSlice {
  /** Intents up to this instant are abandoned. */
  readonly until: number;
  readonly limit: number;
}

interface Swept {
  /** The number of forgotten intents. */
  readonly forgotten: number;
  /** True when nothing was left to examine. */
  readonly isDone: boolean;
}

/** Abandons puts that never ended. A put that is still writing such a copy fails at its end. */
const giveUpPuts = plainOperation("giveUpPuts", {
  key: () => "",
  *one({ until, limit }: SweepSlice): Tx<Swept> {
    const unfinished = yield* rows<{ readonly name: string }>(sql`
      SELECT name FROM holdfast_attachment_copy
      WHERE state = 'writing' AND made_at <= ${until} ORDER BY name LIMIT ${limit} ${lockRow}`);
    yield* condemn(
      unfinished.map(({ name }) => name),
      null,
    );
    return { forgotten: 0, isDone: unfinished.length < limit };
  },
});

/** True for intents of a session that a turn works on: it may still commit them. */
const isOfOpenTurn = sql`EXISTS (
  SELECT 1 FROM holdfast_session s WHERE s.key = holdfast_attachment.session AND s.open_turn IS NOT NULL)`;

/** Forgets old intents that were never committed, except in sessions with an open turn. */
export const sweepIntents = plainOperation("sweepIntents", {
  key: () => "",
  *one({ until, limit }: SweepSlice): Tx<Swept> {
    const old = yield* rows<{
      readonly session: number;
      readonly id: string;
    }>(sql`
      SELECT session, id FROM holdfast_attachment
      WHERE committed_at IS NULL AND intent_at <= ${until} AND NOT ${isOfOpenTurn}
      ORDER BY intent_at, session, id LIMIT ${limit}`);
    if (old.length === 0) return { forgotten: 0, isDone: true };
    const ids = [...new Set(old.map(({ id }) => id))];
    const forgotten = yield* forgetWith(ids, () => forgetIntents(old, until), null);
    return { forgotten, isDone: old.length < limit };
  },
});

/**
 * Forgets only these intents, even if other sessions intend the same bytes. They have one order, so
 * that two sweeps never wait for each other.
 */
function* forgetIntents(
  old: readonly { readonly session: number; readonly id: string }[],
  until: number,
): Tx<number> {
  const sessions = [...new Set(old.map(({ session }) => session))];
  let count = 0;
  for (const session of sessions.toSorted((a, b) => a - b)) {
    const own = old.filter((intent) => intent.session === session);
    // Checks again in the deletion: a commit or another put may have come since.
    count += yield* run(sql`
      DELETE FROM holdfast_attachment
      WHERE session = ${session} AND id IN ${textsOf(own.map(({ id }) => id))}
        AND committed_at IS NULL AND intent_at <= ${until} AND NOT ${isOfOpenTurn}`);
  }
  return count;
}

interface CondemnedAfter {
  readonly store: string;
  readonly after: string;
  readonly limit: number;
}

/** Unreferenced copies whose bytes must be removed, by name. */
const condemnedCopies = plainOperation("condemnedCopies", {
  key: () => "",
  *one({ store, after, limit }: CondemnedAfter): Tx<readonly string[]> {
    const found = yield* rows<{ readonly name: string }>(sql`
      SELECT name FROM holdfast_attachment_copy
      WHERE store = ${store} AND state = 'condemned' AND name > ${after} ORDER BY name LIMIT ${limit}`);
    return found.map(({ name }) => name);
  },
});

/** Removes the rows of condemned copies whose bytes are gone. */
const forgetCopies = plainOperation("forgetCopies", {
  key: () => "",
  *one({ names }: { readonly names: readonly string[] }): Tx<number> {
    return yield* run(sql`
      DELETE FROM holdfast_attachment_copy WHERE name IN ${textsOf(names)} AND state = 'condemned'`);
  },
});
