import { isDeepStrictEqual } from "node:util";
import { splitDelayId } from "../../../src/model/ids/delay-id.ts";
import type { Renewal } from "../../../src/model/execution/fold-pending.ts";
import { foldExecution } from "../../../src/model/execution/fold.ts";
import type { PendingState } from "../../../src/model/execution/state.ts";
import { splitToParts } from "../../../src/model/ids/execution-id.ts";
import {
  eventOf,
  responseOf,
} from "../../../src/stores/execution/event-row.ts";
import { stateOf } from "../../../src/stores/execution/state-row.ts";
import type { Tables } from "./tables.ts";

type ExecutionRow = Tables["executions"][number];

/** The rows of one execution. */
interface Story {
  readonly row: ExecutionRow;
  readonly events: Tables["events"];
  readonly responses: Tables["responses"];
  readonly delays: Tables["delays"];
}

/**
 * Everything about the tables that no sequence of operations may bring about,
 * in words; nothing when all is well.
 */
export function faultsIn(
  tables: Tables,
  renewals: ReadonlyMap<string, readonly Renewal[]> = new Map(),
): readonly string[] {
  const events = grouped(tables.events, (event) => event.execution);
  const responses = grouped(tables.responses, (one) => one.execution);
  const delays = grouped(tables.delays, (delay) => delay.execution);
  const faults: string[] = [];
  for (const row of tables.executions) {
    const story: Story = {
      row,
      events: events.get(row.key) ?? [],
      responses: responses.get(row.key) ?? [],
      delays: delays.get(row.key) ?? [],
    };
    const found = [
      ...numbering(story),
      ...readings(story),
      ...columns(row),
      ...creation(story),
      ...openDelays(story),
      ...leases(story),
      ...folding(story, renewals.get(row.id) ?? []),
    ];
    faults.push(...found.map((fault) => `${row.id}: ${fault}`));
  }
  return [...faults, ...families(tables), ...strays(tables)];
}

/** Rows by what they belong to, in their order. */
function grouped<T, K>(
  items: readonly T[],
  keyOf: (item: T) => K,
): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

function folding(
  { row, events, responses }: Story,
  renewals: readonly Renewal[],
): readonly string[] {
  const fold = foldExecution(
    events.map((event) => ({ ...eventOf(event), responses: event.responses })),
    responses.map(responseOf),
    renewals,
  );
  const state = stateOf(row);
  return isDeepStrictEqual(state, fold)
    ? []
    : [
        `its state ${JSON.stringify(state)} is not the fold ${JSON.stringify(fold)}`,
      ];
}

/** Versions from 0, responses from 1, questions and answers of each inbox from 1: without a gap. */
function numbering({ row, events, responses }: Story): readonly string[] {
  const faults: string[] = [];
  const dense = (what: string, numbers: readonly number[], from: number) => {
    if (numbers.some((number, index) => number !== from + index))
      faults.push(`${what} are ${numbers.join(" ")}`);
  };
  const versions = events.map(({ version }) => version);
  dense("versions", versions, 0);
  if (versions.at(-1) !== row.version)
    faults.push(`version ${row.version} is not of its last event`);
  const seqs = responses.map(({ seq }) => seq);
  dense("responses", seqs, 1);
  if (row.responses !== seqs.length)
    faults.push(`${row.responses} responses are ${seqs.length}`);
  let before = 0;
  for (const { version, responses: there, seen } of events) {
    if (there < before || there > seqs.length)
      faults.push(`event ${version} had ${there} responses`);
    if (seen > there)
      faults.push(`event ${version} had seen ${seen} of ${there} responses`);
    before = there;
  }
  const asked = events.filter(({ ordinal }) => ordinal !== null);
  for (const [inbox, questions] of grouped(asked, (event) => event.inbox))
    // Signals that were read otherwise are passed over by those who take them by name.
    if (inbox?.startsWith("s:") !== true)
      dense(`questions to ${inbox}`, questions.map(ordinalOf), 1);
  for (const [inbox, answers] of grouped(responses, (one) => one.inbox))
    dense(`answers in ${inbox}`, answers.map(ordinalOf), 1);
  return faults;
}

/** Which run read each signal, told again from the new starts: in each, what it did not leave. */
function readings({ events, responses }: Story): readonly string[] {
  const faults: string[] = [];
  const signals = responses.filter(({ kind }) => kind === "signal");
  const readBy = new Map<number, number>();
  const takenAt = new Map<number, number>();
  let starts = 0;
  for (const row of events) {
    const { event } = eventOf(row);
    if (event.kind === "signalReceived") {
      if (readBy.has(event.seq) || takenAt.has(event.seq))
        faults.push(`signal ${event.seq} was taken after it was read`);
      takenAt.set(event.seq, starts);
    }
    if (event.kind !== "continued") continue;
    starts += 1;
    if (event.continuation !== starts)
      faults.push(`its new start ${starts} is called ${event.continuation}`);
    const left: number[] = [];
    for (const { seq } of signals) {
      if (seq > row.responses || readBy.has(seq)) continue;
      const isNamed =
        event.unread?.some(([a, b]) => a <= seq && seq <= b) ?? true;
      if (!takenAt.has(seq) && (seq > event.seen || isNamed)) left.push(seq);
      else readBy.set(seq, starts - 1);
    }
    const told = event.left.flatMap(([a, b]) =>
      Array.from({ length: b - a + 1 }, (_, n) => a + n),
    );
    if (!isDeepStrictEqual(told, left))
      faults.push(
        `its new start left ${told.join(" ")}, not ${left.join(" ")}`,
      );
  }
  for (const { seq, read_by: told } of responses)
    if (told !== (readBy.get(seq) ?? null))
      faults.push(`response ${seq} is read by ${told}`);
  return faults;
}

function ordinalOf({ ordinal }: { readonly ordinal: number | null }): number {
  return ordinal ?? Number.NaN;
}

/** The columns that a state may fill; the partial indexes believe them. */
const columnsOf: Readonly<
  Record<PendingState["kind"], readonly (keyof ExecutionRow)[]>
> = {
  pending: [
    "due_at",
    "lease_until",
    "executor",
    "run",
    "owner",
    "seen",
    "wake_at",
  ],
  locked: ["lease_until", "lock_version", "executor", "run", "owner"],
  blocked: [
    "lease_until",
    "executor",
    "run",
    "owner",
    "inbox",
    "ordinal",
    "is_closing",
    "seen",
  ],
  finished: ["finished_at", "result_kind"],
};
const allColumns = new Set(Object.values(columnsOf).flat());

function columns(row: ExecutionRow): readonly string[] {
  const allowed = columnsOf[row.state];
  return [...allColumns]
    .filter((column) => !allowed.includes(column) && row[column] !== null)
    .map((column) => `${row.state}, but ${column} is ${String(row[column])}`);
}

/** What the row repeats of its first event. */
function creation({ row, events: [first] }: Story): readonly string[] {
  const created = first === undefined ? undefined : eventOf(first).event;
  if (first === undefined || created?.kind !== "created")
    return ["it does not begin with its creation"];
  const told = [
    created.function,
    created.inputHash,
    created.scheduledAt,
    created.concurrencyKey,
    created.deadlineAt,
    first.at,
  ];
  const kept = [
    row.function,
    row.input_hash,
    row.scheduled_at,
    row.concurrency_key,
    row.deadline_at,
    row.created_at,
  ];
  return isDeepStrictEqual(told, kept)
    ? []
    : [`created as ${told.join(" ")}, kept as ${kept.join(" ")}`];
}

/** A lock ends after it begins. */
function leases({ events }: Story): readonly string[] {
  return events.flatMap((row) => {
    const { event, at, version } = eventOf(row);
    return event.kind === "locked" && event.leaseUntil <= at
      ? [`its lock at version ${version} ended before it began`]
      : [];
  });
}

/** Open are those that the run asked for, was not answered and did not take back, until it ends or starts anew. */
function openDelays(story: Story): readonly string[] {
  const { row, events, responses, delays } = story;
  const answered = new Set(responses.map(({ source }) => source));
  const takenBack = (delay: string, asked: number): boolean =>
    events.some(
      ({ version, withdrawn }) =>
        version >= asked &&
        withdrawn !== null &&
        (JSON.parse(withdrawn) as string[]).some((member) =>
          delay.endsWith(`.${member}`),
        ),
    );
  const expected = events
    .filter(({ version }) => version > row.history_from)
    .map((event) => eventOf(event))
    .flatMap(({ event, version }) =>
      event.kind === "delayRequested" &&
      row.state !== "finished" &&
      !takenBack(event.delay, version)
        ? [
            `${event.delay} in ${splitDelayId(event.delay).joinSet} at ${event.expiresAt}`,
          ]
        : [],
    )
    .filter((line) => !answered.has(line.split(" ")[0] ?? ""))
    .toSorted();
  const open = delays
    .map((delay) => `${delay.id} in ${delay.inbox} at ${delay.expires_at}`)
    .toSorted();
  return isDeepStrictEqual(open, expected)
    ? []
    : [`open delays [${open.join(", ")}] are not [${expected.join(", ")}]`];
}

/** A child belongs to the execution its id tells, and its end was told there, once and truly. */
function families({
  executions,
  responses,
  events,
}: Tables): readonly string[] {
  const byId = new Map(executions.map((row) => [row.id, row]));
  const ends = new Map(
    events
      .filter(({ kind }) => kind === "finished")
      .map((end) => [end.execution, end]),
  );
  const toldOf = grouped(responses, ({ child }) => child);
  const faults: string[] = [];
  for (const row of executions) {
    const parentId = splitToParts(row.id)?.parent;
    const parent = parentId === undefined ? undefined : byId.get(parentId);
    if ((parent?.key ?? null) !== row.parent)
      faults.push(`${row.id}: its parent is not ${String(parentId)}`);
    const told = toldOf.get(row.key) ?? [];
    const end = ends.get(row.key);
    const isRight =
      row.state === "finished" && row.parent !== null
        ? told.length === 1 &&
          told[0]?.execution === row.parent &&
          told[0].source === row.id &&
          told[0].finished_version === end?.version &&
          told[0].outcome === row.result_kind
        : told.length === 0;
    if (!isRight)
      faults.push(
        `${row.id}: ${row.state}, and its parent was told ${JSON.stringify(told)}`,
      );
  }
  return faults;
}

/** Rows of executions that do not exist. */
function strays(tables: Tables): readonly string[] {
  const keys = new Set(tables.executions.map(({ key }) => key));
  return [
    ...tables.events,
    ...tables.responses,
    ...tables.delays,
    ...tables.tags,
  ]
    .filter(({ execution }) => !keys.has(execution))
    .map((row) => `of nobody: ${JSON.stringify(row)}`);
}

/** Children that a log asked for and that were not created with it. */
export function missingChildren(tables: Tables): readonly string[] {
  const ids = new Set<string>(tables.executions.map(({ id }) => id));
  return tables.events
    .map((row) => eventOf(row).event)
    .flatMap((event) =>
      event.kind === "childRequested"
        ? [event.child]
        : event.kind === "scheduled"
          ? [event.execution]
          : [],
    )
    .filter((id) => !ids.has(id));
}
