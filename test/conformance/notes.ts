import { integer, strict, text } from "../../src/sql/dialect.ts";
import { operation, row, rows, run } from "../../src/sql/operation.ts";
import type { Operation, Tx } from "../../src/sql/operation.ts";
import { sql } from "../../src/sql/statement.ts";
import type { Database } from "../../src/sql/database.ts";

/** A table of the app's own with two rows per note, so that half a call shows. */
export function* createNoteTable(): Tx<void> {
  yield* run(sql`
    CREATE TABLE app_note (
      id ${text} NOT NULL,
      half ${integer} NOT NULL CONSTRAINT app_note_half CHECK (half IN (1, 2)),
      body ${text}
    ) ${strict}`);
  yield* run(sql`CREATE UNIQUE INDEX app_note_id_half ON app_note (id, half)`);
}

interface Note {
  readonly id: string;
  readonly body?: string;
}

export const addNote: Operation<Note, string> = operation("addNote", {
  key: (input: Note) => input.id,
  *one({ id, body = "" }) {
    yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, ${1}, ${body})`);
    yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, ${2}, ${body})`);
    return id;
  },
});

/** Writes its first half and then throws what a store would throw. */
export const addNoteAndThrow: Operation<Note, never> = operation("addNoteAndThrow", {
  key: (input: Note) => input.id,
  *one({ id }) {
    yield* run(sql`INSERT INTO app_note (id, half, body) VALUES (${id}, ${1}, ${""})`);
    throw new Error(`refused ${id}`);
  },
});

/** The ids of all notes, each once per half, in order: "a1 a2 b1 b2". */
export async function noteHalves(database: Database): Promise<string> {
  const found = await database.read("noteHalves", () =>
    rows<{ id: string; half: number }>(sql`SELECT id, half FROM app_note ORDER BY id, half`),
  );
  return found.map((note) => `${note.id}${note.half}`).join(" ");
}

export async function noteCount(database: Database): Promise<number> {
  const found = await database.read("noteCount", () =>
    row<{ n: number }>(sql`SELECT count(*) AS n FROM app_note`),
  );
  return found?.n ?? -1;
}
