import { afterAll } from "vitest";
import type { Clock } from "../../src/model/time/clock.ts";
import { rows, run } from "../../src/sql/operation.ts";
import type { Tx } from "../../src/sql/operation.ts";
import { spelled } from "../../src/sql/statement.ts";
import type { Statement } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";
import { rememberPayloadMark } from "../../src/stores/payload-seal.ts";
import type { Backend, Place, PlaceOptions } from "./backend.ts";
import { ownTableNames } from "../fixtures/schema.ts";

/**
 * The same backend, whose places are used again: opening a database takes
 * longer than most tests of what is in it. A place that a test has left as it
 * was found (one open database, no shell) is emptied, tables of the app
 * included, and serves the next one; any other is removed as usual. A test that
 * alters our tables closes the database.
 */
export function sharingPlaces(backend: Backend): Backend {
  const spares = new Map<string, Spare>();
  afterAll(async () => {
    for (const spare of spares.values()) await spare.place.dispose();
  });
  return {
    ...backend,
    place: () => Promise.resolve(borrowed(backend, spares)),
  };
}

interface Spare {
  readonly place: Place;
  readonly database: Database;
  /** Follows the clock of the test that uses the place now. */
  readonly time: Time | undefined;
}

type Time = Clock & { current: Clock };

function borrowed(backend: Backend, spares: Map<string, Spare>): Place {
  let lent: { readonly kind: string; readonly spare: Spare } | undefined;
  let own: Promise<Place> | undefined;
  let isLeftAsFound = true;
  const place = (): Promise<Place> => (own ??= (backend.usedPlace ?? backend.place)());

  return {
    async open(options: PlaceOptions = {}) {
      const kind = kindOf(options);
      if (lent !== undefined || own !== undefined || kind === undefined) {
        isLeftAsFound = false;
        return (await place()).open(options);
      }
      const spare = spares.get(kind) ?? (await newSpare(place, options));
      spares.delete(kind);
      own = Promise.resolve(spare.place);
      lent = { kind, spare };
      if (spare.time && options.clock) spare.time.current = options.clock;
      return spare.database;
    },
    async shell(...statements) {
      isLeftAsFound = false;
      return (await place()).shell(...statements);
    },
    async dispose() {
      if (own === undefined) return;
      if (
        lent !== undefined &&
        isLeftAsFound &&
        !spares.has(lent.kind) &&
        (await isEmptied(lent.spare.database))
      )
        spares.set(lent.kind, lent.spare);
      else await (await own).dispose();
    },
  };
}

/** Databases opened alike can stand in for each other. */
function kindOf(options: PlaceOptions): string | undefined {
  if (options.queueCalls !== undefined) return undefined;
  return `${options.clock !== undefined} ${options.isWithoutPoll === true}`;
}

async function newSpare(
  place: () => Promise<Place>,
  { clock, ...options }: PlaceOptions,
): Promise<Spare> {
  const time = clock && following(clock);
  const opened = await place();
  const database = await opened.open({
    ...options,
    ...(time && { clock: time }),
  });
  return { place: opened, database, time };
}

function following(clock: Clock): Time {
  return {
    current: clock,
    now() {
      return this.current.now();
    },
    wakeAt(instant, call) {
      return this.current.wakeAt(instant, call);
    },
  };
}

/** False when the test has closed it, or left something that cannot be emptied. */
async function isEmptied(database: Database): Promise<boolean> {
  try {
    await database.write("empty", empty, { isolation: "readCommitted" });
    // The database stays open and would remember the codec of rows that are gone.
    rememberPayloadMark(database, undefined);
    return true;
  } catch {
    return false;
  }
}

/** Asks first what there is to empty: a round trip for each table adds up. */
function* empty(): Tx<void> {
  const dirty = yield* rows<{ readonly name: string }>(dirtyTables);
  for (const { name } of dirty)
    yield* run(said(name.startsWith("holdfast_") ? `DELETE FROM ${name}` : `DROP TABLE ${name}`));
}

function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}

/** Whatever a test may leave behind: owners and ticks belong to the database that stays open. */
const ours = ownTableNames.filter((name) => name !== "holdfast_owner" && name !== "holdfast_tick");

const oursWithRows = ours
  .map((name) => `SELECT '${name}' AS name WHERE EXISTS (SELECT 1 FROM ${name})`)
  .join(" UNION ALL ");

/** The names of our tables with rows in them, and of all tables of the app. */
const dirtyTables: Statement = spelled({
  sqlite: `${oursWithRows} UNION ALL SELECT name FROM sqlite_schema
    WHERE type = 'table' AND name NOT LIKE 'holdfast%' AND name NOT LIKE 'sqlite%'`,
  postgres: `${oursWithRows} UNION ALL SELECT tablename FROM pg_tables
    WHERE schemaname = current_schema() AND NOT starts_with(tablename, 'holdfast_')`,
});
