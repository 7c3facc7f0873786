import {
  rows,
  run,
  integer,
  text,
  sql,
  type Statement,
  type Tx,
  type Database,
} from "../../../src/kernel.ts";
import {
  schedules,
  type Schedules,
  triggers,
  type SubscriptionTerms,
  type Triggers,
} from "../../../src/triggers.ts";
import { processes, type Processes } from "../../../src/processes.ts";
import { sessions, type Sessions } from "../../../src/sessions.ts";
import type { FireSchedule, Scheduler } from "../../../src/stores/schedule/schedule-row.ts";
import type { Backend, Place } from "../backend.ts";
import { countingClock } from "../wait-fixture.ts";
import type { CountingClock } from "../wait-fixture.ts";

/** Triggers and schedules as their tests need them. */

export interface TriggerFixture {
  readonly place: Place;
  readonly clock: CountingClock;
  readonly mine: Side;
  /** The same database as another process has it; in memory the same one. */
  readonly theirs: Side;
}

/** One process's view of the database. */
export interface Side {
  readonly database: Database;
  readonly schedules: Schedules;
  readonly triggers: Triggers;
  readonly sessions: Sessions;
  readonly processes: Processes;
  /** Resolves when this side has done all that can be done without another change. */
  readonly quiet: () => Promise<void>;
}

export type InTriggers = (body: (fixture: TriggerFixture) => Promise<void>) => () => Promise<void>;

/** Monday, 5 January 2026, 00:00 UTC. */
export const monday = 1_767_571_200_000;
export const hour = 3_600_000;

/**
 * A test body with a clock that begins on a Monday. All tests of a backend
 * share one database, whose tables are emptied before each.
 */
export function inTriggers(backend: Backend): InTriggers {
  return (body) => async () => {
    const opening = shared.get(backend) ?? open(backend);
    shared.set(backend, opening);
    const { place, own, other } = await opening;
    await own.write("empty", function* () {
      for (const table of emptied) yield* run(table);
    });
    const clock = countingClock(monday);
    const mine = side(own, clock);
    await body({
      place,
      clock,
      mine,
      theirs: other === own ? mine : side(other, clock),
    });
    if (clock.sleepers > 0) throw new Error("Somebody still sleeps.");
  };
}

interface Opened {
  readonly place: Place;
  readonly own: Database;
  readonly other: Database;
}

const shared = new WeakMap<Backend, Promise<Opened>>();

async function open(backend: Backend): Promise<Opened> {
  const place = await backend.place();
  const own = await place.open({ isWithoutPoll: true });
  const other = backend.survives ? await place.open({ isWithoutPoll: true }) : own;
  await own.write("tables", () =>
    run(sql`CREATE TABLE fired (name ${text}, instant ${integer}, at ${integer})`),
  );
  return { place, own, other };
}

export async function disposeTriggers(backend: Backend): Promise<void> {
  const opened = await shared.get(backend);
  shared.delete(backend);
  await opened?.place.dispose();
}

const emptied: readonly Statement[] = [
  sql`DELETE FROM fired`,
  sql`DELETE FROM holdfast_schedule`,
  sql`DELETE FROM holdfast_trigger_subscription`,
  sql`DELETE FROM holdfast_trigger_occurrence`,
  sql`DELETE FROM holdfast_trigger_delivery`,
  sql`DELETE FROM holdfast_process`,
  sql`DELETE FROM holdfast_process_event`,
  sql`DELETE FROM holdfast_process_grant`,
  sql`DELETE FROM holdfast_process_lease`,
  sql`DELETE FROM holdfast_process_session_end`,
  sql`DELETE FROM holdfast_session`,
  sql`DELETE FROM holdfast_queue_batch`,
  sql`DELETE FROM holdfast_queue_item`,
];

/** What a draft says besides the name it is made under. */
export function termsOf({ source, target }: SubscriptionTerms): SubscriptionTerms {
  return { source, target };
}

/** One process's view; `onRead` runs after each read, before its answer is seen. */
export function side(
  database: Database,
  clock: CountingClock,
  onRead: () => void = () => undefined,
): Side {
  const calls = new Calls(database, onRead);
  return {
    database: calls.database,
    schedules: schedules(calls.database, { clock }),
    triggers: triggers(calls.database, { clock }),
    sessions: sessions(calls.database, { clock }),
    processes: processes(calls.database, { clock }),
    quiet: () => calls.quiet(),
  };
}

/** Knows how many calls are under way. */
class Calls {
  readonly database: Database;
  #open = 0;

  constructor(database: Database, onRead: () => void) {
    const counted = async (answer: Promise<unknown>): Promise<unknown> => {
      this.#open += 1;
      try {
        return await answer;
      } finally {
        this.#open -= 1;
      }
    };
    const own: Readonly<Record<string | symbol, unknown>> = {
      read: (...call: Parameters<Database["read"]>) =>
        counted(database.read(...call).finally(onRead)),
      write: (...call: Parameters<Database["write"]>) => counted(database.write(...call)),
      pause: () => counted(database.pause()),
    };
    this.database = new Proxy(database, {
      get(target, name) {
        const found: unknown = own[name] ?? Reflect.get(target, name, target);
        return typeof found === "function" ? (found.bind(target) as unknown) : found;
      },
    });
  }

  async quiet(): Promise<void> {
    for (let idle = 0; idle < 3; idle += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#open > 0) idle = -1;
    }
  }
}

/** A side whose calls to change something wait so long for their turn. */
export function lateSide({ database }: Side, clock: CountingClock, waitMs: number): Side {
  const late = new Proxy(database, {
    get(target, name) {
      if (name === "write") clock.advance(waitMs);
      return Reflect.get(target, name, target) as unknown;
    },
  });
  return side(late, clock);
}

/** Fires by writing down the instant. */
export function* noteInstant({ name, instant, at }: Parameters<FireSchedule>[0]): Tx<void> {
  yield* run(sql`
    INSERT INTO fired (name, instant, at) VALUES (${name}, ${instant}, ${at})`);
}

/** The instants that were fired, of one schedule or of all, in order. */
export async function fired({ database }: Side, name?: string): Promise<readonly number[]> {
  const found = await database.read("fired", () =>
    rows<{ readonly name: string; readonly instant: number }>(
      sql`SELECT name, instant FROM fired ORDER BY instant, name`,
    ),
  );
  return found
    .filter((each) => name === undefined || each.name === name)
    .map(({ instant }) => instant);
}

/** Everything that schedules have stored. */
export function storedSchedules({ database }: Side): Promise<unknown> {
  return database.read("stored", () => rows(sql`SELECT * FROM holdfast_schedule ORDER BY key`));
}

/** Runs a body while schedulers run on these sides. */
export async function whileRunning(
  sides: readonly Side[],
  body: () => Promise<void>,
  options: Parameters<Schedules["run"]>[1] = {},
): Promise<void> {
  const running = sides.map((each): Scheduler =>
    each.schedules.run({ test: noteInstant }, options),
  );
  try {
    for (const each of sides) await each.quiet();
    await body();
  } finally {
    for (const each of running) await each.close();
  }
}

/** Everything that triggers and the processes they start have stored. */
export function storedTriggers({ database }: Side): Promise<unknown> {
  return database.read("stored", function* () {
    const all: unknown[] = [];
    for (const table of dumped) all.push(yield* rows(table));
    return all;
  });
}

const dumped: readonly Statement[] = [
  sql`SELECT * FROM holdfast_schedule ORDER BY key`,
  sql`SELECT * FROM holdfast_trigger_subscription ORDER BY key`,
  sql`SELECT * FROM holdfast_trigger_occurrence ORDER BY key`,
  sql`SELECT * FROM holdfast_trigger_delivery ORDER BY occurrence, subscription`,
  sql`SELECT * FROM holdfast_process ORDER BY key`,
  sql`SELECT key, process, sequence, type FROM holdfast_process_event ORDER BY key`,
  sql`SELECT * FROM holdfast_process_grant ORDER BY process, session`,
];

/** The ids of all processes, in order. */
export async function processIds({ database }: Side): Promise<readonly string[]> {
  const found = await database.read("processes", () =>
    rows<{ readonly id: string }>(sql`SELECT id FROM holdfast_process ORDER BY key`),
  );
  return found.map(({ id }) => id);
}

/** Whoever listens to it. */
export const webhook = { type: "webhook", key: "github" } as const;

/** The keys of the subscriptions on a page that has no damaged ones. */
export async function keysOf(
  { triggers: store }: Side,
  options: Parameters<Side["triggers"]["list"]>[0],
): Promise<string> {
  const { items, damaged } = await store.list(options);
  if (damaged.length > 0) throw new Error("Something is damaged.");
  return items.map(({ key, registrant }) => `${registrant?.id ?? "host"}/${key}`).join(" ");
}
