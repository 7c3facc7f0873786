import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { migrate, refuseForeignSchema, schemaNewer, schemaNumber } from "../../sql/migrations.ts";
import { row, run } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import type { PayloadMark } from "../../model/values/payload-mark.ts";
import { migrations } from "../../sql/migrations.generated.ts";
import { ownColumns } from "../../sql/dialect.ts";
import { spelled, sql } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import type { Connection } from "./connection.ts";
import { lockMsMax } from "./session-texts.ts";
import { transact } from "./transaction.ts";

/** The findings of one look at an existing database. */
export interface Found {
  /**
   * True when the tables are exactly those of this version, so there is nothing to lock and nothing
   * to do.
   */
  readonly isCurrent: boolean;
  readonly fsync: string | null;
  /** Undefined when no value was written yet. */
  readonly payloadMark: PayloadMark | undefined;
}

/** Looks at the schema in one round trip; undefined when our tables are missing or unreadable. */
export async function lookAtSchema(
  connection: Connection,
  schema: string,
): Promise<Found | undefined> {
  try {
    const [found] = await connection.ask(lookText(schema));
    const { fsync, facts, applied, codec, sample } = found as LookRow;
    const payloadMark = sample === null ? undefined : { codec, sample };
    return { isCurrent: isCurrent(applied, facts), fsync, payloadMark };
  } catch (error) {
    if (connection.isLost) throw error;
    return undefined;
  }
}

interface LookRow {
  readonly fsync: string | null;
  readonly facts: string | null;
  readonly applied: string | null;
  readonly codec: string | null;
  readonly sample: string | null;
}

function lookText(schema: string): string {
  const facts = ownColumns.template.postgres.replaceAll("current_schema()", `'${schema}'`);
  return `SELECT current_setting('fsync', true) AS fsync,
    array_to_string(ARRAY(${facts}), E'\\n') AS facts,
    (SELECT string_agg(number || ' ' || checksum || ' ' || schema_hash, E'\\n' ORDER BY number)
      FROM "${schema}".holdfast_migration) AS applied,
    p.codec, p.sample FROM (SELECT 1) one LEFT JOIN "${schema}".holdfast_payload_codec p ON p.id = 1`;
}

/** True when the schema is current. The transaction that holds the lock judges any difference. */
function isCurrent(applied: string | null, facts: string | null): boolean {
  const lines = applied?.split("\n") ?? [];
  const schemaHash = sha256Hex(facts ?? "");
  return (
    lines.length === migrations.length &&
    migrations.every(({ number, checksum }, index) =>
      lines[index]?.startsWith(`${number} ${checksum.postgres} `),
    ) &&
    lines.at(-1)?.endsWith(` ${schemaHash}`) === true
  );
}

/** Creates the schema and brings its tables up to date, or refuses them, in one transaction. */
export async function prepareSchema(
  connection: Connection,
  schema: string,
  now: number,
): Promise<void> {
  await settle(connection, "migrate", () => prepared(schema, now));
}

/** Refuses tables that are not exactly those of this version, without migrating. */
export async function requireSchema(
  connection: Connection,
  schema: string,
  now: number,
): Promise<void> {
  await settle(connection, "verifySchema", function* () {
    yield* row(said(`SELECT set_config('search_path', '"${schema}"', true)`));
    const context = { dialect: "postgres", now, hash: sha256Hex } as const;
    yield* refuseForeignSchema(context, true);
  });
}

async function settle(
  connection: Connection,
  name: string,
  start: () => Tx<unknown>,
): Promise<void> {
  const body = { name, start, change: undefined };
  const ending = await transact(connection, "write", body, undefined);
  if (ending.kind !== "committed" && ending.kind !== "rolledBack") throw ending.error;
}

/** The reason why an open database no longer accepts writes; undefined when it does. */
export async function newerSchema(connection: Connection): Promise<HoldfastError | undefined> {
  const { rows } = await connection.query(
    sql`SELECT MAX(number) AS number FROM holdfast_migration`,
  );
  const [found] = rows as readonly { readonly number: number | null }[];
  const newest = found?.number ?? 0;
  return newest > schemaNumber ? schemaNewer(newest, schemaNumber) : undefined;
}

function* prepared(schema: string, now: number): Tx<readonly number[]> {
  yield* lockSchema(schema);
  // Queried first, because IF NOT EXISTS requires the right to create even for an existing schema.
  // Migrations name tables and indexes without a schema. Only until this transaction ends, the
  // search path is ours instead of the app's.
  const found = yield* row<{ readonly schemas: number }>(
    said(`SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = '${schema}') AS schemas,
      set_config('search_path', '"${schema}"', true)`),
  );
  if (found?.schemas === 0) yield* run(said(`CREATE SCHEMA "${schema}"`));
  const current = yield* row<{ readonly name: string | null }>(
    sql`SELECT current_schema() AS name`,
  );
  // Postgres skips a schema that the user may not use, and the tables would land elsewhere.
  if (current?.name !== schema) throw schemaUnusable(schema);
  return yield* migrate({ dialect: "postgres", now, hash: sha256Hex });
}

/**
 * Takes a lock until the transaction ends. Of any number of processes that open a new database at
 * once, one creates the tables and the others find them. Each takes a moment, so waiting for many
 * of them is not a sign of trouble.
 */
function* lockSchema(schema: string): Tx<void> {
  yield* row(
    said(`SELECT set_config('lock_timeout', '60000', true),
      pg_advisory_xact_lock(${lockNumbers(schema).join(", ")})`),
  );
}

/**
 * Takes the same lock for an app's set-up, whose statements then wait for locks only as long as
 * usual.
 */
export function* lockedForSetUp(schema: string): Tx<void> {
  yield* lockSchema(schema);
  yield* row(said(`SELECT set_config('lock_timeout', '${lockMsMax}', true)`));
}

/** A statement composed of checked names, without parameters: see `Connection.ask`. */
function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}

/** The name of an advisory lock: two 32-bit numbers, shared by all users of the database. */
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
