import { splitDelayId } from "../../model/ids/delay-id.ts";
import type { DelayId } from "../../model/ids/delay-id.ts";
import type { Encoded } from "../../model/values/encoded.ts";
import { payloadField } from "../../model/execution/event-payload.ts";
import { isControlKind } from "../../model/execution/event.ts";
import type { ExecutionEvent } from "../../model/execution/event.ts";
import { parseExecutionId, splitToParts } from "../../model/ids/execution-id.ts";
import type { ExecutionId } from "../../model/ids/execution-id.ts";
import { parseFunctionName } from "../../model/ids/function-name.ts";
import { isHistoryKind } from "../../model/execution/history-event.ts";
import { isMetadata } from "../../model/execution/metadata.ts";
import { isResult } from "../../model/execution/result.ts";
import { integersOf, textsOf } from "../../sql/dialect.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { sql, type Statement } from "../../sql/statement.ts";
import { processesOfKeys } from "../process/process-row.ts";
import { byKey, distinct, groupedBy, tableCheck } from "../table-check.ts";
import type { CheckTools, TableCheck } from "../table-check.ts";
import { undamaged } from "../damage.ts";
import { faultyField } from "./log/event-fields.ts";
import { eventOf } from "./event-row.ts";
import type { EventRow } from "./event-row.ts";
import { beingRemoved } from "./being-removed.ts";
import { besideChecks, noOwner, ownerName } from "./table-checks-beside.ts";
import { stateColumns, stateOf, type StateRow } from "./state-row.ts";

interface ExecutionRow extends StateRow {
  readonly input_hash: string;
  /** The number of responses at the start of the run before which the history was pruned. */
  readonly pruned_responses: number | null;
  readonly progress: Encoded | null;
}

/**
 * Responses up to this number may have been pruned; null when the event that records the number is
 * lost.
 */
function prunedResponses(execution: Statement): Statement {
  return sql`(SELECT p.responses FROM holdfast_execution_event p
    WHERE p.execution = ${execution}.key AND p.version = ${execution}.pruned_before)`;
}

const execution = tableCheck<ExecutionRow>({
  table: "holdfast_execution",
  select: sql`SELECT ${stateColumns}, input_hash, progress, ${prunedResponses(sql`t`)} AS pruned_responses`,
  from: sql`FROM holdfast_execution t`,
  ...byKey,
  keyOf: ({ id }) => id,
  weight: sql`COALESCE(length(progress), 0)`,
  judge(found, { decode }) {
    if (found.progress !== null) decode(found.progress);
    parseExecutionId(found.id);
    parseFunctionName(found.function);
    stateOf(found);
    return undefined;
  },
  *partners(found) {
    const removed = yield* beingRemoved(found);
    const keys = integersOf(found.map(({ key }) => key));
    const first = yield* rows<EventRow & { readonly execution: number }>(sql`
      SELECT execution, version, at, responses, kind, call, seen, body, NULL AS payload
      FROM holdfast_execution_event WHERE execution IN ${keys} AND version = 0`);
    const last = yield* rows<EventRow & { readonly execution: number }>(sql`
      SELECT e.execution, e.version, e.at, e.responses, e.kind, e.call, e.seen, e.body, NULL AS payload
      FROM holdfast_execution x JOIN holdfast_execution_event e ON e.execution = x.key AND (e.version = x.version OR e.version = x.version + 1)
      WHERE x.key IN ${keys} ORDER BY e.execution, e.version`);
    const responses = yield* rows<{ execution: number; seq: number }>(sql`
      SELECT r.execution, r.seq FROM holdfast_execution x
        JOIN holdfast_execution_response r ON r.execution = x.key AND (r.seq = x.responses OR r.seq = x.responses + 1)
      WHERE x.key IN ${keys}`);
    const parents = yield* executionsOfKeys(distinct(found, ({ parent }) => parent));
    const processes = yield* processesOfKeys(distinct(found, ({ process }) => process));
    const firstOf = groupedBy(first, (each) => each.execution);
    const lastOf = groupedBy(last, (each) => each.execution);
    const answersOf = groupedBy(responses, (each) => each.execution);
    return (row) => {
      if (removed(row.id)) return undefined;
      return (
        faultOfStart(row, firstOf(row.key)[0]) ??
        faultOfEnd(row, lastOf(row.key)) ??
        faultOfAnswers(row, answersOf(row.key)) ??
        faultOfParent(row, parents) ??
        (row.process !== null && processes.get(row.process)?.execution !== row.key
          ? "The process that it runs for does not refer to it."
          : undefined)
      );
    };
  },
});

function faultOfStart(row: ExecutionRow, created: EventRow | undefined): string | undefined {
  const event = created && eventOf(created).event;
  if (event?.kind !== "created") return "Its log does not begin with its creation.";
  if (event.inputHash !== row.input_hash) return "Its input_hash is not that of its creation.";
  return event.function === row.function ? undefined : "Its function is not that of its creation.";
}

/**
 * Checks that the newest event is at the row's version, and is the end if the execution has
 * finished.
 */
function faultOfEnd(row: ExecutionRow, [last, ...later]: readonly EventRow[]): string | undefined {
  if (last?.version !== row.version || later.length > 0)
    return "Its log does not end at its version.";
  if (row.state !== "finished") return undefined;
  const { event } = eventOf(last);
  return event.kind === "finished" && event.resultKind === row.result_kind
    ? undefined
    : "It is finished, but the last event of its log is not its end.";
}

function faultOfAnswers(
  row: ExecutionRow,
  answers: readonly { readonly seq: number }[],
): string | undefined {
  const mayBePruned = row.responses <= (row.pruned_responses ?? 0);
  const isWhole =
    answers.length === 0
      ? row.responses === 0 || mayBePruned
      : answers.length === 1 && answers[0]?.seq === row.responses;
  return isWhole ? undefined : "Its last response does not match its count of responses.";
}

function faultOfParent(
  row: ExecutionRow,
  parents: ReadonlyMap<number, ExecutionRef>,
): string | undefined {
  const named = splitToParts(row.id)?.parent;
  const parent = row.parent === null ? undefined : parents.get(row.parent)?.id;
  return named === parent ? undefined : "Its parent differs from the one in its id.";
}

interface OwnedEvent extends EventRow {
  readonly seq: number;
  readonly execution: number;
  readonly id: ExecutionId | null;
  readonly last: number | null;
  readonly pruned_before: number | null;
}

const event = tableCheck<OwnedEvent>({
  table: "holdfast_execution_event",
  select: sql`
    SELECT t.seq, t.execution, x.id, x.version AS last, x.pruned_before, t.version, t.at, t.responses, t.kind, t.call, t.seen, t.body, t.payload`,
  from: sql`FROM holdfast_execution_event t LEFT JOIN holdfast_execution x ON x.key = t.execution`,
  order: sql`t.seq`,
  behind: ({ seq }) => sql`t.seq > ${seq}`,
  weight: sql`length(t.body) + COALESCE(length(t.payload), 0)`,
  keyOf: (row) => `${ownerName(row)}#${row.version}`,
  judge(row, tools) {
    if (row.id === null) return noOwner;
    if (row.version > (row.last ?? 0)) return "It comes after the last event of its run.";
    return faultOfEvent(row, tools);
  },
  *partners(found) {
    const removed = yield* beingRemoved(found);
    const followers = yield* rows<{ readonly seq: number }>(sql`
      SELECT e.seq FROM holdfast_execution_event e
        JOIN holdfast_execution_event p ON p.execution = e.execution AND p.version = e.version - 1
      WHERE e.seq IN ${integersOf(found.map(({ seq }) => seq))}`);
    const follows = new Set(followers.map(({ seq }) => seq));
    const children = yield* childrenOf(found);
    return (row) => {
      if (removed(row.id)) return undefined;
      if (row.version > (row.pruned_before ?? 0) && !follows.has(row.seq))
        return "The event before it is missing.";
      const { event: logged } = eventOf(row);
      if (logged.kind !== "childRequested") return undefined;
      const hash = children.get(`${row.execution} ${logged.child}`);
      return hash === undefined || hash === logged.inputHash
        ? undefined
        : "The child that it requested was created with another input.";
    };
  },
});

function faultOfEvent(row: EventRow, tools: CheckTools): string | undefined {
  const isHistory = isHistoryKind(row.kind);
  if (!isHistory && !isControlKind(row.kind)) return "It has an unknown kind.";
  const field = payloadField(row.kind);
  if (field !== undefined && row.payload === null) return "It has lost its value.";
  const { event: logged } = eventOf(row);
  if (logged.kind === "created" && !isMetadata(logged.metadata)) return "Its metadata is damaged.";
  if (logged.kind !== "created" && logged.kind !== "forked") {
    const fault = faultyField(logged, isHistory);
    if (fault !== undefined) return `Its ${fault.name} is damaged.`;
  }
  if (row.payload === null) return undefined;
  return faultOfValue(logged, tools.decode(row.payload), tools);
}

function faultOfValue(
  logged: ExecutionEvent,
  value: unknown,
  { agrees }: CheckTools,
): string | undefined {
  switch (logged.kind) {
    case "created":
    case "continued":
      return agrees("execution", 1, value, logged.inputHash)
        ? undefined
        : "Its input does not match its hash.";
    case "finished":
      if (!isResult(value) || value.kind !== logged.resultKind)
        return "Its result is missing or of another kind.";
      return agrees("execution", 1, value, logged.resultHash)
        ? undefined
        : "Its result does not match its hash.";
    default:
      return undefined;
  }
}

/** The input hashes of children that were created for requests among these events. */
function* childrenOf(found: readonly OwnedEvent[]): Tx<ReadonlyMap<string, string>> {
  const parents = found.filter(({ kind }) => kind === "childRequested");
  if (parents.length === 0) return new Map();
  const ids = parents.flatMap((row) => {
    const requested = undamaged(() => eventOf(row).event);
    const child: unknown = requested?.kind === "childRequested" ? requested.child : undefined;
    return typeof child === "string" ? child : [];
  });
  const children = yield* rows<{
    readonly id: string;
    readonly parent: number;
    readonly input_hash: string;
  }>(sql`
    SELECT id, parent, input_hash FROM holdfast_execution WHERE id IN ${textsOf(ids)} AND parent IS NOT NULL`);
  return new Map(children.map((child) => [`${child.parent} ${child.id}`, child.input_hash]));
}

interface OwnedResponse {
  readonly key: number;
  readonly execution: number;
  readonly id: ExecutionId | null;
  readonly last: number | null;
  readonly seq: number;
  readonly at: number;
  readonly kind: "child" | "delay" | "signal";
  readonly inbox: string;
  readonly source: string;
  readonly outcome: string;
  readonly child: number | null;
  readonly finished_version: number | null;
  readonly value_hash: string | null;
  readonly payload: Encoded | null;
  readonly read_by: number | null;
  readonly continuations: number | null;
  readonly pruned_responses: number | null;
  readonly child_event: string | null;
}

const response = tableCheck<OwnedResponse>({
  table: "holdfast_execution_response",
  select: sql`
    SELECT t.key, t.execution, x.id, x.responses AS last, t.seq, t.at, t.kind, t.inbox, t.source, t.outcome, t.child,
      t.finished_version, t.value_hash, COALESCE(t.payload, e.payload) AS payload, t.read_by, x.continuations,
      ${prunedResponses(sql`x`)} AS pruned_responses, e.kind AS child_event`,
  from: sql`
    FROM holdfast_execution_response t LEFT JOIN holdfast_execution x ON x.key = t.execution
      LEFT JOIN holdfast_execution_event e ON e.execution = t.child AND e.version = t.finished_version`,
  ...byKey,
  weight: sql`COALESCE(length(t.payload), length(e.payload), 0)`,
  keyOf: (row) => `${ownerName(row)}#${row.seq}`,
  judge(row) {
    if (row.id === null) return noOwner;
    if (row.seq > (row.last ?? 0)) return "It comes after the last response of its run.";
    return row.read_by !== null &&
      (row.kind !== "signal" || row.read_by >= (row.continuations ?? 0))
      ? "It was read by an unknown run, or is not a signal."
      : undefined;
  },
  *partners(found) {
    const removed = yield* beingRemoved(found);
    const followers = yield* rows<{ readonly key: number }>(sql`
      SELECT r.key FROM holdfast_execution_response r
        JOIN holdfast_execution_response p ON p.execution = r.execution AND p.seq = r.seq - 1
      WHERE r.key IN ${integersOf(found.map(({ key }) => key))}`);
    const follows = new Set(followers.map(({ key }) => key));
    return (row, tools) => {
      if (removed(row.id)) return undefined;
      if (row.seq > 1 + (row.pruned_responses ?? 0) && !follows.has(row.key))
        return "The response before it is missing.";
      if (row.child !== null && row.child_event !== "finished")
        return "The event of the child that it answers with is missing.";
      return faultOfAnswer(row, tools);
    };
  },
});

function faultOfAnswer(row: OwnedResponse, { decode, agrees }: CheckTools): string | undefined {
  if (row.kind === "delay") {
    splitDelayId(row.source as DelayId);
    return row.outcome === "expired" || row.outcome === "cancelled"
      ? undefined
      : "Its outcome is unknown.";
  }
  if (row.kind !== "child" && row.kind !== "signal") return "It has an unknown kind.";
  if (row.payload === null) return "It has lost its value.";
  const value = decode(row.payload);
  if (row.kind === "child" && (!isResult(value) || value.kind !== row.outcome))
    return "Its result is missing or of another kind.";
  return agrees("execution", 1, value, row.value_hash ?? "")
    ? undefined
    : "Its value does not match its hash.";
}

interface ExecutionRef {
  readonly key: number;
  readonly id: ExecutionId;
}

/** Executions by key, for rows that refer to them. */
function* executionsOfKeys(keys: readonly number[]): Tx<ReadonlyMap<number, ExecutionRef>> {
  if (keys.length === 0) return new Map();
  const found = yield* rows<ExecutionRef>(sql`
    SELECT key, id FROM holdfast_execution WHERE key IN ${integersOf(keys)}`);
  return new Map(found.map((each) => [each.key, each]));
}

export const executionChecks: readonly TableCheck[] = [execution, event, response, ...besideChecks];
