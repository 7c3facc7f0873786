import { HoldfastError } from "../model/errors.ts";
import { integer, ownColumns, ownTables, strict, text } from "./dialect.ts";
import type { Dialect } from "./dialect.ts";
import { migrations as embedded } from "./migrations.generated.ts";
import { refuseMoved } from "./move-mark.ts";
import { row, rows, run } from "./operation.ts";
import type { Tx } from "./operation.ts";
import { postgresScript, spelled, sql } from "./statement.ts";

/** One step of the schema, written for both databases. Forward only. */
export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sqlite: string;
  readonly postgres: string;
  readonly checksum: { readonly sqlite: string; readonly postgres: string };
}

export interface MigrationContext {
  readonly dialect: Dialect;
  readonly now: number;
  /**
   * True for the move itself and for readers. Other callers are refused while a database is being
   * moved.
   */
  readonly mayBeMoved?: boolean;
  /** A stable text hash (SHA-256 in hex). Hashing lives outside this layer. */
  readonly hash: (text: string) => string;
  readonly migrations?: readonly Migration[];
}

interface Applied {
  readonly number: number;
  readonly name: string;
  readonly checksum: string;
  readonly schema_hash: string;
}

/** The newest schema that this version of the package knows. */
export const schemaNumber: number = embedded.length;

/**
 * Brings the schema up to date, or refuses it. It runs inside one write transaction that takes its
 * lock with the first statement. So any number of processes may open a new database at once: one
 * creates the schema, the others find it.
 * @returns the numbers of the migrations applied now.
 */
export function* migrate(context: MigrationContext): Tx<readonly number[]> {
  const known = context.migrations ?? embedded;
  const tables = yield* tableNames();
  const applied = yield* verify(context, tables, known);
  yield* refuseIfMoved(context, tables);
  if (tables.length === 0) yield* createMigrationTable();
  const pending = known.slice(applied.length);
  for (const migration of pending) yield* apply(migration, context.dialect);
  yield* record(pending, context);
  return pending.map((migration) => migration.number);
}

/** Postgres is a network round trip away, so there a migration is sent as one text. */
function* apply(migration: Migration, dialect: Dialect): Tx<void> {
  if (dialect === "postgres") return void (yield* run(postgresScript(migration.postgres)));
  for (const statement of statementsOf(migration.sqlite))
    yield* run(spelled({ sqlite: statement, postgres: statement }));
}

/**
 * Migrations applied together share the fingerprint of the last one, since no process saw the
 * schemas in between.
 */
function* record(
  pending: readonly Migration[],
  { dialect, hash, now }: MigrationContext,
): Tx<void> {
  if (pending.length === 0) return;
  const schemaHash = hash(yield* fingerprint());
  const values = pending
    .map(
      ({ number, name, checksum }) =>
        sql`(${number}, ${name}, ${checksum[dialect]}, ${schemaHash}, ${now})`,
    )
    .reduce((all, each) => sql`${all}, ${each}`);
  yield* run(sql`
    INSERT INTO holdfast_migration (number, name, checksum, schema_hash, applied_at)
    VALUES ${values}`);
}

/**
 * Refuses a newer, altered or orphaned schema, a moved database unless that is allowed, and an
 * older schema if it must be current. Only reads.
 * @returns the number of applied migrations.
 */
export function* refuseForeignSchema(context: MigrationContext, mustBeCurrent = false): Tx<number> {
  const known = context.migrations ?? embedded;
  const tables = yield* tableNames();
  const applied = yield* verify(context, tables, known);
  yield* refuseIfMoved(context, tables);
  if (mustBeCurrent && applied.length < known.length)
    throw schemaOutdated(applied.length, known.length);
  return applied.length;
}

function* refuseIfMoved({ mayBeMoved }: MigrationContext, tables: readonly string[]): Tx<void> {
  if (mayBeMoved !== true && tables.includes("holdfast_move")) yield* refuseMoved();
}

function schemaOutdated(found: number, expected: number): HoldfastError {
  return new HoldfastError(
    "SCHEMA_OUTDATED",
    found === 0
      ? "The database has no holdfast tables, and this open does not create them. Check that it is the right database, or open it once for writing, as openHoldfast does."
      : `The database has schema ${found}, this version of holdfast reads schema ${expected}, and this open does not migrate; a read-only open never does. ` +
          "Open it once for writing, or use the version of holdfast that the app uses.",
    { found, expected },
  );
}

/** Returns the newest migration in the database. It is cheap enough to read between batches. */
export function* appliedSchemaNumber(): Tx<number> {
  const newest = yield* row<{ readonly number: number | null }>(
    sql`SELECT MAX(number) AS number FROM holdfast_migration`,
  );
  return newest?.number ?? 0;
}

export function schemaNewer(found: number, expected: number): HoldfastError {
  return new HoldfastError(
    "SCHEMA_NEWER",
    `The database has schema ${found}, this version of holdfast knows schema ${expected}. ` +
      "A newer version has migrated it: upgrade holdfast in this process. Nothing was changed.",
    { found, expected },
  );
}

function* verify(
  context: MigrationContext,
  tables: readonly string[],
  known: readonly Migration[],
): Tx<readonly Applied[]> {
  if (tables.length === 0) return [];
  if (!tables.includes("holdfast_migration")) throw orphaned(tables);
  const applied = yield* rows<Applied>(sql`
    SELECT number, name, checksum, schema_hash FROM holdfast_migration ORDER BY number`);
  const newest = applied.at(-1);
  if (newest !== undefined && newest.number > known.length)
    throw schemaNewer(newest.number, known.length);
  applied.forEach((found, index) => {
    const ours = known[index];
    if (ours?.number !== found.number || ours.checksum[context.dialect] !== found.checksum)
      throw altered(
        `migration ${found.number} ("${found.name}") differs from the one in this version of holdfast`,
        { migration: found.number },
      );
  });
  if (newest !== undefined && context.hash(yield* fingerprint()) !== newest.schema_hash)
    throw altered(
      "its holdfast_* tables or indexes differ from the ones that the migrations made",
      {
        migration: newest.number,
      },
    );
  return applied;
}

function* tableNames(): Tx<readonly string[]> {
  const found = yield* rows<{ readonly name: string }>(ownTables);
  return found.map((table) => table.name);
}

/**
 * The shape of Holdfast's tables as text: columns with type and nullability, and Holdfast's
 * indexes. It uses structured facts, because the database's own rendering of DDL may change with
 * the server's version.
 */
function* fingerprint(): Tx<string> {
  const facts = yield* rows<{ readonly fact: string }>(ownColumns);
  return facts.map((found) => found.fact).join("\n");
}

function* createMigrationTable(): Tx<void> {
  yield* run(sql`
    CREATE TABLE holdfast_migration (
      number ${integer} PRIMARY KEY,
      name ${text} NOT NULL,
      checksum ${text} NOT NULL,
      schema_hash ${text} NOT NULL,
      applied_at ${integer} NOT NULL
    ) ${strict}`);
}

/** Migrations contain no triggers or functions, so a `;` at the end of a line ends a statement. */
function statementsOf(migration: string): readonly string[] {
  return migration
    .replaceAll(/^\s*--.*$/gm, "")
    .split(/;\s*$/m)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}

function orphaned(tables: readonly string[]): HoldfastError {
  return new HoldfastError(
    "SCHEMA_ORPHANED",
    `The database has ${tables.join(", ")} but no holdfast_migration table, so its schema is unknown. ` +
      "Restore holdfast_migration from a backup, or drop these tables if their content is not needed. Nothing was changed.",
    { tables },
  );
}

function altered(what: string, details: Readonly<Record<string, unknown>>): HoldfastError {
  return new HoldfastError(
    "SCHEMA_ALTERED",
    `The schema was altered: ${what}. ` +
      "Undo the change or restore the database from a backup; your own tables may be in the same database under other names. Nothing was changed.",
    details,
  );
}
