import { rows, run, sql, type Statement, type Database } from "../../../src/kernel.ts";
import { type EffectClaim, effects, type Effects, type EffectScope } from "../../../src/effects.ts";
import type { EffectOptions } from "../../../src/stores/effect/context.ts";
import { rejection } from "../backend.ts";
import type { Backend, Place } from "../backend.ts";
import { createSession, Faults } from "../lease/leased-sessions.ts";
import { countingClock } from "../wait-fixture.ts";
import type { CountingClock } from "../wait-fixture.ts";
import { pastChecks } from "../past-checks.ts";

/** Effects as the tests of them need them. */
export interface EffectFixture {
  readonly place: Place;
  readonly faults: Faults;
  readonly database: Database;
  readonly clock: CountingClock;
  readonly effects: Effects;
  /** The same with other options. */
  readonly effectsIn: (options: EffectOptions) => Effects;
}

export type InFixture = (body: (fixture: EffectFixture) => Promise<void>) => () => Promise<void>;

/** A turn of session "s". */
export const turn: EffectScope = { kind: "turn", session: "s", id: "t1" };

export const ask = { kind: "llm", input: { prompt: "hello" } } as const;

type Opened = Pick<EffectFixture, "place"> & { readonly database: Database };

const shared = new WeakMap<Backend, Promise<Opened>>();

/**
 * A database with session "s" and no effects, at the instant 1,000. All tests
 * of a backend share one, which is emptied before each: opening one takes
 * longer than most of them.
 */
export function inEffects(backend: Backend): InFixture {
  return (body) => async () => {
    const opened = shared.get(backend) ?? opening(backend);
    shared.set(backend, opened);
    const { place, database } = await opened;
    await database.write("empty", function* () {
      yield* run(sql`DELETE FROM holdfast_effect`);
      yield* run(sql`DELETE FROM holdfast_process_session_end`);
      yield* run(sql`DELETE FROM holdfast_session`);
    });
    await createSession(database, "s");
    await body(fixtureOf(place, database, countingClock(1_000)));
  };
}

async function opening(backend: Backend): Promise<Opened> {
  const place = await backend.place();
  return { place, database: await place.open({ isWithoutPoll: true }) };
}

/** Closes and removes what the tests of a backend have shared. */
export async function disposeEffects(backend: Backend): Promise<void> {
  const opened = await shared.get(backend);
  shared.delete(backend);
  await opened?.place.dispose();
}

function fixtureOf(place: Place, opened: Database, clock: CountingClock): EffectFixture {
  const faults = new Faults(opened);
  const { database } = faults;
  const effectsIn: EffectFixture["effectsIn"] = (options) =>
    effects(database, { clock, ...options });
  return {
    place,
    faults,
    database,
    clock,
    effectsIn,
    effects: effectsIn({}),
  };
}

/** The claim of an effect that nobody else is at. */
export async function held(
  { effects: store }: Pick<EffectFixture, "effects">,
  key: string,
  lease = 30_000,
): Promise<EffectClaim> {
  const outcome = await store.claim(turn, key, ask, { lease });
  if (outcome.kind === "claimed") return outcome.claim;
  throw new Error(`The effect is ${outcome.kind}.`);
}

/** Every effect as it is stored, for tests that nothing changed. */
export function storedEffects(
  database: Database,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return database.read("stored", () => rows(sql`SELECT * FROM holdfast_effect ORDER BY key`));
}

/** Changes all effects past Holdfast: `UPDATE holdfast_effect SET …`. */
export async function meddle(
  { database }: Pick<EffectFixture, "database">,
  statement: Statement,
): Promise<void> {
  await database.write("meddle", () => pastChecks(database, statement));
}

/** The code of the error that a call must end with, having written nothing. */
export async function refused(
  { database }: Pick<EffectFixture, "database">,
  call: () => Promise<unknown>,
): Promise<Awaited<ReturnType<typeof rejection>>> {
  const before = JSON.stringify(await storedEffects(database));
  const error = await rejection(call());
  if (JSON.stringify(await storedEffects(database)) !== before)
    throw new Error(`The call was refused (${error.code}) but left something.`);
  return error;
}

/** A function whose calls are counted, and which ends when it is told to. */
export class Hand {
  calls = 0;
  signal: AbortSignal | undefined;
  #end: ((value: unknown) => void) | undefined;
  #fail: ((error: unknown) => void) | undefined;

  readonly run = (context: { readonly signal: AbortSignal }): Promise<unknown> => {
    this.calls += 1;
    this.signal = context.signal;
    return new Promise((resolve, reject) => {
      this.#end = resolve;
      this.#fail = reject;
    });
  };

  end(value: unknown): void {
    this.#end?.(value);
  }

  fail(error: unknown): void {
    this.#fail?.(error);
  }
}

/** A function that must not be run. */
export function never(): never {
  throw new Error("It was run.");
}
