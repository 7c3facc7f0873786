import { checkValue, checkedNumber, parameterBytes } from "../../../sql/parameters.ts";
import type { Parameter, SqlValue, Statement, Template } from "../../../sql/statement.ts";
import type { RawConnection, RawStatement } from "../drivers/drivers.ts";
import { sqliteCode, statementFailure } from "./failures.ts";
import type { IndexName } from "./failures.ts";
import type { HoldfastError } from "../../../model/errors.ts";

/** Pragmas set explicitly on every connection, since drivers have their own defaults. */
export function filePragmas(cacheBytes: number): readonly string[] {
  return [
    "synchronous = NORMAL",
    "foreign_keys = ON",
    "wal_autocheckpoint = 0",
    "checkpoint_fullfsync = 1",
    "mmap_size = 0",
    // Negative values are in KiB instead of pages.
    `cache_size = -${Math.ceil(cacheBytes / 1_024)}`,
  ];
}

/**
 * A driver's connection behind our own interface. Statements are prepared once per template, and values are
 * converted and checked here, so that both drivers behave alike.
 */
export class Connection {
  readonly #raw: RawConnection;
  /** The path that an error names when the disk fails; undefined in memory. */
  readonly #path: string | undefined;
  readonly #prepared = new Map<Template | string, RawStatement>();
  /** Bytes bound since the last reset, which limit a batch. */
  boundBytes = 0;
  /** Writing statements since the last reset: a measure of the log's growth. */
  statements = 0;
  /** Statements of a call that may have left changes; the code that runs calls resets it. */
  traces = 0;
  /**
   * Statements since the last reset that have changed something, and statements of the app that
   * report no change.
   */
  #changes = 0;
  #doubts = 0;
  /** Rows changed since the connection was opened, as statements report them. */
  #rowsChanged = 0;

  /** The current use of the connection; in memory it alternates. */
  access: "read" | "write";
  /** Set when writes must be refused; "set" once SQLite knows it. */
  #guard: "asked" | "set" | undefined;

  constructor(raw: RawConnection, access: "read" | "write", path?: string) {
    this.#raw = raw;
    this.#path = path;
    this.access = access;
  }

  get inTransaction(): boolean {
    return this.#raw.inTransaction;
  }

  /** Resets the counts for a new transaction. */
  resetCounts(): void {
    this.boundBytes = 0;
    this.statements = 0;
    this.#changes = 0;
    this.#doubts = 0;
  }

  /**
   * True when the transaction has changed anything. A statement that reports no changed row has
   * changed none, unless a trigger of the app made changes for a view or before a conflict.
   * SQLite's own total count includes those too.
   */
  hasChanged(): boolean {
    if (this.#changes > 0 || this.#doubts === 0) return this.#changes > 0;
    const { total } = this.#control(totalChanges).get() as { total: number };
    const isAsCounted = total === this.#rowsChanged;
    this.#rowsChanged = total;
    return !isAsCounted;
  }

  /**
   * Starts a read on the writer, which also reads when the database is in memory. Writes are
   * refused until it ends. The pragma that refuses them makes SQLite recompile all statements,
   * which took more time than the reads. So it is set only before a statement that may write.
   */
  beginReading(): void {
    this.access = "read";
    this.#guard = "asked";
  }

  endReading(): void {
    if (this.#guard === "set") this.control("PRAGMA query_only = 0");
    this.#guard = undefined;
    this.access = "write";
  }

  #refuseWrites(): void {
    if (this.#guard !== "asked") return;
    this.control("PRAGMA query_only = 1");
    this.#guard = "set";
  }

  run(statement: Statement): number {
    const { template } = statement;
    if (template.writes) this.#refuseWrites();
    const prepared = this.#prepare(statement);
    const bound = this.#bind(statement.parameters);
    let changes: number | bigint;
    try {
      ({ changes } = prepared.run(...bound));
    } catch (error) {
      this.#noteFailure(template, error);
      throw error;
    }
    // For other statements a driver may report the count of an earlier one.
    const count = template.counts ? Number(changes) : 0;
    if (template.writes) this.#wrote(template, count);
    return count;
  }

  row(statement: Statement): object | undefined {
    // A RETURNING statement is read to its end, so that all of it happens.
    if (statement.template.writes) return this.rows(statement)[0];
    const prepared = this.#prepare(statement);
    const found = prepared.get(...this.#bind(statement.parameters));
    return found === undefined ? undefined : checkedRow(found);
  }

  rows(statement: Statement): readonly object[] {
    const { template } = statement;
    if (template.writes) this.#refuseWrites();
    const prepared = this.#prepare(statement);
    const bound = this.#bind(statement.parameters);
    let found: object[];
    try {
      found = prepared.all(...bound);
    } catch (error) {
      this.#noteFailure(template, error);
      throw error;
    }
    // Before the rows are checked: they are written, regardless of their values.
    if (template.writes) this.#wrote(template, found.length);
    for (const row of found) checkedRow(row);
    return found;
  }

  /** Runs transaction control and pragmas of the backend itself, prepared once. */
  control(text: string): void {
    this.#control(text).run();
  }

  /** Applies settings. Some pragmas return rows and some do not, which only `exec` ignores. */
  set(pragmas: readonly string[]): void {
    this.#raw.exec(pragmas.map((pragma) => `PRAGMA ${pragma};`).join(" "));
  }

  /** A number that moves with every commit of any other connection. */
  dataVersion(): SqlValue | undefined {
    const { data_version: version } = this.#control(dataVersion).get() as {
      readonly data_version?: SqlValue;
    };
    return version;
  }

  /** The value of a pragma that returns one number or word. */
  pragma(name: string): SqlValue | undefined {
    const answer = this.#control(`PRAGMA ${name}`).get() ?? {};
    return Object.values(answer)[0] as SqlValue | undefined;
  }

  failure(error: unknown): HoldfastError {
    const indexName: IndexName = (table, columns) => this.#indexName(table, columns);
    return statementFailure(error, this.access, indexName, this.#path);
  }

  close(): void {
    this.#raw.close();
  }

  #wrote(template: Template, rowsSeen: number): void {
    this.statements += 1;
    this.#rowsChanged += rowsSeen;
    if (rowsSeen === 0 && template.tracelessWhenUnchanged) return;
    this.traces += 1;
    if (rowsSeen === 0 && template.counts) this.#doubts += 1;
    else this.#changes += 1;
  }

  /**
   * Records a failed statement. SQLite undoes it, except for effects of the app's triggers and
   * conflict clauses.
   */
  #noteFailure(template: Template, error: unknown): void {
    if (!template.writes) return;
    const isUndone = template.tracelessWhenRefused && sqliteCode(error) === "CONSTRAINT";
    if (isUndone) return;
    this.traces += 1;
    this.#changes += 1;
  }

  #control(text: string): RawStatement {
    let prepared = this.#prepared.get(text);
    if (prepared === undefined) this.#prepared.set(text, (prepared = this.#raw.prepare(text)));
    return prepared;
  }

  #prepare({ template, parameters }: Statement): RawStatement {
    let prepared = this.#prepared.get(template);
    if (prepared !== undefined) return prepared;
    try {
      prepared = this.#raw.prepare(template.sqlite);
    } catch (error) {
      // `IN ${list}` is not SQL here: the list is the reason, and not the "?" that stands for it.
      parameters.forEach((value, index) => checkValue(value as SqlValue, index + 1));
      throw error;
    }
    this.#prepared.set(template, prepared);
    return prepared;
  }

  #bind(parameters: readonly Parameter[]): SqlValue[] {
    const bound: SqlValue[] = new Array<SqlValue>(parameters.length);
    for (let index = 0; index < parameters.length; index += 1) {
      const value = parameters[index] as SqlValue;
      checkValue(value, index + 1);
      // Drivers bind numbers as REAL, so integers are bound as bigint.
      bound[index] = typeof value === "number" && Number.isInteger(value) ? BigInt(value) : value;
      this.boundBytes += parameterBytes(value);
    }
    return bound;
  }

  #indexName(table: string, columns: readonly string[]): string {
    try {
      const indexes = this.#raw
        .prepare(
          `SELECT l.name AS name, l.origin AS origin,
             (SELECT group_concat(name, ',') FROM (SELECT i.name FROM pragma_index_info(l.name) i ORDER BY i.seqno)) AS columns
           FROM pragma_index_list(?) l WHERE l."unique" = 1`,
        )
        .all(table) as { name: string; origin: string; columns: string }[];
      const wanted = columns.join(",");
      const found = indexes.find((index) => index.columns === wanted);
      if (found !== undefined && found.origin !== "pk") return found.name;
    } catch {
      // The violation is what matters; its name is only a help.
    }
    return `${table}_pkey`;
  }
}

const dataVersion = "PRAGMA data_version";
const totalChanges = "SELECT total_changes() AS total";

function checkedRow(row: object): object {
  const record = row as Record<string, unknown>;
  for (const column in record) {
    const value = record[column];
    if (typeof value === "number") checkedNumber(value, column);
    else if (value instanceof Uint8Array && value.constructor !== Uint8Array)
      record[column] = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  }
  return row;
}
