import type { Created, ExecutionEvent } from "../../../model/execution/event.ts";
import { integersOf } from "../../../sql/dialect.ts";
import { rows, type Tx } from "../../../sql/operation.ts";
import { sql, type Statement } from "../../../sql/statement.ts";
import { undamaged } from "../../damage.ts";
import { rowBytes } from "../../list.ts";
import { eventBytes, eventColumns, eventOf, type EventRow } from "../event-row.ts";
import type { ExecutionRecord } from "../state-row.ts";
import type { ReadBudget } from "./history.ts";

/**
 * The input of the creation of an execution, and the input to run with: the same unless it was
 * continued.
 */
export interface LockedInputs {
  readonly created: Created;
  readonly start: InputEvent;
  /** The time at which the input was given. For a copy, the creation time of the original. */
  readonly startedAt: number;
}

type InputEvent = Extract<ExecutionEvent, { readonly kind: "created" | "continued" }>;

interface ReadInputs {
  /** The inputs by the keys of executions. Unreadable ones are missing. */
  readonly inputs: ReadonlyMap<number, LockedInputs>;
  /** Executions whose inputs do not fit and are left for the next call. */
  readonly unread: ReadonlySet<number>;
}

/**
 * The inputs of some executions in their order, as long as they fit into the budget: those of at
 * least one if nothing was spent before. As with histories, one statement reads the small inputs.
 * Sizes of the others are read before their values.
 */
export function* readInputs(
  records: readonly ExecutionRecord[],
  budget: ReadBudget,
): Tx<ReadInputs> {
  const continued = records.filter(({ state }) => state.historyFrom > 0);
  const count = records.length + continued.length;
  const smallMax = Math.floor(budget.left / Math.max(1, count)) - rowBytes;
  const parts = [yield* sized(firstEvents, records, smallMax)];
  if (continued.length > 0) parts.push(yield* sized(lastStarts, continued, smallMax));
  const fitting = new Set<number>();
  for (const { key } of records) {
    const bytes = parts.reduce((sum, { sizes }) => sum + (sizes.get(key) ?? 0), 0);
    if (bytes > budget.left && !(fitting.size === 0 && budget.isWhole)) break;
    budget.spend(bytes);
    fitting.add(key);
  }
  for (const part of parts) yield* readLarge(part, fitting);
  return inputsOf(records, fitting, parts);
}

/** Input events of some executions, one for each. */
type Events = (executions: readonly number[]) => Statement;

const firstEvents: Events = (executions) => sql`
  FROM holdfast_execution_event AS e
  WHERE e.execution IN ${integersOf(executions)} AND e.version = 0`;

const lastStarts: Events = (executions) => sql`
  FROM (SELECT key, history_from FROM holdfast_execution WHERE key IN ${integersOf(executions)}) AS x
    CROSS JOIN holdfast_execution_event AS e
  WHERE e.execution = x.key AND e.version = x.history_from`;

interface SizedRow extends EventRow {
  readonly execution: number;
  readonly bytes: number;
}

interface SizedEvents {
  readonly events: Events;
  /** The bytes that each adds to a page. */
  readonly sizes: Map<number, number>;
  readonly found: Map<number, EventRow>;
}

/** Reads small values, and only the sizes of the others. */
function* sized(
  events: Events,
  records: readonly ExecutionRecord[],
  smallMax: number,
): Tx<SizedEvents> {
  const from = events(records.map(({ key }) => key));
  const small = yield* rows<SizedRow>(sql`
    SELECT e.execution AS execution, ${eventColumns}, ${eventBytes} AS bytes ${from} AND ${eventBytes} <= ${smallMax}`);
  const large =
    small.length === records.length
      ? []
      : yield* rows<Pick<SizedRow, "execution" | "bytes">>(sql`
          SELECT e.execution AS execution, ${eventBytes} AS bytes ${from} AND ${eventBytes} > ${smallMax}`);
  return {
    events,
    sizes: new Map([...small, ...large].map((each) => [each.execution, rowBytes + each.bytes])),
    found: new Map(small.map((each) => [each.execution, each])),
  };
}

function* readLarge({ events, sizes, found }: SizedEvents, fitting: ReadonlySet<number>): Tx<void> {
  const large = [...sizes.keys()].filter((key) => fitting.has(key) && !found.has(key));
  if (large.length === 0) return;
  const read = yield* rows<Omit<SizedRow, "bytes">>(sql`
    SELECT e.execution AS execution, ${eventColumns} ${events(large)}`);
  for (const each of read) found.set(each.execution, each);
}

function inputsOf(
  records: readonly ExecutionRecord[],
  fitting: ReadonlySet<number>,
  [first, last]: readonly SizedEvents[],
): ReadInputs {
  const inputs = new Map<number, LockedInputs>();
  const unread = new Set<number>();
  for (const { key, state } of records) {
    if (!fitting.has(key)) {
      unread.add(key);
      continue;
    }
    const created = inputIn(first, key)?.event;
    const start = inputIn(state.historyFrom === 0 ? first : last, key);
    if (created?.kind !== "created" || start === undefined) continue;
    const { event, at } = start;
    const original = event.kind === "created" ? event.forkedFrom?.original : undefined;
    inputs.set(key, {
      created,
      start: event,
      startedAt: original?.createdAt ?? at,
    });
  }
  return { inputs, unread };
}

function inputIn(
  part: SizedEvents | undefined,
  key: number,
): { readonly event: InputEvent; readonly at: number } | undefined {
  const row = part?.found.get(key);
  const logged = row && undamaged(() => eventOf(row));
  const event = logged?.event;
  return event?.kind === "created" || event?.kind === "continued"
    ? { event, at: logged?.at ?? 0 }
    : undefined;
}
