import { isDeepStrictEqual } from "node:util";
import { splitDelayId } from "../../../src/model/ids/delay-id.ts";
import type { Renewal } from "../../../src/model/execution/fold-pending.ts";
import { foldExecution } from "../../../src/model/execution/fold.ts";
import type { PendingState } from "../../../src/model/execution/state.ts";
import { splitToParts } from "../../../src/model/ids/execution-id.ts";
import { eventOf, responseOf } from "../../../src/stores/execution/event-row.ts";
import { stateOf } from "../../../src/stores/execution/state-row.ts";
import { grouped, numberFaults, readFaults, type Story } from "./fault-numbers.ts";
import type { Tables } from "./tables.ts";

type ExecutionRow = Tables["executions"][number];

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
      ...numberFaults(story),
      ...readFaults(story),
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
    : [`its state ${JSON.stringify(state)} is not the fold ${JSON.stringify(fold)}`];
}

/** The columns that a state may fill; the partial indexes believe them. */
const columnsOf: Readonly<Record<PendingState["kind"], readonly (keyof ExecutionRow)[]>> = {
  pending: ["due_at", "lease_until", "executor", "run", "owner", "seen", "wake_at"],
  locked: ["lease_until", "lock_version", "is_alone", "executor", "run", "owner"],
  blocked: ["lease_until", "executor", "run", "owner", "inbox", "ordinal", "is_closing", "seen"],
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
        (JSON.parse(withdrawn) as string[]).some((member) => delay.endsWith(`.${member}`)),
    );
  const expected = events
    .filter(({ version }) => version > row.history_from)
    .map((event) => eventOf(event))
    .flatMap(({ event, version }) =>
      event.kind === "delayRequested" &&
      row.state !== "finished" &&
      !takenBack(event.delay, version)
        ? [`${event.delay} in ${splitDelayId(event.delay).joinSet} at ${event.expiresAt}`]
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
function families({ executions, responses, events }: Tables): readonly string[] {
  const byId = new Map(executions.map((row) => [row.id, row]));
  const ends = new Map(
    events.filter(({ kind }) => kind === "finished").map((end) => [end.execution, end]),
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
      row.state === "finished" && row.parent !== null && !isForgotten(row, parent, told)
        ? told.length === 1 &&
          told[0]?.execution === row.parent &&
          told[0].source === row.id &&
          told[0].finished_version === end?.version &&
          told[0].outcome === row.result_kind
        : told.length === 0;
    if (!isRight)
      faults.push(`${row.id}: ${row.state}, and its parent was told ${JSON.stringify(told)}`);
  }
  return faults;
}

/** The parent has started anew since, and what it was told before was pruned. */
function isForgotten(
  { id }: ExecutionRow,
  parent: ExecutionRow | undefined,
  told: readonly object[],
): boolean {
  const joinSet = splitToParts(id)?.joinSet;
  return (
    told.length === 0 &&
    joinSet !== undefined &&
    parent !== undefined &&
    parent.pruned_before > 0 &&
    Number(/[0-9]*(?=:)/.exec(joinSet)?.[0] ?? 0) < parent.continuations
  );
}

/** Rows of executions that do not exist. */
function strays(tables: Tables): readonly string[] {
  const keys = new Set(tables.executions.map(({ key }) => key));
  return [...tables.events, ...tables.responses, ...tables.delays, ...tables.tags]
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
