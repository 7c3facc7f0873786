import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { migrate, schemaNewer, schemaNumber } from "../../sql/migrations.ts";
import { row, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { spelled, sql } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { lockMsMax } from "./session-texts.ts";
import { transact } from "./transaction.ts";

/** Makes the schema and brings its tables up to date, or refuses them, in one transaction. */
export async function prepareSchema(
  connection: Connection,
  schema: string,
  now: number,
): Promise<void> {
  const ending = await transact(
    connection,
    "write",
    {
      name: "migrate",
      start: () => prepared(schema, now),
      change: undefined,
    },
    undefined,
  );
  if (ending.kind !== "committed" && ending.kind !== "rolledBack")
    throw ending.error;
}

/** Why a database that is open may be written to no more, if so. */
export async function newerSchema(
  connection: Connection,
): Promise<HoldfastError | undefined> {
  const { rows } = await connection.query(
    sql`SELECT MAX(number) AS number FROM holdfast_migration`,
  );
  const [found] = rows as readonly { readonly number: number | null }[];
  const newest = found?.number ?? 0;
  return newest > schemaNumber ? schemaNewer(newest, schemaNumber) : undefined;
}

function* prepared(schema: string, now: number): Tx<readonly number[]> {
  yield* lockSchema(schema);
  // Asked first, because IF NOT EXISTS wants the right to create even then.
  const existing = yield* row(
    sql`SELECT 1 AS one FROM pg_namespace WHERE nspname = ${schema}`,
  );
  const creation = `CREATE SCHEMA "${schema}"`;
  if (existing === undefined)
    yield* run(spelled({ sqlite: creation, postgres: creation }));
  // Migrations name tables and indexes without a schema. Until this
  // transaction ends, and no longer: the search path is the app's.
  yield* row(sql`SELECT set_config('search_path', ${`"${schema}"`}, true)`);
  const current = yield* row<{ readonly name: string | null }>(
    sql`SELECT current_schema() AS name`,
  );
  // Postgres skips a schema it may not use, and the tables would land elsewhere.
  if (current?.name !== schema) throw schemaUnusable(schema);
  return yield* migrate({ dialect: "postgres", now, hash: sha256Hex });
}

/**
 * Held until the transaction ends: of any number of processes that open a new
 * database at once one creates and the others find. Each takes a moment, so
 * waiting for many of them is no sign of trouble.
 */
function* lockSchema(schema: string): Tx<void> {
  const [first, second] = lockNumbers(schema);
  yield* row(sql`
    SELECT set_config('lock_timeout', '60000', true),
      pg_advisory_xact_lock(${first}::int4, ${second}::int4)`);
}

/** The same for an app, whose statements then wait for locks no longer than usual. */
export function* lockedForSetUp(schema: string): Tx<void> {
  yield* lockSchema(schema);
  yield* row(
    sql`SELECT set_config('lock_timeout', ${String(lockMsMax)}, true)`,
  );
}

/** An advisory lock is named by two 32-bit numbers; all of the database share them. */
function lockNumbers(schema: string): readonly [number, number] {
  const hash = Buffer.from(sha256Hex(`holdfast schema ${schema}`), "hex");
  return [hash.readInt32BE(0), hash.readInt32BE(4)];
}

function schemaUnusable(schema: string): HoldfastError {
  return new HoldfastError(
    "DATABASE_ACCESS_DENIED",
    `This user may not use schema "${schema}". Grant it with GRANT USAGE, CREATE ON SCHEMA "${schema}" TO …`,
    { schema },
  );
}
