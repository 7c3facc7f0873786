import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { parseDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { GivenEvent } from "../../../model/execution/given-event.ts";
import { recordedLater } from "../../../model/execution/ran.ts";
import type { ExecutionResult } from "../../../model/execution/result.ts";
import { checkedCount, givenList } from "../../../model/shape.ts";
import type { WaitOptions } from "../../../sql/database.ts";
import { row, storeOperation, type StoreOperation, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { optionsAndWait, type Call } from "../../method.ts";
import { checkedFence, checkedVersion, type Fence } from "../checks.ts";
import { judgedAt, type ExecutionContext } from "../context.ts";
import { lockedRecord, type ExecutionRecord } from "../state-row.ts";
import { appendLean } from "./append-lean.ts";
import { appendManyOnPostgres } from "./append.many.postgres.ts";
import {
  appendTo,
  appended,
  effectsOf,
  insertWithEffects,
  type AppendOutcome,
  type Effects,
} from "./append-to.ts";
import {
  createChildren,
  lockStarted,
  newChild,
  type ChildDraft,
  type NewChild,
} from "./children.ts";
import {
  assertAppendable,
  assertCounts,
  assertKind,
  changesVersionAlone,
  endOfDeaths,
  isFinish,
  isQuiet,
  responsesAtTimeout,
  responsesSeen,
  runNamed,
} from "./event-check.ts";
import { assertHeld, assertNext } from "./record-check.ts";
import { answeredBefore, unseenBy } from "./repeat.ts";

export interface AppendOptions extends WaitOptions {
  /** Append only as the run that last locked the execution. */
  readonly fence?: Fence;
  /**
   * Executions created in the same transaction, for events that request or schedule them. The
   * append fails if a child exists already, or if the id of a run that no "scheduled" event starts
   * is taken. A child marked `locked` is created as by `createLocked`.
   */
  readonly children?: readonly ChildDraft[];
  /**
   * Open delays of this execution, such as `Delay_order-42.o:7_1`, to withdraw without an answer:
   * 1,000 at most. Answered or unknown delays are skipped.
   */
  readonly withdraw?: readonly string[];
  /** The key that creating or locking returned; saves a lookup. */
  readonly key?: number;
  /** The parent to notify of the end. It follows from the id and is only checked here. */
  readonly respondTo?: string;
}

export interface FinishOptions extends AppendOptions {
  /** Events to append before the end. */
  readonly events?: readonly GivenEvent[];
}

/** Events that `assertAppendable` has checked. */
export interface AppendEvents {
  readonly id: ExecutionId;
  /** The key, if known; saves a lookup. */
  readonly key?: number;
  /** The version of the first event: the next unused one. */
  readonly version: number;
  readonly at: number;
  readonly events: readonly ExecutionEvent[];
  /** Appends only if this run was the last to lock the execution. */
  readonly fence?: Fence;
  /** Children created in the same transaction, for events that request them. */
  readonly children?: readonly NewChild[];
  /** The run to start for each "scheduled" event, in their order. */
  readonly starts?: readonly NewChild[];
  /** Delays to withdraw. */
  readonly withdraw?: readonly DelayId[];
  /** The parent to notify of the end. */
  readonly respondTo?: ExecutionId;
}

const appendNames = ["fence", "children", "withdraw", "key", "respondTo"] as const;

export function givenAppend(
  context: ExecutionContext,
  id: string,
  version: number,
  events: readonly GivenEvent[],
  options?: AppendOptions,
): Call<AppendEvents> {
  const { options: given, wait } = optionsAndWait(options, appendNames);
  return { input: newEvents(context, id, version, events, given), wait };
}

export function givenFinish(
  context: ExecutionContext,
  id: string,
  version: number,
  result: ExecutionResult,
  options?: FinishOptions,
): Call<AppendEvents> {
  const { options: given, wait } = optionsAndWait(options, [...appendNames, "events"]);
  const { events = [], ...rest } = given;
  const all = [...givenList("events", events), { kind: "finished", result } as const];
  return { input: newEvents(context, id, version, all, rest), wait };
}

/** @throws HoldfastError `EVENTS_INVALID` and the errors of the checks of its parts */
function newEvents(
  context: ExecutionContext,
  id: string,
  version: number,
  given: readonly GivenEvent[],
  options: Omit<AppendOptions, keyof WaitOptions>,
): AppendEvents {
  const { values, clock } = context;
  const { fence, children: drafts, key, respondTo, withdraw = [] } = options;
  const execution = parseExecutionId(id);
  const drawn = Array.from(givenList("events", given));
  const at = clock.now();
  const children = drafts === undefined ? undefined : Array.from(givenList("children", drafts));
  const withdrawn = Array.from(givenList("withdraw", withdraw), parseDelayId);
  assertCounts(execution, drawn, children, withdrawn);
  drawn.forEach((event, index) => assertKind(execution, event, index));
  const created = children?.map((child) => newChild(context, child, at));
  const drafted = new DraftedExecutions(created ?? []);
  const input: AppendEvents = {
    id: execution,
    version: checkedVersion(version),
    at,
    events: drawn.map((event) => values.event(event, drafted.of(event)?.created.inputHash)),
    ...(fence !== undefined && { fence: checkedFence("fence", fence) }),
    ...(key !== undefined && { key: checkedCount("key", key) }),
    ...(created && { children: drafted.children }),
    ...(drafted.starts.length > 0 && { starts: drafted.starts }),
    ...(withdrawn.length > 0 && { withdraw: withdrawn }),
    ...(respondTo !== undefined && { respondTo: parseExecutionId(respondTo) }),
  };
  assertAppendable(input);
  return input;
}

/** The executions to create with an append, matched to the events that request them. */
class DraftedExecutions {
  /** The executions that no "scheduled" event starts. */
  readonly children: NewChild[];
  /** The executions that a "scheduled" event starts, in the order of those events. */
  readonly starts: NewChild[] = [];

  constructor(drafts: readonly NewChild[]) {
    this.children = [...drafts];
  }

  /** An id may be passed twice with different inputs: each start gets its own. */
  of(event: GivenEvent): NewChild | undefined {
    if (event.kind === "childRequested") return this.children.find(({ id }) => id === event.child);
    if (event.kind !== "scheduled") return undefined;
    const index = this.children.findIndex(({ id }) => id === event.execution);
    if (index < 0) return undefined;
    this.starts.push(...this.children.splice(index, 1));
    return this.starts.at(-1);
  }
}

/**
 * Appends events from `version` on. All are written, with the children created and the parent
 * answered, or none. A repeated call returns the first outcome if the log already holds the events.
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
 *   `VERSION_CONFLICT`, `LOCK_LOST`, `EVENTS_INVALID`, `DELAY_EXISTS`,
 *   `EXECUTION_EXISTS`, `MESSAGE_UNREAD`, and the refusals of transitions.
 */
export const appendEvents: StoreOperation<ExecutionContext, AppendEvents, AppendOutcome> =
  storeOperation("appendEvents", {
    snapshotSafe: true,
    key: (input: AppendEvents) => input.id,
    // A plain function: each generator that a statement passes through costs as much as binding it.
    one: (context: ExecutionContext, input) => appendLean(input, () => appendAny(context, input)),
    many: appendManyOnPostgres,
    manyTakes: (input) => isQuiet(input) || isFinish(input),
  });

function* appendAny(context: ExecutionContext, input: AppendEvents): Tx<AppendOutcome> {
  const quick = changesVersionAlone(input) ? yield* appendQuietly(context, input) : undefined;
  return quick ?? (yield* appendWithState(context, input));
}

interface Moved {
  readonly key: number;
  readonly responses: number;
}

/**
 * One conditional update without reading the state first: most appends take this path, and it is a
 * fifth faster. If it changes nothing, the other path finds out why.
 */
function* appendQuietly(
  context: ExecutionContext,
  input: AppendEvents,
): Tx<AppendOutcome | undefined> {
  const { id, version, at, events, fence } = input;
  const which = input.key === undefined ? sql`id = ${id}` : sql`key = ${input.key} AND id = ${id}`;
  const held =
    fence === undefined ? sql`1 = 1` : sql`executor = ${fence.executor} AND run = ${fence.run}`;
  const named = runNamed(events);
  const ofRun = named === null ? sql`1 = 1` : sql`continuations = ${named}`;
  const most = responsesAtTimeout(events);
  const inTime = most === null ? sql`1 = 1` : sql`responses <= ${most}`;
  const moved = yield* row<Moved>(sql`
    UPDATE holdfast_execution SET version = version + ${events.length}${endOfDeaths(events)}
    WHERE ${which} AND version = ${version - 1} AND state <> 'finished' AND lifecycle = 'active'
      AND role <> 'external' AND responses >= ${responsesSeen(events)} AND ${inTime} AND ${ofRun} AND ${held}
    RETURNING key, responses`);
  if (moved === undefined) return undefined;
  const effects = effectsOf(input);
  let next = version;
  for (const event of events) {
    yield* insertWithEffects(
      {
        id,
        execution: moved.key,
        version: next,
        at,
        responses: moved.responses,
      },
      event,
      effects,
    );
    next += 1;
  }
  yield* createBeside(context, input, moved.key, effects);
  return appended(next, at, effects);
}

function* appendWithState(context: ExecutionContext, input: AppendEvents): Tx<AppendOutcome> {
  const { id, version, events } = input;
  const record = yield* lockedRecord(id);
  const at = judgedAt(context, input.at);
  if (!isNext(record, version)) {
    const before = yield* answeredBefore(context, record, input);
    if (before !== undefined) return before;
  }
  assertNext(record, version, input.key);
  assertHeld(record, input.fence);
  const effects = effectsOf(input);
  const recorded = events.map((event) => recordedLater(event, at - input.at));
  const state = yield* appendTo(context, record, at, recorded, effects);
  yield* createBeside(context, input, record.key, effects);
  const isFinished = state.pending.kind === "finished";
  const next = isFinished ? state.version : state.version + 1;
  return { ...appended(next, at, effects), ...unseenBy(events, state) };
}

/** Creates the children, and locks the ones that request it. */
function* createBeside(
  context: ExecutionContext,
  { id, children = [] }: AppendEvents,
  key: number,
  effects: Effects,
): Tx<void> {
  if (children.length > 0) yield* createChildren(context, { id, key }, children, effects.locked);
  if (effects.started.length > 0) yield* lockStarted(context, effects.started, effects.locked);
}

function isNext({ state }: ExecutionRecord, version: number): boolean {
  return state.pending.kind !== "finished" && state.version + 1 === version;
}
