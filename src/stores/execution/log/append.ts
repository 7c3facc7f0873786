import type { ExecutionEvent } from "../../../model/execution/event.ts";
import { parseDelayId, type DelayId } from "../../../model/ids/delay-id.ts";
import { parseExecutionId, type ExecutionId } from "../../../model/ids/execution-id.ts";
import type { GivenEvent } from "../../../model/execution/given-event.ts";
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
  isFinish,
  isQuiet,
  responsesSeen,
  runNamed,
} from "./event-check.ts";
import { assertHeld, assertNext } from "./record-check.ts";
import { answeredBefore, unseenBy } from "./repeat.ts";

export interface AppendOptions extends WaitOptions {
  /** Append only as the run that last locked the execution. */
  readonly fence?: Fence;
  /**
   * Created in the same transaction, for what the events request or schedule.
   * A child that exists, or a run that no "scheduled" starts and whose id is
   * taken, fails the append. One that is to be `locked` is created as by
   * `createLocked`.
   */
  readonly children?: readonly ChildDraft[];
  /**
   * Open delays of this execution, such as `Delay_order-42.o:7_1`, that are
   * taken back without an answer: 1,000 at most. Those that are answered, or
   * were never asked for, are passed over.
   */
  readonly withdraw?: readonly string[];
  /** The key that creating or locking answered with; saves a lookup. */
  readonly key?: number;
  /** The parent that is told of the end. It follows from the id; here it is checked. */
  readonly respondTo?: string;
}

export interface FinishOptions extends AppendOptions {
  /** Appended before the end. */
  readonly events?: readonly GivenEvent[];
}

/** Events that `assertAppendable` has seen. */
export interface AppendEvents {
  readonly id: ExecutionId;
  /** Saves a lookup by those who know it. */
  readonly key?: number;
  /** The version the first event is to get: the one nobody has used yet. */
  readonly version: number;
  readonly at: number;
  readonly events: readonly ExecutionEvent[];
  /** Appends only while this run was the last to lock the execution. */
  readonly fence?: Fence;
  /** Created in the same transaction, for what the events request. */
  readonly children?: readonly NewChild[];
  /** For each "scheduled", in their order: what it is to start. */
  readonly starts?: readonly NewChild[];
  /** Delays that are taken back. */
  readonly withdraw?: readonly DelayId[];
  /** The parent that is told of the end. */
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

/** @throws HoldfastError `EVENTS_INVALID` and those of what its parts are checked by */
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

/** What is created with an append, by the events that ask for it. */
class DraftedExecutions {
  /** What no event starts beside the execution. */
  readonly children: NewChild[];
  /** What one does, in the order of those events. */
  readonly starts: NewChild[] = [];

  constructor(drafts: readonly NewChild[]) {
    this.children = [...drafts];
  }

  /** One id may be given twice, with inputs that differ: each start gets its own. */
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
 * Appends events that occupy `version` and those after it; all of them, with
 * the children created and the parent answered, or nothing. The same call
 * again, when the log holds its events already, answers as the first did.
 *
 * @throws HoldfastError `EXECUTION_NOT_FOUND`, `EXECUTION_FINISHED`,
 *   `VERSION_CONFLICT`, `LOCK_LOST`, `EVENTS_INVALID`, `DELAY_EXISTS`,
 *   `EXECUTION_EXISTS`, and what a transition refuses.
 */
export const appendEvents: StoreOperation<ExecutionContext, AppendEvents, AppendOutcome> =
  storeOperation("appendEvents", {
    snapshotSafe: true,
    key: (input: AppendEvents) => input.id,
    // Not a generator itself: each one that a statement passes through costs as much as binding it.
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
 * One conditional update instead of reading the state first: most appends are
 * this, and it is a fifth faster. When it changes nothing, the other way finds
 * out why.
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
  const moved = yield* row<Moved>(sql`
    UPDATE holdfast_execution SET version = version + ${events.length}, deaths = 0
    WHERE ${which} AND version = ${version - 1} AND state <> 'finished' AND lifecycle = 'active'
      AND role <> 'external' AND responses >= ${responsesSeen(events)} AND ${ofRun} AND ${held}
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
  const state = yield* appendTo(record, at, events, effects);
  yield* createBeside(context, input, record.key, effects);
  const isFinished = state.pending.kind === "finished";
  const next = isFinished ? state.version : state.version + 1;
  return { ...appended(next, at, effects), ...unseenBy(events, state) };
}

/** The children, and the locks of those that are to have one. */
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
