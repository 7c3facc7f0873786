import { HoldfastError } from "../../model/errors.ts";
import { rows } from "../../sql/operation.ts";
import type { Tx } from "../../sql/operation.ts";
import { clearMoveMark, moveMark, setMoveMark } from "../../sql/move-mark.ts";
import type { MoveMark } from "../../sql/move-mark.ts";
import { spelled } from "../../sql/statement.ts";
import type { Statement } from "../../sql/statement.ts";
import { attachmentsElsewhere } from "../../stores/attachment/in-database.ts";
import { openSqliteWith } from "../sqlite/open.ts";
import type { SqliteOptions } from "../sqlite/options.ts";
import type { SqliteDatabase } from "../sqlite/sqlite-database.ts";
import { localTables } from "./tables.ts";
import type { MovedTable } from "./tables.ts";

/** A page of a table in the order of the file. */
export type SourceRows = readonly Readonly<Record<string, unknown>>[];

/** The SQLite file to move, opened by the process that moves it. */
export class MoveSource {
  readonly #database: SqliteDatabase;
  readonly #path: string;

  /**
   * Opens the file.
   * @throws HoldfastError as `openSqlite` does, and `DATABASE_NOT_FOUND` instead of creating a
   * file.
   */
  static async open(path: string, options: SqliteOptions): Promise<MoveSource> {
    if (path === ":memory:")
      throw new HoldfastError(
        "DATABASE_PATH_INVALID",
        "A database in memory ends with its process, so there is nothing to move. Name a database file.",
        { path },
      );
    const database = await openSqliteWith(path, options, {
      mustExist: true,
      isMover: true,
    });
    return new MoveSource(database, path);
  }

  private constructor(database: SqliteDatabase, path: string) {
    this.#database = database;
    this.#path = path;
  }

  get now(): number {
    return this.#database.clock.now();
  }

  /** The id of a new move. */
  newMove(): string {
    return Buffer.from(this.#database.entropy.bytes(16)).toString("hex");
  }

  /** @throws HoldfastError `DATABASE_DAMAGED` */
  async check(signal: AbortSignal | undefined): Promise<void> {
    const { ok, problems } = await this.#database.check({ signal });
    if (ok) return;
    throw new HoldfastError(
      "DATABASE_DAMAGED",
      `"${this.#path}" is damaged, so it is not moved: ${problems[0] ?? "see check"}. Restore a backup first; nothing was changed.`,
      { path: this.#path, problems: problems.slice(0, 10) },
    );
  }

  mark(): Promise<MoveMark | undefined> {
    return this.#database.read("moveMark", () => moveMark());
  }

  /**
   * Marks the file, so that no other process can write to it. Durable when it resolves.
   * @returns the existing mark when it belongs to another move; then nothing was changed.
   */
  leave(move: string, state: "moving" | "moved"): Promise<MoveMark | undefined> {
    const at = this.now;
    return this.#write(function* () {
      const found = yield* moveMark();
      if (found !== undefined && found.move !== move) return found;
      if (found?.state !== state && found?.state !== "moved")
        yield* setMoveMark({ move, state, at, report: null });
      return undefined;
    });
  }

  /** Removes the move's mark, so that the file can be used again. Leaves another move's mark. */
  async stay(move: string): Promise<void> {
    await this.#write(function* () {
      if ((yield* moveMark())?.move === move) yield* clearMoveMark();
    });
  }

  /** The tables to copy, and the app's tables, which are not copied. */
  async tables(): Promise<{
    readonly own: readonly MovedTable[];
    readonly app: readonly string[];
  }> {
    const found = await this.#database.read("tables", () => catalogue());
    const names = [...new Set(found.map(({ name }) => name))];
    const isOwn = (name: string): boolean => name.startsWith("holdfast_");
    return {
      own: names
        .filter((name) => isOwn(name) && !localTables.has(name))
        .map((name) => ({
          name,
          columns: found
            .filter((column) => column.name === name)
            .map((column) => column.column_name),
        })),
      app: names.filter((name) => !isOwn(name)),
    };
  }

  /** The largest key ever used in each table that never reuses a key. */
  async lastKeys(): Promise<ReadonlyMap<string, number>> {
    const found = await this.#database.read("lastKeys", () =>
      rows<{ readonly name: string; readonly seq: number }>(lastKeysText),
    );
    return new Map(found.map(({ name, seq }) => [name, seq]));
  }

  /** The number of attachments whose bytes are in files, which stay where they are. */
  attachmentsElsewhere(): Promise<number> {
    return this.#database.read("attachmentsElsewhere", () => attachmentsElsewhere());
  }

  /**
   * Reads a table page by page.
   * @throws HoldfastError `DATABASE_DAMAGED` at a row that cannot be read exactly.
   */
  async *rows(table: string): AsyncGenerator<SourceRows, void, undefined> {
    for await (const page of this.#database.exportRows(table)) {
      const [damaged] = page.damaged;
      if (damaged !== undefined)
        throw new HoldfastError(
          "DATABASE_DAMAGED",
          `A row of ${table} (${damaged.key.map(String).join(", ")}) holds a number that cannot be read exactly, so the move stopped. ` +
            "Give the move up with --give-up, fix or delete that row, and move again.",
          { table, key: damaged.key },
        );
      yield page.rows;
    }
  }

  /** The file has one writer, so nothing happens between a read and a write of one body. */
  #write<T>(body: () => Tx<T>): Promise<T> {
    return this.#database.write("move", body, { isolation: "readCommitted" });
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

const catalogueText: Statement = said(
  `SELECT t.name AS name, c.name AS column_name FROM sqlite_schema t JOIN pragma_table_xinfo(t.name) c
   WHERE t.type = 'table' AND substr(t.name, 1, 7) <> 'sqlite_' ORDER BY t.name, c.cid`,
);

const lastKeysText: Statement = said(
  "SELECT name, seq FROM sqlite_sequence WHERE substr(name, 1, 9) = 'holdfast_'",
);

function catalogue(): Tx<readonly { readonly name: string; readonly column_name: string }[]> {
  return rows(catalogueText);
}

/** A statement about SQLite's catalogue, which only the move reads. */
function said(text: string): Statement {
  return spelled({ sqlite: text, postgres: text });
}
