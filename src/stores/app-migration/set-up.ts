import type { Clock } from "../../model/time/clock.ts";
import { HoldfastError, isHoldfastError } from "../../model/errors.ts";
import { excerpt } from "../../model/values/excerpt.ts";
import { checkedText, givenList, givenObject, optionsOf } from "../../model/shape.ts";
import { rows, run, plainOperation, type Tx } from "../../sql/operation.ts";
import { startedBody } from "../../sql/body.ts";
import { sql } from "../../sql/statement.ts";
import type { AppMigration, Database, SetUpReport, WaitOptions } from "../../sql/database.ts";
import { waitNames } from "../given.ts";

/** The parts of a database that `setUp` needs. */
export interface SetUpContext extends Pick<Database, "read" | "write"> {
  readonly clock: Clock;
  /** Admits one process at a time, on databases where a write does not. */
  readonly lock: () => Tx<void>;
}

interface SetUp {
  readonly app: string;
  readonly migrations: readonly AppMigration[];
  readonly now: number;
  readonly lock: () => Tx<void>;
}

const migrationsMax = 10_000;

/**
 * Reads first, so that a database that is set up already needs no write and no lock. Reads again
 * under the lock, since another process may have been faster.
 */
export async function setUp(
  { read, write, clock, lock }: SetUpContext,
  app: string,
  migrations: readonly AppMigration[],
  options?: WaitOptions,
): Promise<SetUpReport> {
  checkedText("The name of an app", app);
  optionsOf(options, waitNames);
  const given = checkedMigrations(migrations);
  const missing = await read("setUp", () => missingMigrations(app, given), options);
  if (missing.length === 0) return { applied: [] };
  const input = { app, migrations: given, now: clock.now(), lock };
  return write(applyMigrations, input, options);
}

const applyMigrations = plainOperation("setUp", {
  key: ({ app }) => app,
  *one({ app, migrations, now, lock }: SetUp): Tx<SetUpReport> {
    yield* lock();
    const missing = yield* missingMigrations(app, migrations);
    let position = migrations.length - missing.length;
    for (const migration of missing) {
      yield* applied(app, migration);
      yield* run(sql`
        INSERT INTO holdfast_app_migration (app, position, name, applied_at)
        VALUES (${app}, ${position}, ${migration.name}, ${now})`);
      position += 1;
    }
    return { applied: missing.map(({ name }) => name) };
  },
});

/**
 * Runs one migration. Its own errors reach the caller unchanged; errors of its statements also name
 * the migration.
 */
function* applied(app: string, { name, up }: AppMigration): Tx<void> {
  try {
    yield* startedBody(`setUp ${name}`, up);
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    throw new HoldfastError(
      error.code,
      `${error.message} Nothing was set up: this was migration ${excerpt(name)} of ${excerpt(app)}.`,
      { ...error.details, app, migration: name },
      error.cause === undefined ? undefined : { cause: error.cause },
    );
  }
}

/**
 * Migrations that are not recorded yet. Older code may open a database that newer code has set up,
 * as happens during a rolling update. Its migrations are then the beginning of the recorded ones.
 */
function* missingMigrations(
  app: string,
  given: readonly AppMigration[],
): Tx<readonly AppMigration[]> {
  const recorded = yield* rows<{ readonly name: string }>(sql`
    SELECT name FROM holdfast_app_migration WHERE app = ${app} ORDER BY position`);
  recorded.slice(0, given.length).forEach(({ name }, index) => {
    const draft = given[index]?.name ?? "";
    if (draft !== name) throw setUpConflict(app, index, name, draft);
  });
  return given.slice(recorded.length);
}

function setUpConflict(app: string, index: number, recorded: string, given: string): HoldfastError {
  return new HoldfastError(
    "SET_UP_CONFLICT",
    `The database records ${excerpt(recorded)} as migration ${index + 1} of ${excerpt(app)}, but the given list has ${excerpt(given)} there. ` +
      "Keep applied migrations in the list, with their order and names, and add new migrations at the end. Nothing was changed.",
    { app, position: index, recorded, given },
  );
}

/**
 * Copies the list, since the caller may change it during the call.
 * @throws HoldfastError `OPTION_INVALID`, `NAME_INVALID`
 */
function checkedMigrations(migrations: readonly AppMigration[]): readonly AppMigration[] {
  const names = new Set<string>();
  // Uses the list's own length: a hole in the list is a missing migration, which map would skip.
  const given = Array.from(givenList("migrations", migrations, migrationsMax));
  return given.map((migration, index) => {
    const place = `migrations[${index}]`;
    const { name, up, ...others } = givenObject(place, migration);
    const [unknown] = Object.keys(others);
    if (unknown !== undefined)
      throw migrationInvalid(
        `${place}.${unknown}`,
        "A migration has `name` and `up`, and nothing else",
      );
    checkedText(`The name of a migration (${place})`, name);
    if (typeof up !== "function")
      throw migrationInvalid(`${place}.up`, "Expected a generator function: write `*up() { … }`");
    if (names.has(name))
      throw migrationInvalid(
        `${place}.name`,
        `Two migrations are called ${excerpt(name)}, but each is applied once by its name`,
      );
    names.add(name);
    // Called as a method, since it may refer to its neighbours by `this`.
    return { name, up: () => up.call(migration) };
  });
}

function migrationInvalid(option: string, why: string): HoldfastError {
  return new HoldfastError("OPTION_INVALID", `${why} (${option}).`, { option });
}
