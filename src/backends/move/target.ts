import { sha256Hex } from "../../host/hash.ts";
import { HoldfastError } from "../../model/errors.ts";
import { systemClock } from "../../host/clock.ts";
import { Fate } from "../../sql/fate.ts";
import { clearMoveMark, moveMark, setMoveMark } from "../../sql/move-mark.ts";
import type { MoveMark } from "../../sql/move-mark.ts";
import type { Tx } from "../../sql/operation.ts";
import { spelled, sql } from "../../sql/statement.ts";
import type { Parameter, SqlValue, Statement } from "../../sql/statement.ts";
import { recordAllDeaths } from "../../stores/owner/owner.ts";
import { connect } from "../postgres/connect.ts";
import type { Connection } from "../postgres/connection.ts";
import { drive } from "../postgres/drive.ts";
import { outcomeUnknown } from "../postgres/failures.ts";
import { settingsOf } from "../postgres/options.ts";
import type { PostgresOptions } from "../postgres/options.ts";
import { lookAtSchema, prepareSchema } from "../postgres/schema.ts";
import type { Inquiry } from "../postgres/silence/inquiry.ts";
import { RowSum } from "./row-sum.ts";
import { localTables, replacedTables } from "./tables.ts";
import type { MovedTable } from "./tables.ts";

/** The longest wait for tables that others may be writing to. */
const lockMs = 10_000;
/**
 * The longest pause in which a page is read from the source and the server hears nothing. Longer
 * than any page takes, but bounded.
 */
const idleMs = 600_000;
/** Bytes of content per answer when rows are read back. */
const bytesPerFetch = 1_048_576;
const rowsPerFetch = 1_000;

/** The columns of a target table with their types, in its own order. */
type ColumnTypes = ReadonlyMap<string, string>;

/**
 * The Postgres database to move to: one connection, one transaction at a time, and a lock that
 * allows one move into a schema at a time.
 */
export class MoveTarget {
  readonly #connection: Connection;
  readonly #inquiry: Inquiry;
  readonly #schema: string;
  #types: ReadonlyMap<string, ColumnTypes> = new Map();

  /** Creates our tables unless they exist. @throws HoldfastError as `openPostgres` does. */
  static async open(url: string, options: PostgresOptions): Promise<MoveTarget> {
    const settings = settingsOf(options);
    const { schema } = settings;
    const { connection, inquiry } = await connect(url, settings);
    try {
      const found = await lookAtSchema(connection, schema);
      if (found?.isCurrent !== true) await prepareSchema(connection, schema, systemClock.now());
      return new MoveTarget(connection, inquiry, schema);
    } catch (error) {
      inquiry.close();
      await connection.end();
      throw error;
    }
  }

  private constructor(connection: Connection, inquiry: Inquiry, schema: string) {
    this.#connection = connection;
    this.#inquiry = inquiry;
    this.#schema = schema;
  }

  /**
   * Runs one transaction of the move, under its lock. An error from `work` rolls it back. Unlike
   * any other transaction body, `work` may await, because no other process writes to an empty
   * target.
   * @throws HoldfastError `MOVE_UNDER_WAY`, `OUTCOME_UNKNOWN`
   */
  async transact<T>(work: () => Promise<T>): Promise<T> {
    const connection = this.#connection;
    await connection.begin("write");
    let value: T;
    try {
      await connection.command(
        `SET LOCAL lock_timeout = ${lockMs}; SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`,
      );
      await this.#lock();
      value = await work();
    } catch (error) {
      await connection.rollback().catch(() => connection.discard());
      throw error;
    }
    try {
      await connection.commit();
    } catch (error) {
      if (connection.isLost) throw outcomeUnknown();
      throw error;
    }
    return value;
  }

  async #lock(): Promise<void> {
    const hash = Buffer.from(sha256Hex(`holdfast move ${this.#schema}`), "hex");
    const [found] = await this.#connection.ask(
      `SELECT pg_try_advisory_xact_lock(${hash.readInt32BE(0)}, ${hash.readInt32BE(4)}) AS taken`,
    );
    if ((found as { readonly taken: unknown }).taken === 1) return;
    throw new HoldfastError(
      "MOVE_UNDER_WAY",
      "Another process is moving a database to this target, or giving up a move. Wait until that process ends. The lock of a killed process is released at once, that of a lost machine within ten minutes.",
    );
  }

  mark(): Promise<MoveMark | undefined> {
    return this.#run(() => moveMark());
  }

  setMark(mark: MoveMark): Promise<void> {
    return this.#run(() => setMoveMark(mark));
  }

  clearMark(): Promise<void> {
    return this.#run(() => clearMoveMark());
  }

  recordAllDeaths(now: number): Promise<void> {
    return this.#run(() => recordAllDeaths(now));
  }

  /** The non-empty tables among those that a move would fill. */
  async filled(tables: readonly MovedTable[]): Promise<readonly string[]> {
    const looked = tables.filter(({ name }) => !replacedTables.has(name));
    const columns = looked.map(
      ({ name }) => `EXISTS (SELECT 1 FROM ${this.#qualified(name)}) AS ${name}`,
    );
    const [found] = await this.#connection.ask(`SELECT ${columns.join(", ")}`);
    const isFilled = found as Readonly<Record<string, unknown>>;
    return looked.map(({ name }) => name).filter((name) => isFilled[name] === 1);
  }

  /** Blocks all other writers until the transaction ends. Reads continue. */
  async lockTables(tables: readonly MovedTable[]): Promise<void> {
    const names = tables.map(({ name }) => this.#qualified(name));
    await this.#connection.command(`LOCK TABLE ${names.join(", ")} IN SHARE ROW EXCLUSIVE MODE`);
    for (const name of replacedTables)
      await this.#connection.command(`DELETE FROM ${this.#qualified(name)}`);
    this.#types = await this.#columnTypes();
    for (const { name, columns } of tables) this.#assertTwin(name, columns);
  }

  async #columnTypes(): Promise<ReadonlyMap<string, ColumnTypes>> {
    const found = (await this.#connection.ask(
      `SELECT t.relname AS table_name, c.attname AS name, format_type(c.atttypid, NULL) AS type
       FROM pg_attribute c JOIN pg_class t ON t.oid = c.attrelid JOIN pg_namespace n ON n.oid = t.relnamespace
       WHERE n.nspname = '${this.#schema}' AND starts_with(t.relname, 'holdfast_') AND t.relkind = 'r'
         AND c.attnum > 0 AND NOT c.attisdropped ORDER BY t.relname, c.attnum`,
    )) as readonly {
      readonly table_name: string;
      readonly name: string;
      readonly type: string;
    }[];
    const types = new Map<string, Map<string, string>>();
    for (const { table_name: table, name, type } of found) {
      if (localTables.has(table)) continue;
      const columns = types.get(table) ?? new Map<string, string>();
      types.set(table, columns.set(name, type));
    }
    return types;
  }

  /** Both schemas are known to be this version's, so a difference is our bug. */
  #assertTwin(table: string, columns: readonly string[]): void {
    const ours = [...(this.#types.get(table)?.keys() ?? [])].toSorted();
    if (ours.join() !== columns.toSorted().join())
      throw new Error(`${table} has different columns on Postgres and on SQLite.`);
  }

  /** Inserts rows with their existing keys. */
  async insert(
    { name, columns }: MovedTable,
    rows: readonly Readonly<Record<string, unknown>>[],
  ): Promise<void> {
    const lists = columns
      .map((column) => {
        const list = rows.map((row) => row[column] as SqlValue) as Parameter;
        const type = this.#types.get(name)?.get(column) ?? "text";
        return sql`${list}${said(`::${type}[]`)}`;
      })
      .reduce((all, each) => sql`${all}, ${each}`);
    const head = said(
      `INSERT INTO ${name} (${columns.map((column) => `"${column}"`).join(", ")}) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(`,
    );
    await this.#connection.query(sql`${head}${lists})`);
  }

  /**
   * The checksum of the table as the server returns it. Memory is bounded if no row exceeds
   * `rowBytesMax`.
   */
  async sum(
    { name, columns }: MovedTable,
    rowBytesMax: number,
    onRows: (rows: number) => void,
  ): Promise<RowSum> {
    const connection = this.#connection;
    const sum = new RowSum(columns);
    const count = Math.min(
      rowsPerFetch,
      Math.max(1, Math.floor(bytesPerFetch / Math.max(1, rowBytesMax))),
    );
    const selected = columns.map((column) => `"${column}"`).join(", ");
    await connection.command(
      `DECLARE holdfast_moved NO SCROLL CURSOR FOR SELECT ${selected} FROM ${this.#qualified(name)}`,
    );
    for (;;) {
      const rows = await connection.ask(`FETCH ${count} FROM holdfast_moved`);
      for (const row of rows) sum.add(row as Record<string, unknown>);
      if (rows.length < count) break;
      onRows(sum.rows);
    }
    await connection.command("CLOSE holdfast_moved");
    return sum;
  }

  /** Sets sequences beyond the keys that the source has used, also where their rows are gone. */
  async setSequences(lastKeys: ReadonlyMap<string, number>): Promise<void> {
    const found = (await this.#connection.ask(
      `SELECT t.relname AS table_name, c.attname AS name
       FROM pg_attribute c JOIN pg_class t ON t.oid = c.attrelid JOIN pg_namespace n ON n.oid = t.relnamespace
       WHERE n.nspname = '${this.#schema}' AND starts_with(t.relname, 'holdfast_') AND t.relkind = 'r' AND c.attidentity <> ''`,
    )) as readonly { readonly table_name: string; readonly name: string }[];
    for (const { table_name: table, name } of found)
      await this.#connection.ask(
        `SELECT setval(pg_get_serial_sequence('${this.#qualified(table)}', '${name}'), last) FROM
           (SELECT GREATEST(MAX("${name}"), ${lastKeys.get(table) ?? 0}) AS last FROM ${this.#qualified(table)}) AS given
         WHERE last > 0`,
      );
  }

  /**
   * Updates the planner's statistics. Without them the planner would treat the tables as empty
   * until autoanalyze runs.
   */
  async analyze(tables: readonly Pick<MovedTable, "name">[]): Promise<void> {
    for (const { name } of tables)
      await this.#connection.command(`ANALYZE ${this.#qualified(name)}`);
  }

  async close(): Promise<void> {
    this.#inquiry.close();
    if (this.#connection.isLost) this.#connection.discard();
    else await this.#connection.end();
  }

  #run<T>(start: () => Tx<T>): Promise<T> {
    return drive(this.#connection, start, new Fate("move", undefined));
  }

  #qualified(table: string): string {
    return `"${this.#schema}".${table}`;
  }
}

const texts = new Map<string, Statement>();

/**
 * Statements composed of names from both catalogues. They are cached, so that all slices of a table
 * share one statement.
 */
function said(text: string): Statement {
  let statement = texts.get(text);
  if (statement === undefined)
    texts.set(text, (statement = spelled({ sqlite: text, postgres: text })));
  return statement;
}
