import type {
  ExecutionEvent,
  LoggedEvent,
  LoggedResponse,
} from "../../../model/execution/event.ts";
import { realSoon } from "../../../host/timers.ts";
import { corruptRow } from "../../../model/corrupt-row.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import type { LoadedExecution } from "../../../stores/execution/lock/locked.ts";
import type { WorkerParts } from "../worker-parts.ts";
import { repeated } from "../../pauses.ts";
import type { RunState } from "../../run/run-state.ts";
import type { RuntimeContext } from "../../runtime-context.ts";

/** The context in which runs are read. */
interface Reading {
  readonly pages: Pick<RuntimeContext["pages"], "executions">;
}

/** Completes a locked run with all of its history, signals and responses: a lock brings only the first pages. */
export async function loadedWhole<T extends LoadedExecution>(
  context: Reading,
  locked: T,
): Promise<T> {
  const { hasMoreHistory, hasMoreResponses, hasMoreUnreadSignals } = locked;
  if (!hasMoreHistory && !hasMoreResponses && !hasMoreUnreadSignals) return locked;
  const { id } = locked;
  const history = [...locked.history];
  if (hasMoreHistory) history.push(...(await eventsAfter(context, id, locked.historyUpTo)));
  const responses = [...locked.responses];
  if (hasMoreResponses) {
    const known = responses.at(-1)?.seq ?? locked.responsesFrom;
    responses.push(...(await responsesAfter(context, id, known)));
  }
  const unreadSignals = [...locked.unreadSignals];
  if (hasMoreUnreadSignals) unreadSignals.push(...(await unreadAfter(context, locked)));
  return {
    ...locked,
    history,
    unreadSignals,
    responses,
    hasMoreHistory: false,
    hasMoreUnreadSignals: false,
    hasMoreResponses: false,
  };
}

const pageLimit = 500;

/** True for a history that takes milliseconds to prepare. */
export function isLong({ history }: LoadedExecution): boolean {
  return history.length > pageLimit;
}

/** On SQLite a page is read synchronously: other work gets its turn between two pages. */
export function givingWay(): Promise<void> {
  return new Promise((resolve) => realSoon(resolve));
}

/** Reads all events after a version, in order. */
export async function eventsAfter(
  { pages: { executions } }: Reading,
  id: ExecutionId,
  version: number,
): Promise<readonly LoggedEvent<unknown>[]> {
  const found: LoggedEvent<unknown>[] = [];
  let after: string | undefined;
  do {
    const page = await executions.events(id, {
      from: version + 1,
      limit: pageLimit,
      ...(after !== undefined && { after }),
    });
    assertWhole(id, page.damaged);
    for (const logged of page.items) {
      const next = version + 1 + found.length;
      if (logged.version !== next)
        throw corruptRow("holdfast_execution_event", `${id}#${next}`, "is missing");
      found.push(logged);
    }
    after = page.next;
    if (after !== undefined) await givingWay();
  } while (after !== undefined);
  return found;
}

/** Reads all events from a version on; undefined if one is of another kind. Nothing after that event is read. */
export async function eventsOnlyOf(
  { pages: { executions } }: Reading,
  id: ExecutionId,
  from: number,
  isMeant: (kind: ExecutionEvent["kind"]) => boolean,
): Promise<readonly LoggedEvent<unknown>[] | undefined> {
  const found: LoggedEvent<unknown>[] = [];
  let after: string | undefined;
  do {
    const page = await executions.events(id, {
      from,
      ...(after !== undefined && { after }),
    });
    if (!page.items.every(({ event }) => isMeant(event.kind))) return undefined;
    found.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return found;
}

/** Reads all responses after a number, in order. With `unreadUpTo` it stops after that number and skips read signals. */
export async function responsesAfter(
  { pages: { executions } }: Reading,
  id: ExecutionId,
  seq: number,
  unreadUpTo?: number,
): Promise<readonly LoggedResponse<unknown>[]> {
  const found: LoggedResponse<unknown>[] = [];
  let after: string | undefined;
  do {
    const page = await executions.responses(id, {
      from: seq + 1,
      limit: pageLimit,
      ...(unreadUpTo !== undefined && { unread: true }),
      ...(after !== undefined && { after }),
    });
    assertWhole(id, page.damaged);
    found.push(...page.items);
    after = page.next;
    if ((found.at(-1)?.seq ?? 0) > (unreadUpTo ?? Infinity)) break;
    if (after !== undefined) await givingWay();
  } while (after !== undefined);
  return found;
}

/** Reads unread signals of earlier passes, after the signals that came with the lock. */
async function unreadAfter(
  context: Reading,
  { id, unreadSignals, responsesFrom }: LoadedExecution,
): Promise<readonly LoggedResponse<unknown>[]> {
  const known = unreadSignals.at(-1)?.seq ?? 0;
  const found = await responsesAfter(context, id, known, responsesFrom);
  return found.filter(({ seq }) => seq <= responsesFrom);
}

/**
 * Reads the next pass of a run that has continued itself under this worker's lock. Undefined if
 * the run no longer belongs to the worker.
 */
export async function nextPass(
  { context, signal }: Pick<WorkerParts, "context" | "signal">,
  { id, version, leaseUntil }: Pick<RunState, "id" | "version" | "leaseUntil">,
): Promise<LoadedExecution | undefined> {
  const { clock, pages } = context;
  return repeated(clock, signal, async () => {
    const locked = await pages.executions.load(id);
    const isOurs =
      locked.nextVersion === version ||
      (await behindInterruptions(context, id, version)) !== undefined;
    return isOurs ? { ...locked, leaseUntil } : undefined;
  });
}

/** Events that other writers may add to a run without taking it from its worker. */
const interruptions: ReadonlySet<string> = new Set(["paused", "unpaused", "cancellationRequested"]);

/** The next version, if other writers added only interruptions from a version on. Otherwise the lock there has ended. */
export async function behindInterruptions(
  context: RuntimeContext,
  id: ExecutionId,
  version: number,
): Promise<number | undefined> {
  const found = await eventsOnlyOf(context, id, version, (kind) => interruptions.has(kind));
  const last = found?.at(-1);
  return last === undefined ? undefined : last.version + 1;
}

/** The cancellation of a run; null if none was requested. */
export async function cancellationOf(
  { pages: { executions } }: RuntimeContext,
  id: ExecutionId,
): Promise<LoadedExecution["cancellation"]> {
  const { items } = await executions.events(id, {
    kinds: ["cancellationRequested"],
  });
  const item = items.at(-1);
  if (item?.event.kind !== "cancellationRequested") return null;
  const { cause, reason } = item.event;
  return { requestedAt: item.at, cause, reason };
}

/** Refuses to replay a run from part of its log. @throws HoldfastError `CORRUPT_ROW` */
function assertWhole(
  id: ExecutionId,
  damaged: readonly { readonly table: string; readonly key: string }[],
): void {
  const [first] = damaged;
  if (first !== undefined)
    throw corruptRow(first.table, first.key, `is unreadable, so run ${id} cannot continue`);
}

/** Reports that a run, or a part of it, could not be read. */
export function tellFault(
  { tell }: Pick<RuntimeContext, "tell">,
  id: ExecutionId,
  what: string,
  error: unknown,
): void {
  const message = `Run ${id} ${what}: ${(error as Error).message}`;
  tell({ level: "error", message, details: { id } });
}
