import type { ExecutionEvent } from "../../model/execution/event.ts";
import type { HistoryEvent, HistoryFact } from "../../model/execution/history-event.ts";
import { ranBefore } from "../../model/execution/ran.ts";
import type { NewExecution } from "../../stores/execution/log/create.ts";

/** A history event without the number of responses seen when it is appended. */
export type Entry = HistoryFact & { readonly call: number };

/** The instants at which a body began and ended. */
export interface BodyTimes {
  readonly began: number;
  readonly ended: number;
}

/** The content of one append. */
export interface Batch {
  /** The instant of the append. */
  readonly at: number;
  readonly events: readonly ExecutionEvent[];
  readonly children?: readonly NewExecution[];
  /** The runs that the "scheduled" events start, in their order. */
  readonly starts?: readonly NewExecution[];
  /** The indexes of the events that are to be delivered. */
  readonly outcomes: readonly number[];
  /** The calls of the steps that it announces. */
  readonly announced: readonly number[];
  /** Queues everything again but the timeouts of receives; missing when there are none. */
  readonly withoutTimeouts?: () => void;
}

// The limits of the store for one append.
const eventsMax = 1_000;
const charactersMax = 1_048_576;
/** SQLite creates runs on the event loop, which is blocked for that time: 200 take 10 to 30 ms. */
const createdMax = 200;

const theFirst: readonly number[] = [0];
const none: readonly number[] = [];

interface Request {
  readonly entry: Entry;
  readonly child: NewExecution | undefined;
}

interface Outcome {
  readonly entry: Entry;
  readonly times: BodyTimes | undefined;
}

/**
 * The events that a run has to append: requests in the order of their calls, then outcomes in
 * the order in which they occurred. In this order a log never has an event whose earlier
 * requests are missing.
 */
export class Journal {
  #requests: Request[] = [];
  #records: Outcome[] = [];
  #externals = 0;

  /** Queues a child, a sleep, a start, a receive or a patch. */
  request(entry: Entry, child?: NewExecution): void {
    this.#requests.push({ entry, child });
    if (isExternal(child)) this.#externals += 1;
  }

  /** Queues the end of a step, a failed attempt, a timeout of a wait, or the announcement of a step. */
  record(entry: Entry, times?: BodyTimes): void {
    this.#records.push({ entry, times });
  }

  get isEmpty(): boolean {
    return this.#requests.length === 0 && this.#records.length === 0;
  }

  get hasRequests(): boolean {
    return this.#requests.length > 0;
  }

  /** True while there is a token that cannot be resolved yet. */
  get hasExternals(): boolean {
    return this.#externals > 0;
  }

  /** Drops outcomes that will not be delivered. */
  dropRecords(): void {
    this.#records = [];
  }

  /** Drops the announcements of steps that will not begin. */
  dropAnnouncements(): void {
    this.#records = this.#records.filter(({ entry }) => entry.kind !== "stepBegan");
  }

  /** Drops everything, and returns the runs that would have been created. */
  drop(): readonly NewExecution[] {
    const dropped = this.#requests.flatMap(({ child }) => child ?? []);
    this.#requests = [];
    this.#records = [];
    this.#externals = 0;
    return dropped;
  }

  /** Takes the next append, made at an instant, as much as fits into one. */
  take(seen: number, at: number): Batch {
    return this.#requests.length === 0 && this.#records.length === 1
      ? this.#takeOne(this.#records[0] as Outcome, seen, at)
      : this.#takeMany(seen, at);
  }

  /** Takes a single record: most appends are one step. */
  #takeOne(outcome: Outcome, seen: number, at: number): Batch {
    this.#records.pop();
    const { kind, call } = outcome.entry;
    const batch = {
      at,
      events: [eventOf(outcome, seen, at)],
      outcomes: isDelivered(kind) ? theFirst : none,
      announced: kind === "stepBegan" ? [call] : none,
    };
    return kind === "receiveTimedOut"
      ? { ...batch, withoutTimeouts: () => this.#putBack([], []) }
      : batch;
  }

  #takeMany(seen: number, at: number): Batch {
    const events: HistoryEvent[] = [];
    const children: NewExecution[] = [];
    const starts: NewExecution[] = [];
    const outcomes: number[] = [];
    const announced: number[] = [];
    let characters = 0;
    const fits = (size: number): boolean =>
      events.length < eventsMax - 1 && (events.length === 0 || characters + size <= charactersMax);
    let taken = 0;
    for (const { entry, child } of this.#requests) {
      const size = sizeOf(entry) + (child?.created.input.length ?? 0);
      if (!fits(size)) break;
      if (child !== undefined && children.length + starts.length === createdMax) break;
      characters += size;
      const event = { ...entry, seen } as HistoryEvent;
      if (entry.kind === "scheduled") outcomes.push(events.length);
      events.push(event);
      if (child !== undefined) (entry.kind === "scheduled" ? starts : children).push(child);
      if (isExternal(child)) this.#externals -= 1;
      taken += 1;
    }
    const requests = this.#requests.slice(0, taken);
    this.#requests = this.#requests.slice(taken);
    if (this.#requests.length > 0) return { at, events, children, starts, outcomes, announced };
    taken = 0;
    for (const outcome of this.#records) {
      const { entry } = outcome;
      const size = sizeOf(entry);
      if (!fits(size)) break;
      characters += size;
      if (isDelivered(entry.kind)) outcomes.push(events.length);
      if (entry.kind === "stepBegan") announced.push(entry.call);
      events.push(eventOf(outcome, seen, at));
      taken += 1;
    }
    const records = this.#records.slice(0, taken);
    this.#records = this.#records.slice(taken);
    const batch = { at, events, children, starts, outcomes, announced };
    if (!records.some(isTimeout)) return batch;
    return { ...batch, withoutTimeouts: () => this.#putBack(requests, records) };
  }

  /** Steps may have ended since: their outcomes come behind. Timeouts that did not fit go too. */
  #putBack(requests: readonly Request[], records: readonly Outcome[]): void {
    this.#externals += requests.filter(({ child }) => isExternal(child)).length;
    this.#requests = [...requests, ...this.#requests];
    this.#records = [...records, ...this.#records].filter((record) => !isTimeout(record));
  }
}

function isTimeout({ entry }: Outcome): boolean {
  return entry.kind === "receiveTimedOut";
}

/** False for what is recorded of a step before its end. */
function isDelivered(kind: Entry["kind"]): boolean {
  return kind !== "stepAttemptFailed" && kind !== "stepBegan";
}

/** Copied field by field, a step's outcome takes 150 bytes; spread, it takes 500. */
function eventOf({ entry, times }: Outcome, seen: number, at: number): HistoryEvent {
  const ran = times && ranBefore(at, times.began, times.ended);
  if (entry.kind !== "stepFinished") return { ...entry, seen, ...(ran && { ran }) };
  const { kind, name, inputHash, outcome, value, call } = entry;
  return { kind, name, inputHash, outcome, value, call, seen, ran };
}

function sizeOf(entry: Entry): number {
  const { value, error } = entry as { value?: string; error?: string };
  return 100 + (value?.length ?? 0) + (error?.length ?? 0);
}

function isExternal(child: NewExecution | undefined): boolean {
  return child?.created.role === "external";
}
