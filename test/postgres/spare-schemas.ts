import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { migrations } from "../../src/sql/migrations.generated.ts";

/**
 * Schemas that tests have used and left as they were made, under names that
 * are this run's alone: making all tables takes longer than most tests of what
 * is in them. They go from process to process, since renaming one is taking it.
 */
export const sharedSpares: string | undefined = process.env["HOLDFAST_TEST_SPARES"];

/** The server of this run; spares are there and nowhere else. */
const url = process.env["HOLDFAST_TEST_POSTGRES_URL"] ?? "";

/** Where the tables of a test's own go: not beside ours, so that it would show if ours were looked for there. */
export function appSchemaOf(schema: string): string {
  return `${schema}_app`;
}

/** Makes it before anything is opened, unless it is there. */
export async function makeAppSchema(schema: string, server: string = url): Promise<void> {
  const made = `CREATE SCHEMA IF NOT EXISTS ${appSchemaOf(schema)}`;
  if (server === url) return void (await client().unsafe(made));
  const maker = postgres(server, { max: 1, onnotice: () => undefined });
  await maker.unsafe(made);
  await maker.end();
}

let kept: postgres.Sql | undefined;

/** One session for all of a process, given up while nobody needs it. */
function client(): postgres.Sql {
  kept ??= postgres(url, {
    max: 1,
    idle_timeout: 1,
    onnotice: () => undefined,
    connection: { lock_timeout: 1000 },
  });
  return kept;
}

/** Gives a schema this name that has our tables without content, if there is a spare one. */
export async function takeSpare(schema: string, prefix = sharedSpares): Promise<void> {
  if (prefix === undefined) return;
  const spares = await client()<{ readonly name: string }[]>`
    SELECT nspname AS name FROM pg_namespace WHERE starts_with(nspname, ${prefix})`;
  for (const { name } of spares) {
    try {
      await client().unsafe(`ALTER SCHEMA ${name} RENAME TO ${schema}`);
      return;
    } catch {
      // Somebody else was faster.
    }
  }
}

/** Removes a schema that nobody has open any more, or empties it for the next test. */
export async function giveBack(schema: string, prefix = sharedSpares): Promise<void> {
  const gone = `DROP SCHEMA IF EXISTS ${appSchemaOf(schema)} CASCADE`;
  if (prefix !== undefined && (await isAsMade(schema).catch(() => false))) {
    try {
      const spare = `${prefix}${randomBytes(6).toString("hex")}`;
      await client().unsafe(
        `BEGIN; ${gone}; ${emptied(schema)}; ALTER SCHEMA ${schema} RENAME TO ${spare}; COMMIT`,
      );
      return;
    } catch {
      await client().unsafe("ROLLBACK");
    }
  }
  await client().unsafe(`${gone}; DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
}

/** Removes what is left at the end of a run. */
export async function removeSpares(server: string, names: string): Promise<void> {
  const cleaner = postgres(server, { max: 1, onnotice: () => undefined });
  const spares = await cleaner<{ readonly name: string }[]>`
    SELECT nspname AS name FROM pg_namespace WHERE starts_with(nspname, ${names})`;
  for (const { name } of spares) await cleaner.unsafe(`DROP SCHEMA ${name} CASCADE`);
  await cleaner.end();
}

const ddl = migrations.map((migration) => migration.postgres).join("\n");
const tables = namesAfter(/^CREATE TABLE (\w+)/gm);
const relations = [
  ...tables,
  "holdfast_migration",
  ...namesAfter(/^CREATE (?:UNIQUE )?INDEX (\w+)/gm),
];

function namesAfter(words: RegExp): readonly string[] {
  return [...ddl.matchAll(words)].map(([, name = ""]) => name);
}

/**
 * Whether our tables and indexes are the ones that one transaction has made,
 * all of them, and neither altered nor analyzed nor grown since; and whether
 * there is nothing else beside them.
 */
async function isAsMade(schema: string): Promise<boolean> {
  const [found] = await client()<{ readonly is_as_made: boolean }[]>`
    WITH relation AS (
      SELECT oid, relname, relkind, reltuples, xmin::text AS made FROM pg_class
      WHERE relnamespace = ${schema}::regnamespace AND starts_with(relname, 'holdfast_')
    ), parts AS (
      SELECT made FROM relation
      UNION SELECT a.xmin::text FROM pg_attribute a JOIN relation r ON a.attrelid = r.oid
      UNION SELECT i.xmin::text FROM pg_index i JOIN relation r ON i.indrelid = r.oid
      UNION SELECT c.xmin::text FROM pg_constraint c JOIN relation r ON c.conrelid = r.oid
    )
    SELECT (SELECT count(*) FROM parts) = 1
      AND (SELECT count(*) FROM relation WHERE relname = ANY (${relations})) = ${relations.length}
      AND (SELECT count(*) FROM relation WHERE relkind = 'r') = ${tables.length + 1}
      AND (SELECT bool_and(reltuples = -1) FROM relation WHERE relkind = 'r')
      AND (SELECT sum(pg_relation_size(oid)) < 4000000 FROM relation)
      AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = ${schema}::regnamespace)
      AND NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = ${schema}::regnamespace
        AND NOT starts_with(relname, 'holdfast_')) AS is_as_made`;
  if (found?.is_as_made !== true) return false;
  const [rows] = await client().unsafe<{ readonly are_as_made: boolean }[]>(
    `SELECT count(*) = ${migrations.length} AND count(DISTINCT m.xmin::text) = 1
       AND (SELECT min(n) = 0 FROM ${schema}.holdfast_tick) AS are_as_made
     FROM ${schema}.holdfast_migration m`,
  );
  return rows?.are_as_made === true;
}

/** One text, hence one round trip. */
function emptied(schema: string): string {
  const deletions = tables
    .filter((table) => table !== "holdfast_tick")
    .map((table) => `DELETE FROM ${schema}.${table}`);
  return `${deletions.join("; ")};
    SELECT setval(oid::regclass, 1, false) FROM pg_class
    WHERE relnamespace = '${schema}'::regnamespace AND relkind = 'S' AND starts_with(relname, 'holdfast_')`;
}
