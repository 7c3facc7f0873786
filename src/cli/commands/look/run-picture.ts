import { openWaits, type OpenWait } from "../../../model/execution/open-waits.ts";
import type { LoggedEvent, LoggedResponse } from "../../../model/execution/event.ts";
import type { Metadata } from "../../../model/execution/metadata.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { spokenStanding } from "../../../model/execution/spoken-standing.ts";
import type { Span } from "../../../model/execution/span.ts";
import { spansOf } from "../../../model/execution/spans.ts";
import type { ExecutionStatus } from "../../../model/execution/status.ts";
import type { ReadableHoldfast } from "../../../open/open-existing.ts";
import type { Damaged } from "../../../stores/damage.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import type { Executions } from "../../../stores/execution/executions.ts";
import type { Question } from "../../../stores/execution/read/questions.ts";
import type { ExecutionView } from "../../../stores/execution/read/read.ts";
import type { CliContext } from "../../context.ts";
import { canBeRead } from "../can-be-read.ts";
import { everyItem } from "../../../stores/every-page.ts";
import { isDueBy, patienceMs, unservedOf, withStandings, type ListedRun } from "../../standings.ts";

const childrenMax = 200;
const questionsMax = 100;

/** Everything that `show` prints of a run. */
export interface RunPicture {
  readonly run: ExecutionView;
  readonly status: ExecutionStatus | "unserved";
  readonly words: string;
  readonly waits: readonly OpenWait[];
  /** What it asks, and may be answered now. */
  readonly questions: readonly Question[];
  readonly input: unknown;
  /** Undefined when its creation cannot be read. */
  readonly metadata: Metadata | undefined;
  readonly result: ExecutionResult | undefined;
  /** False for a run that has been due for a while and that no worker takes, since it cannot be read. */
  readonly isReadable: boolean;
  /** With how long what it asked for took, once that is known. */
  readonly events: readonly TimedEvent[];
  /** The calls, waits and attempts since its last start, as bars over time. */
  readonly spans: readonly Span[];
  /** The instant since which its code has run without recording anything; null unless it runs now. */
  readonly runningSince: number | null;
  /** The signals sent to it, received or not. */
  readonly signals: readonly SentSignal[];
  readonly children: readonly ListedRun[];
  readonly hasMoreChildren: boolean;
  /** Unreadable rows of the run and of the runs below it, which are missing here. */
  readonly damaged: readonly Damaged[];
}

export interface TimedEvent extends LoggedEvent<unknown> {
  readonly tookMs?: number;
  /** The end of the child that it requested. */
  readonly answer?: ExecutionResult;
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
  const open = run.state.pending.kind === "finished" ? [] : openWaits(history, responses, now);
  const waits = open.some(({ kind }) => kind === "child")
    ? withParked(open, await parkedChildren(executions, id, wait))
    : open;
  const isOverdue = isDueBy(run, now - patienceMs);
  const isReadable = !isOverdue || (await canBeRead(executions, id, wait));
  const isUnserved =
    isOverdue &&
    isReadable &&
    (await unservedOf(opened, [run], now - patienceMs)).has(run.function);
  const status = isUnserved ? "unserved" : run.status;
  const answered = answersOf(responses);
  const begun = events.findLast(
    ({ event }) => event.kind === "continued" || event.kind === "created",
  )?.event;
  const first = events[0]?.event;
  const spans = spansOf(events, responses);
  return {
    run,
    status,
    words: spokenStanding({ ...run, status, waits }, { now, timeZone }),
    waits,
    questions: waits.some(({ kind }) => kind === "external")
      ? (await executions.questions({ run: id, limit: questionsMax, ...wait })).items.filter(
          (question) => question.run === id,
        )
      : [],
    input: begun !== undefined && "input" in begun ? begun.input : undefined,
    metadata: first?.kind === "created" ? first.metadata : undefined,
    result: await executions.result(id, wait),
    isReadable,
    events: events.map((logged) => timed(logged, answered)),
    spans,
    runningSince: runningSince(run, events, spans),
    signals: responses.flatMap(({ at, response }) =>
      response.kind === "signal" ? [{ at, signal: response.signal, value: response.value }] : [],
    ),
    children: await withStandings(
      opened,
      tree.items.filter((below) => below.id !== run.id),
      now,
    ),
    hasMoreChildren: tree.isCut,
    damaged: [log, answers, tree].flatMap(({ damaged }) => damaged),
  };
}

/** Parked children, with the error code of each. */
async function parkedChildren(
  executions: Executions,
  parent: string,
  wait: WaitOptions,
): Promise<ReadonlyMap<string, string>> {
  const { items } = await everyItem(
    (page) => executions.list({ ...page, ...wait, parent, status: "parked" }),
    childrenMax,
  );
  return new Map(
    items.flatMap(({ id, interruption }) =>
      interruption?.kind === "parked" ? [[id as string, interruption.code]] : [],
    ),
  );
}

/** Puts parked children first, since only a person can end these waits. */
function withParked(
  waits: readonly OpenWait[],
  parked: ReadonlyMap<string, string>,
): readonly OpenWait[] {
  const named = waits.map((wait): OpenWait => {
    const code = wait.kind === "child" ? parked.get(wait.child) : undefined;
    return wait.kind === "child" && code !== undefined ? { ...wait, parked: code } : wait;
  });
  const isParked = (wait: OpenWait): boolean => wait.kind === "child" && wait.parked !== undefined;
  return [...named.filter(isParked), ...named.filter((wait) => !isParked(wait))];
}

/** A step is recorded at its end, so the log shows the code that runs only by what came before. */
function runningSince(
  { state }: ExecutionView,
  events: readonly LoggedEvent<unknown>[],
  spans: readonly Span[],
): number | null {
  const isDrawn = spans.some(
    ({ kind, ended }) => ended === null && ["step", "transaction", "attempt"].includes(kind),
  );
  return state.pending.kind === "locked" && !isDrawn ? (events.at(-1)?.at ?? null) : null;
}

interface Answer {
  readonly at: number;
  readonly result?: ExecutionResult;
}

/** The ends of children and delays, by their ids. */
function answersOf(responses: readonly LoggedResponse<unknown>[]): ReadonlyMap<string, Answer> {
  return new Map<string, Answer>(
    responses.flatMap(({ at, response }) =>
      response.kind === "child"
        ? [[response.child as string, { at, result: response.result as ExecutionResult }]]
        : response.kind === "delay"
          ? [[response.delay as string, { at }]]
          : [],
    ),
  );
}

function timed(logged: LoggedEvent<unknown>, answered: ReadonlyMap<string, Answer>): TimedEvent {
  const { event, at } = logged;
  const asked =
    event.kind === "childRequested"
      ? event.child
      : event.kind === "delayRequested"
        ? event.delay
        : undefined;
  const answer = asked === undefined ? undefined : answered.get(asked);
  if (answer === undefined) return logged;
  const { result } = answer;
  return { ...logged, tookMs: answer.at - at, ...(result !== undefined && { answer: result }) };
}
