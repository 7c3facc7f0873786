import { rows, run, sql, type Database } from "../../../../src/kernel.ts";
import {
  awaitEvents,
  type AwaitEvents,
  effects,
  type Effects,
  type EffectScope,
} from "../../../../src/effects.ts";
import { sessions, type Sessions } from "../../../../src/sessions.ts";
import { rememberPayloadMark } from "../../../../src/stores/payload-seal.ts";
import type { Backend, Place } from "../../backend.ts";
import { Faults } from "../../lease/leased-sessions.ts";
import { countingClock } from "../../wait-fixture.ts";
import type { CountingClock } from "../../wait-fixture.ts";

/** A session of its own in a database that the tests of a backend share, at the instant 1,000. */
export interface AwaitFixture {
  readonly place: Place;
  readonly faults: Faults;
  readonly database: Database;
  readonly clock: CountingClock;
  readonly events: AwaitEvents;
  readonly effects: Effects;
  readonly store: Sessions;
  readonly session: string;
  /** Turn "t1" of the session. */
  readonly scope: EffectScope;
}

export type InFixture = (body: (fixture: AwaitFixture) => Promise<void>) => () => Promise<void>;

interface Opened {
  readonly place: Place;
  readonly database: Database;
  tests: number;
}

const shared = new WeakMap<Backend, Promise<Opened>>();

async function opening(backend: Backend): Promise<Opened> {
  const place = await backend.place();
  const database = await place.open({ isWithoutPoll: true });
  return { place, database, tests: 0 };
}

/** Closes and removes what the tests of a backend have shared. */
export async function disposeAwaits(backend: Backend): Promise<void> {
  const opened = await shared.get(backend);
  shared.delete(backend);
  await opened?.place.dispose();
}

/** Wraps the body of a test with a fixture, in which there is nothing but a session. */
export function inAwaitFixture(backend: Backend): InFixture {
  return (body) => async () => {
    const promised = shared.get(backend) ?? opening(backend);
    shared.set(backend, promised);
    const opened = await promised;
    opened.tests += 1;
    await emptied(opened.database);
    await body(await fixtureIn(opened.place, opened.database, opened.tests));
  };
}

async function fixtureIn(place: Place, database: Database, number: number): Promise<AwaitFixture> {
  const session = `s${number}`;
  await sessions(database).create(session);
  return fixtureOf(place, database, countingClock(1_000), session);
}

function fixtureOf(
  place: Place,
  opened: Database,
  clock: CountingClock,
  session: string,
): AwaitFixture {
  const faults = new Faults(opened);
  const { database } = faults;
  return {
    place,
    faults,
    database,
    clock,
    events: awaitEvents(database, { clock }),
    effects: effects(database, { clock }),
    store: sessions(database, { clock }),
    session,
    scope: { session, kind: "turn", id: "t1" },
  };
}

/** The same database as another process would have it. */
export async function elsewhere(fixture: AwaitFixture): Promise<AwaitFixture> {
  const { place, clock, session } = fixture;
  const opened = await place.open({ isWithoutPoll: true });
  return fixtureOf(place, opened, clock, session);
}

async function emptied(database: Database): Promise<void> {
  await database.write("empty", function* () {
    yield* run(sql`DELETE FROM holdfast_await_event`);
    yield* run(sql`DELETE FROM holdfast_await_secret`);
    yield* run(sql`DELETE FROM holdfast_payload_codec`);
  });
  // Another test's codec goes with its rows.
  rememberPayloadMark(database, undefined);
}

/** Everything that await-events have stored, for tests that nothing changed. */
export function storedAwaits(database: Database): Promise<readonly object[]> {
  return database.read("storedAwaits", function* () {
    return [
      ...(yield* rows(sql`SELECT * FROM holdfast_await_event ORDER BY key`)),
      ...(yield* rows(sql`SELECT * FROM holdfast_await_secret ORDER BY id`)),
    ];
  });
}
