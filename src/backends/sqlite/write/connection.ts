import { checkValue, checkedNumber, parameterBytes } from "../../../sql/parameters.ts";
import type { Parameter, SqlValue, Statement, Template } from "../../../sql/statement.ts";
import type { RawConnection, RawStatement } from "../drivers/drivers.ts";
import { sqliteCode, statementFailure } from "./failures.ts";
import type { IndexName } from "./failures.ts";
import type { HoldfastError } from "../../../model/errors.ts";

/** Set explicitly on every connection, since drivers have defaults of their own. */
export const filePragmas: readonly string[] = [
  "synchronous = NORMAL",
  "foreign_keys = ON",
  "wal_autocheckpoint = 0",
  "checkpoint_fullfsync = 1",
  "mmap_size = 0",
  "cache_size = -16384",
];

/**
 * A driver's connection behind our seam: statements prepared once per
 * template, values converted and checked here so that both drivers behave
 * alike.
 */
export class Connection {
  readonly #raw: RawConnection;
  /** Named when its disk fails; in memory there is none. */
  readonly #path: string | undefined;
  readonly #prepared = new Map<Template | string, RawStatement>();
  /** Bytes bound since the last reset: what a batch is sliced by. */
  boundBytes = 0;
  /** Writing statements since the last reset: how much the log may have grown. */
  statements = 0;
  /** Statements of a call that may have left a trace; who runs calls sets it back. */
  traces = 0;
  /** Statements since the last reset that have changed something, and those of the app that say they have not. */
  #changes = 0;
  #doubts = 0;
  /** Rows changed since the connection was opened, by what statements say. */
  #rowsChanged = 0;

  /** What the connection is used for just now; in memory it takes turns. */
  access: "read" | "write";
  /** Whether writes are to be refused, and whether SQLite has been told. */
  #guard: "asked" | "set" | undefined;

  constructor(raw: RawConnection, access: "read" | "write", path?: string) {
    this.#raw = raw;
    this.#path = path;
    this.access = access;
  }

  get inTransaction(): boolean {
    return this.#raw.inTransaction;
  }

  /** A new transaction begins. */
  resetCounts(): void {
    this.boundBytes = 0;
    this.statements = 0;
    this.#changes = 0;
    this.#doubts = 0;
  }

  /**
   * Whether the transaction has changed anything. A statement that changed no
   * row has not, unless a trigger of the app did it for a view or before a
   * conflict: SQLite's own count has those too.
   */
  hasChanged(): boolean {
    if (this.#changes > 0 || this.#doubts === 0) return this.#changes > 0;
    const { total } = this.#control(totalChanges).get() as { total: number };
    const isAsCounted = total === this.#rowsChanged;
    this.#rowsChanged = total;
    return !isAsCounted;
  }

  /**
   * In memory the writer reads as well; meanwhile what would write is refused.
   * The pragma that refuses it makes SQLite compile all statements anew, which
   * took more time than the reads: it is set only for one that may write.
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
    const prepared = this.#prepare(template);
    const bound = this.#bind(statement.parameters);
    let changes: number | bigint;
    try {
      ({ changes } = prepared.run(...bound));
    } catch (error) {
      this.#noteFailure(template, error);
      throw error;
    }
    // Elsewhere a driver may report the count of an earlier statement.
    const count = template.counts ? Number(changes) : 0;
    if (template.writes) this.#wrote(template, count);
    return count;
  }

  row(statement: Statement): object | undefined {
    // A RETURNING statement is read to its end, so that all of it happens.
    if (statement.template.writes) return this.rows(statement)[0];
    const prepared = this.#prepare(statement.template);
    const found = prepared.get(...this.#bind(statement.parameters));
    return found === undefined ? undefined : checkedRow(found);
  }

  rows(statement: Statement): readonly object[] {
    const { template } = statement;
    if (template.writes) this.#refuseWrites();
    const prepared = this.#prepare(template);
    const bound = this.#bind(statement.parameters);
    let found: object[];
    try {
      found = prepared.all(...bound);
    } catch (error) {
      this.#noteFailure(template, error);
      throw error;
    }
    // Before the rows are looked at: they are written, whatever they hold.
    if (template.writes) this.#wrote(template, found.length);
    for (const row of found) checkedRow(row);
    return found;
  }

  /** Transaction control and pragmas of the backend itself, prepared once. */
  control(text: string): void {
    this.#control(text).run();
  }

  /** Settings: some pragmas answer and some do not, which only `exec` ignores. */
  set(pragmas: readonly string[]): void {
    this.#raw.exec(pragmas.map((pragma) => `PRAGMA ${pragma};`).join(" "));
  }

  /** Moves with every commit of any other connection. */
  dataVersion(): SqlValue | undefined {
    const { data_version: version } = this.#control(dataVersion).get() as {
      readonly data_version?: SqlValue;
    };
    return version;
  }

  /** A pragma that answers with one number or word. */
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

  /** SQLite undoes a statement that fails, but for what triggers and conflict clauses of the app make of it. */
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

  #prepare(template: Template): RawStatement {
    let prepared = this.#prepared.get(template);
    if (prepared === undefined)
      this.#prepared.set(template, (prepared = this.#raw.prepare(template.sqlite)));
    return prepared;
  }

  #bind(parameters: readonly Parameter[]): SqlValue[] {
    const bound: SqlValue[] = new Array<SqlValue>(parameters.length);
    for (let index = 0; index < parameters.length; index += 1) {
      const value = parameters[index] as SqlValue;
      checkValue(value, index + 1);
      // Drivers bind numbers as REAL; an integer must stay one.
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
      // The violation is what matters; its name is a courtesy.
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
