import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import type { SessionId } from "../../model/ids/session-id.ts";
import type { SessionHandle } from "../../model/session/session.ts";
import { row, rows, run, storeOperation, type Tx } from "../../sql/operation.ts";
import { sql } from "../../sql/statement.ts";
import type { Executions } from "../execution/executions.ts";
import { turnsOfSession, type TurnRun } from "../execution/turn-row.ts";
import type { SessionRef } from "../session-row.ts";
import type { SessionContext } from "./context.ts";

/**
 * The runs of turns and the sub-sessions of a session that is removed. The session is a tombstone
 * by then, so no turn begins and no commit succeeds. Each step may be repeated: what is done
 * already is not found again.
 */

type Runs = Pick<Executions, "cancel" | "erase">;

interface SignalOption {
  readonly signal: AbortSignal | undefined;
}

const turnsPerPage = 100;

const turnsPage = storeOperation("turnsOfSession", {
  key: (input) => String(input.session),
  one: (_: SessionContext, input: { readonly session: number; readonly after: string }) =>
    turnsOfSession(input.session, input.after, turnsPerPage),
});

async function* turnsOf(
  context: SessionContext,
  session: number,
  wait: SignalOption,
): AsyncGenerator<TurnRun, void> {
  for (let after = ""; ;) {
    const input = { session, after };
    const page: readonly TurnRun[] = await context.database.read(turnsPage(context), input, wait);
    yield* page;
    if (page.length < turnsPerPage) return;
    after = page.at(-1)?.id ?? after;
  }
}

/** Requests the end of the turns of a deleted session. */
export async function cancelTurns(
  context: SessionContext,
  runs: Runs,
  session: number,
  wait: SignalOption,
): Promise<void> {
  for await (const { id, isFinished } of turnsOf(context, session, wait))
    if (!isFinished)
      await unlessGone(runs.cancel(id, { reason: "its session was deleted", ...given(wait) }));
}

/**
 * Ends the turns of a deleted session and of the generations before it by force, and erases their
 * runs. A later generation keeps its own. Returns the removed rows.
 */
export async function eraseTurns(
  context: SessionContext,
  runs: Runs,
  { id: session, generation }: SessionHandle,
  wait: SignalOption,
): Promise<number> {
  const found = await context.database.read(
    "deletedGenerations",
    () =>
      rows<{ readonly key: number }>(sql`
        SELECT key FROM holdfast_session
        WHERE id = ${session} AND generation > 0 AND generation <= ${generation} AND deleted_at IS NOT NULL`),
    wait,
  );
  let removed = 0;
  for (const { key } of found)
    for await (const { id, isFinished } of turnsOf(context, key, wait)) {
      if (!isFinished) await unlessGone(runs.cancel(id, { force: true, ...given(wait) }));
      const erased = await unlessGone(runs.erase(id, given(wait)));
      removed += erased?.rows ?? 0;
    }
  return removed;
}

function given({ signal }: SignalOption): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

/** Another call may remove the same runs. */
async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (!isHoldfastError(error) || !gone.has(error.code)) throw error;
    return undefined;
  }
}

const gone: ReadonlySet<string> = new Set(["EXECUTION_NOT_FOUND", "EXECUTION_ERASED"]);

/** A session of any generation. */
interface SubSession extends SessionHandle {
  readonly key: number;
}

/**
 * The sessions that name this one as their parent, by id. Those that were deleted are among them
 * until they are erased: an interrupted call may have left turns of them. All belong to the session
 * that lives under the id of the parent, if there is one.
 */
export async function subSessions(
  { database }: SessionContext,
  parent: SessionId,
  wait: SignalOption,
): Promise<readonly SubSession[]> {
  return database.read(
    "subSessions",
    () =>
      rows<SubSession>(sql`
        SELECT key, id, generation FROM holdfast_session
        WHERE parent IS NOT NULL AND parent = ${parent} AND id <> ${parent} AND generation > 0
          AND NOT EXISTS (SELECT 1 FROM holdfast_session p WHERE p.id = ${parent} AND p.deleted_at IS NULL)
        ORDER BY id, generation`),
    wait,
  );
}

/** Forgets the parent of an erased session and of the generations before it. */
const forgetParentOf = storeOperation("forgetParent", {
  key: (input) => input.id,
  one: (_: SessionContext, { id, generation }: SessionHandle) =>
    run(sql`
      UPDATE holdfast_session SET parent = NULL
      WHERE id = ${id} AND generation > 0 AND generation <= ${generation} AND deleted_at IS NOT NULL AND parent IS NOT NULL`),
});

export async function forgetParent(
  context: SessionContext,
  session: SessionHandle,
  wait: SignalOption,
): Promise<void> {
  await context.database.write(forgetParentOf(context), session, wait);
}

/**
 * Refuses a session that belongs to a live one: its parent would miss it.
 * @throws HoldfastError `SESSION_OWNED`, which names the session at the top
 */
export async function refuseSubSession(
  { database }: SessionContext,
  { id, generation }: SessionRef,
  wait: SignalOption,
): Promise<void> {
  const root = await database.read("rootSession", () => rootAbove(id, generation), wait);
  if (root === undefined) return;
  throw new HoldfastError(
    "SESSION_OWNED",
    `Session "${id}" belongs to session "${root}", which refers to it; nothing was removed. Erase session "${root}", which erases all sessions below it.`,
    { id, root },
  );
}

interface Relation {
  readonly generation: number;
  readonly parent: SessionId | null;
}

/**
 * The session at the top of those that a session is below. One that is below itself has none: it
 * would keep all of them from being erased.
 */
function* rootAbove(id: SessionId, generation: number | undefined): Tx<SessionId | undefined> {
  const own = yield* parentOf(id);
  if (own === undefined || (generation ?? own.generation) !== own.generation) return undefined;
  const passed = new Set<SessionId>([id]);
  let root: SessionId | undefined;
  for (let next = own.parent; next !== null && !passed.has(next);) {
    const above: Relation | undefined = yield* parentOf(next);
    if (above === undefined) break;
    if (above.parent === id) return undefined;
    passed.add(next);
    root = next;
    next = above.parent;
  }
  return root;
}

function* parentOf(id: SessionId): Tx<Relation | undefined> {
  return yield* row<Relation & object>(sql`
    SELECT generation, parent FROM holdfast_session WHERE id = ${id} AND deleted_at IS NULL`);
}
