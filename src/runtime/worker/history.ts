import type {
  LoggedEvent,
  LoggedResponse,
} from "../../model/execution/event.ts";
import { soonWhateverTimers } from "../../host/timers.ts";
import { corruptRow } from "../../model/corrupt-row.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import type { LoadedExecution } from "../../stores/execution/lock/locked.ts";
import type { WorkerParts } from "./worker-parts.ts";
import { repeated } from "../pauses.ts";
import type { RunState } from "../run/run-state.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** What was locked, with all of its history and responses: a lock brings the first pages only. */
export async function loadedWhole<T extends LoadedExecution>(
  context: RuntimeContext,
  locked: T,
): Promise<T> {
  if (!locked.hasMoreHistory && !locked.hasMoreResponses) return locked;
  const { id } = locked;
  const history = [...locked.history];
  if (locked.hasMoreHistory)
    history.push(...(await eventsAfter(context, id, locked.historyUpTo)));
  const responses = [...locked.responses];
  if (locked.hasMoreResponses) {
    const known = responses.at(-1)?.seq ?? locked.responsesFrom;
    responses.push(...(await responsesAfter(context, id, known)));
  }
  return {
    ...locked,
    history,
    responses,
    hasMoreHistory: false,
    hasMoreResponses: false,
  };
}

const pageLimit = 500;

/** On SQLite a page is read in place and at once: others have their turn between two. */
function givingWay(): Promise<void> {
  return new Promise((resolve) => soonWhateverTimers(resolve));
}

async function eventsAfter(
  { pages: { executions } }: RuntimeContext,
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
    found.push(...page.items);
    after = page.next;
    await givingWay();
  } while (after !== undefined);
  return found;
}

/** All responses after a number, in order. */
export async function responsesAfter(
  { pages: { executions } }: RuntimeContext,
  id: ExecutionId,
  seq: number,
): Promise<readonly LoggedResponse<unknown>[]> {
  const found: LoggedResponse<unknown>[] = [];
  let after: string | undefined;
  do {
    const page = await executions.responses(id, {
      from: seq + 1,
      limit: pageLimit,
      ...(after !== undefined && { after }),
    });
    assertWhole(id, page.damaged);
    found.push(...page.items);
    after = page.next;
    if (after !== undefined) await givingWay();
  } while (after !== undefined);
  return found;
}

/**
 * The next pass of a run that has continued itself under this worker's lock;
 * undefined when the run is not the worker's any more.
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

/** What others may do to a run without taking it from its worker. */
const interruptions: ReadonlySet<string> = new Set([
  "paused",
  "unpaused",
  "cancellationRequested",
]);

/** The next version, when all that others wrote from a version on are interruptions; otherwise the lock there has ended. */
export async function behindInterruptions(
  { pages: { executions } }: RuntimeContext,
  id: ExecutionId,
  version: number,
): Promise<number | undefined> {
  const { items, next } = await executions.events(id, {
    from: version,
    limit: 100,
  });
  const last = items.at(-1);
  return next === undefined &&
    items.every(({ event }) => interruptions.has(event.kind)) &&
    last !== undefined
    ? last.version + 1
    : undefined;
}

/** Why a run is to end; null when nobody has asked for it. */
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

/** A run is not replayed from half of its log. @throws HoldfastError `CORRUPT_ROW` */
function assertWhole(
  id: ExecutionId,
  damaged: readonly { readonly table: string; readonly key: string }[],
): void {
  const [first] = damaged;
  if (first !== undefined)
    throw corruptRow(
      first.table,
      first.key,
      `cannot be read, so run ${id} cannot go on`,
    );
}
