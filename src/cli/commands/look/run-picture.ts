import { openWaits, type OpenWait } from "../../../model/execution/open-waits.ts";
import type { LoggedEvent } from "../../../model/execution/event.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { spokenStanding } from "../../../model/execution/spoken-standing.ts";
import type { ExecutionStatus } from "../../../model/execution/status.ts";
import type { ReadableHoldfast } from "../../../open/open-existing.ts";
import type { Damaged } from "../../../stores/damage.ts";
import { executionContext } from "../../../stores/execution/context.ts";
import type { ExecutionView } from "../../../stores/execution/read/read.ts";
import type { ExecutionSummary } from "../../../stores/execution/read/summary.ts";
import { findUnserved } from "../../../stores/execution/read/unserved.ts";
import type { CliContext } from "../../context.ts";
import { everyItem } from "../../every-page.ts";

/** So long something is due before one asks whether anybody runs it, as handles do. */
const patienceMs = 2_000;
const childrenMax = 200;

/** All that `show` tells of a run. */
export interface RunPicture {
  readonly run: ExecutionView;
  readonly status: ExecutionStatus | "unserved";
  readonly words: string;
  readonly waits: readonly OpenWait[];
  readonly input: unknown;
  readonly result: ExecutionResult | undefined;
  /** With how long what it asked for took, once that is known. */
  readonly events: readonly TimedEvent[];
  /** What was sent to it, read or not. */
  readonly signals: readonly SentSignal[];
  readonly children: readonly ExecutionSummary[];
  readonly hasMoreChildren: boolean;
  /** Rows of the run and of those below it that cannot be read, and are missing here. */
  readonly damaged: readonly Damaged[];
}

interface TimedEvent extends LoggedEvent<unknown> {
  readonly tookMs?: number;
}

interface SentSignal {
  readonly at: number;
  readonly signal: string;
  readonly value: unknown;
}

/** @throws HoldfastError `EXECUTION_NOT_FOUND`, `ID_MALFORMED`, `CORRUPT_ROW` */
export async function pictureOf(
  context: CliContext,
  opened: ReadableHoldfast,
  id: string,
): Promise<RunPicture> {
  const { executions } = opened.pages;
  const wait = { signal: context.stop };
  const run = await executions.get(id, wait);
  const log = await everyItem((page) => executions.events(id, { ...page, ...wait }));
  const answers = await everyItem((page) => executions.responses(id, { ...page, ...wait }));
  const { items: events } = log;
  const { items: responses } = answers;
  const tree = await everyItem(
    (page) => executions.tree(id, { ...page, ...wait }),
    childrenMax + 1,
  );
  const now = context.now();
  const { timeZone } = context.host;
  const history = events.filter(({ version }) => version >= run.state.historyFrom);
  const waits = run.state.pending.kind === "finished" ? [] : openWaits(history, responses, now);
  const status = await servedStatus(opened, run, now);
  const answered = new Map(
    responses.flatMap(({ at, response }) =>
      response.kind === "child"
        ? [[response.child as string, at]]
        : response.kind === "delay"
          ? [[response.delay as string, at]]
          : [],
    ),
  );
  const begun = events.findLast(
    ({ event }) => event.kind === "continued" || event.kind === "created",
  )?.event;
  return {
    run,
    status,
    words: spokenStanding({ ...run, status, waits }, { now, timeZone }),
    waits,
    input: begun !== undefined && "input" in begun ? begun.input : undefined,
    result: await executions.result(id, wait),
    events: events.map((logged) => timed(logged, answered)),
    signals: responses.flatMap(({ at, response }) =>
      response.kind === "signal" ? [{ at, signal: response.signal, value: response.value }] : [],
    ),
    children: tree.items.filter((below) => below.id !== run.id),
    hasMoreChildren: tree.isCut,
    damaged: [log, answers, tree].flatMap(({ damaged }) => damaged),
  };
}

function timed(logged: LoggedEvent<unknown>, answered: ReadonlyMap<string, number>): TimedEvent {
  const { event, at } = logged;
  const asked =
    event.kind === "childRequested"
      ? event.child
      : event.kind === "delayRequested"
        ? event.delay
        : undefined;
  const until = asked === undefined ? undefined : answered.get(asked);
  return until === undefined ? logged : { ...logged, tookMs: until - at };
}

/** As `status()` of a handle: due for a while, and nobody runs its function. */
async function servedStatus(
  { database }: ReadableHoldfast,
  { status, state, function: name }: ExecutionView,
  now: number,
): Promise<RunPicture["status"]> {
  const { pending } = state;
  const dueBy = now - patienceMs;
  if (status !== "pending" || pending.kind !== "pending") return status;
  if (pending.dueAt > dueBy) return status;
  const find = findUnserved(executionContext(database, {}));
  const found = await database.read(find, { only: name, dueBy });
  return found.length > 0 ? "unserved" : status;
}
