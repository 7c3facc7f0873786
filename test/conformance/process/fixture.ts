import { manualClock } from "../../../src/model/time/clock.ts";
import type { ManualClock } from "../../../src/model/time/clock.ts";
import { rows, run, type Tx, sql, type Statement, type Database } from "../../../src/kernel.ts";
import { executions, type Executions } from "../../../src/executions.ts";
import { processes, type Processes } from "../../../src/processes.ts";
import { queue, type Queue, sessions, type Sessions } from "../../../src/sessions.ts";
import { rememberPayloadMark } from "../../../src/stores/payload-seal.ts";
import { Faults } from "../lease/leased-sessions.ts";
import type { Backend, Place } from "../backend.ts";
import { pastChecks } from "../past-checks.ts";

/** The instant at which every test of the registry begins. */
const T0 = 1_000_000;

/** An open database with a process registry on a clock that the test moves, and session "s". */
export interface ProcessFixture {
  readonly place: Place;
  readonly database: Database;
  readonly faults: Faults;
  readonly clock: ManualClock;
  readonly store: Processes;
  readonly sessions: Sessions;
  readonly queue: Queue;
  readonly executions: Executions;
}

/**
 * A test body with a registry that has nothing in it. All tests of a backend
 * share one database, which is emptied before each.
 */
export function onProcesses(
  backend: Backend,
  body: (fixture: ProcessFixture) => Promise<void>,
): () => Promise<void> {
  return async () => {
    const opened = shared.get(backend) ?? opening(backend);
    shared.set(backend, opened);
    const { place, database } = await opened;
    await database.write("empty", function* () {
      for (const table of emptied) yield* run(table);
    });
    // Another test's codec goes with its rows.
    rememberPayloadMark(database, undefined);
    const fixture = fixtureOf(place, database, manualClock(T0));
    await fixture.sessions.create("s");
    await body(fixture);
  };
}

export function fixtureOf(place: Place, opened: Database, clock: ManualClock): ProcessFixture {
  const faults = new Faults(opened);
  const { database } = faults;
  const environment = { clock };
  return {
    place,
    database,
    faults,
    clock,
    store: processes(database, environment),
    sessions: sessions(database, environment),
    queue: queue(database, environment),
    executions: executions(database, environment),
  };
}

interface Opened {
  readonly place: Place;
  readonly database: Database;
}

const shared = new WeakMap<Backend, Promise<Opened>>();

async function opening(backend: Backend): Promise<Opened> {
  const place = await backend.place();
  return { place, database: await place.open({ isWithoutPoll: true }) };
}

/** Closes and removes what the tests of a backend have shared. */
export async function disposeProcesses(backend: Backend): Promise<void> {
  const opened = await shared.get(backend);
  shared.delete(backend);
  await opened?.place.dispose();
}

const emptied: readonly Statement[] = [
  sql`DELETE FROM holdfast_process`,
  sql`DELETE FROM holdfast_process_event`,
  sql`DELETE FROM holdfast_process_grant`,
  sql`DELETE FROM holdfast_process_lease`,
  sql`DELETE FROM holdfast_process_session_end`,
  sql`DELETE FROM holdfast_queue_batch`,
  sql`DELETE FROM holdfast_queue_item`,
  sql`DELETE FROM holdfast_queue_completed`,
  sql`DELETE FROM holdfast_queue_consumed`,
  sql`DELETE FROM holdfast_queue_wake_mark`,
  sql`DELETE FROM holdfast_effect`,
  sql`DELETE FROM holdfast_session`,
  sql`DELETE FROM holdfast_session_lease`,
  sql`DELETE FROM holdfast_execution`,
  sql`DELETE FROM holdfast_execution_event`,
  sql`DELETE FROM holdfast_execution_response`,
  sql`DELETE FROM holdfast_execution_delay`,
  sql`DELETE FROM holdfast_payload_codec`,
];

function* everything(): Tx<unknown> {
  return [
    yield* rows(sql`SELECT * FROM holdfast_process ORDER BY key`),
    yield* rows(sql`SELECT * FROM holdfast_process_event ORDER BY key`),
    yield* rows(
      sql`SELECT * FROM holdfast_process_grant ORDER BY process, session, generation, frame`,
    ),
    yield* rows(sql`SELECT * FROM holdfast_process_lease ORDER BY process`),
    yield* rows(sql`SELECT * FROM holdfast_queue_batch ORDER BY key`),
    yield* rows(sql`SELECT * FROM holdfast_queue_item ORDER BY key`),
    yield* rows(sql`SELECT * FROM holdfast_queue_wake_mark ORDER BY session, process`),
    yield* rows(sql`SELECT * FROM holdfast_execution ORDER BY key`),
    yield* rows(sql`SELECT * FROM holdfast_execution_event ORDER BY seq`),
  ];
}

/** Everything that a command of the registry could have changed, for tests that nothing did. */
export function stored(database: Database): Promise<unknown> {
  return database.read("stored", everything);
}

/** Changes rows as somebody with a database shell would. */
export async function altered(
  database: Database,
  ...statements: readonly Statement[]
): Promise<void> {
  await database.write("altered", () => pastChecks(database, ...statements));
}

/** The statement at which a transaction is made to fail. */
export class Fault extends Error {}

/** A transaction that fails before its n-th statement, from 0 on. */
export function* faulty<T>(tx: Tx<T>, n: number): Tx<T> {
  let asked = 0;
  let step = tx.next();
  while (step.done !== true) {
    if (step.value.statement !== undefined) {
      if (asked === n) tx.throw(new Fault("Made to fail."));
      asked += 1;
    }
    step = tx.next(yield step.value);
  }
  return step.value;
}
