import { corruptRow } from "../../../model/corrupt-row.ts";
import {
  announcingKinds,
  areBegunBodies,
  attemptKinds,
  begunSteps,
  isActivityBegun,
  stepEndingKinds,
  type BegunBody,
  type BodyEvent,
} from "../../../model/execution/begun.ts";
import type { Created } from "../../../model/execution/event.ts";
import type { ExecutionId } from "../../../model/ids/execution-id.ts";
import { isOutcomeOfStep } from "../../../model/execution/fork-point.ts";
import { integersOf, textsOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql } from "../../../sql/statement.ts";
import { bodyOf, outcomeIn } from "../event-row.ts";
import { assertFew } from "./fork-copy.ts";

/** An execution that is retried, with its creation. */
export interface RetriedSource {
  readonly id: ExecutionId;
  readonly key: number;
  readonly created: Created;
}

/** The part of a log that a retry continues: a pass, and the last event that it keeps. */
interface KeptPart {
  readonly historyFrom: number;
  readonly keptUpTo: number;
}

/** The most steps that one transaction looks through, and the most that a copy remembers. */
const announcedMax = { found: 100_000, remembered: 10_000 } as const;

type ByKey = ReadonlyMap<number, readonly BegunBody[]>;

/**
 * The bodies that a retry of each execution may repeat, by its key. Read from the logs of the
 * sources, since a retry keeps no event behind its last achievement.
 * @throws HoldfastError `FORK_TOO_LARGE`
 */
export function* begunBodies(sources: readonly RetriedSource[], kept: KeptPart): Tx<ByKey> {
  const begun = new Map<number, readonly BegunBody[]>();
  const workflows = sources.filter(({ created }) => created.role === "workflow");
  const activities = sources.filter(({ created }) => created.role === "activity");
  yield* addSteps(begun, workflows, kept);
  const attempts = yield* bodyEvents(activities, attemptKinds, kept);
  for (const source of activities) {
    const isBegun = isActivityBegun(
      formerOf(source, kept).length > 0,
      attempts.get(source.key) ?? [],
    );
    if (isBegun) begun.set(source.key, [{ call: 0, name: source.created.function }]);
  }
  return begun;
}

function* addSteps(
  begun: Map<number, readonly BegunBody[]>,
  sources: readonly RetriedSource[],
  kept: KeptPart,
): Tx<void> {
  const beginnings = yield* bodyEvents(sources, announcingKinds, kept);
  const calls = new Set([...beginnings.values()].flat().map(({ call }) => call));
  for (const source of sources) for (const { call } of formerOf(source, kept)) calls.add(call);
  if (calls.size === 0) return;
  const ends = yield* bodyEvents(sources, stepEndingKinds, kept, [...calls]);
  for (const source of sources) {
    const { id, key } = source;
    const events = [...(beginnings.get(key) ?? []), ...(ends.get(key) ?? [])];
    events.sort((a, b) => a.version - b.version);
    const steps = begunSteps(formerOf(source, kept), events, kept.keptUpTo);
    assertFew(id, "announced steps", steps.length, announcedMax.remembered);
    begun.set(key, steps);
  }
}

/** The bodies of the run that the source was a retry of, unless it was continued since. */
function formerOf({ id, created }: RetriedSource, { historyFrom }: KeptPart): readonly BegunBody[] {
  const { begun = [], forkedFrom } = created;
  if (!areBegunBodies(begun))
    throw corruptRow("holdfast_execution_event", id, "holds a damaged list of begun steps");
  return historyFrom > (forkedFrom?.version ?? 0) ? [] : begun;
}

/** The events of each execution that are its own: what it copied is in its list of begun bodies. */
function* bodyEvents(
  sources: readonly RetriedSource[],
  kinds: readonly string[],
  { historyFrom }: KeptPart,
  calls?: readonly number[],
): Tx<ReadonlyMap<number, readonly BodyEvent[]>> {
  const events = new Map<number, BodyEvent[]>();
  const [first] = sources;
  if (first === undefined) return events;
  const copiedUpTo = new Map(
    sources.map(({ key, created }) => [key, created.forkedFrom?.version ?? 0]),
  );
  const ofCalls = calls === undefined ? sql`1 = 1` : sql`call IN ${integersOf(calls)}`;
  const found = yield* rows<{
    readonly execution: number;
    readonly version: number;
    readonly kind: string;
    readonly call: number;
    readonly body: string;
  }>(sql`
    SELECT execution, version, kind, call, body FROM holdfast_execution_event
    WHERE execution IN ${integersOf(sources.map(({ key }) => key))} AND version > ${historyFrom}
      AND kind IN ${textsOf(kinds)} AND ${ofCalls}
    ORDER BY execution, version LIMIT ${announcedMax.found + 1}`);
  assertFew(first.id, "announced steps", found.length, announcedMax.found);
  for (const event of found) {
    const { execution, version } = event;
    if (version <= (copiedUpTo.get(execution) ?? 0)) continue;
    const list = events.get(execution);
    const told = bodyEvent(event);
    if (list === undefined) events.set(execution, [told]);
    else list.push(told);
  }
  return events;
}

function bodyEvent({
  version,
  kind,
  call,
  body,
}: Omit<BodyEvent, "name" | "outcome"> & { readonly body: string }): BodyEvent {
  if (isOutcomeOfStep(kind)) return { version, kind, call, outcome: outcomeIn(body) };
  const { name, resultKind: outcome } = bodyOf({ version, kind, body }) as {
    readonly name?: string;
    readonly resultKind?: string;
  };
  return { version, kind, call, name, outcome };
}
