import { expect, test } from "vitest";
import {
  embeddedMigrations,
  frozenMigrations,
  migrationNumbers,
  migrationTwins,
} from "./migrations.ts";
import { treeOf } from "./tree.ts";

const folder = "src/sql/migrations";

test("gaps, odd names and missing twins are reported", () => {
  const tree = treeOf({
    [`${folder}/0001_kernel/sqlite.sql`]: "",
    [`${folder}/0001_kernel/postgres.sql`]: "",
    [`${folder}/0003_queue/sqlite.sql`]: "",
    [`${folder}/extra/sqlite.sql`]: "",
    [`${folder}/extra/postgres.sql`]: "",
  });
  expect(migrationNumbers(tree)).toEqual([
    `${folder}/0003_queue: numbers are dense from 1, so this one must be 0002.`,
    `${folder}/0003_queue/postgres.sql is missing: a migration has both twins.`,
    `${folder}/extra: name it NNNN_words_of_small_letters, such as 0003_queue.`,
  ]);
});

test("twins that name things differently are reported", () => {
  const tree = treeOf({
    [`${folder}/0001_a/sqlite.sql`]: `
      CREATE TABLE holdfast_a (
        id INTEGER PRIMARY KEY, -- a comment, with a comma
        size INTEGER NOT NULL CONSTRAINT holdfast_a_size CHECK (size IN (1, 2)),
        CONSTRAINT holdfast_a_one UNIQUE (id, size),
        CONSTRAINT holdfast_a_sound CHECK (size > 0)
      ) STRICT;
      CREATE UNIQUE INDEX holdfast_a_by_size ON holdfast_a (size);`,
    [`${folder}/0001_a/postgres.sql`]: `
      CREATE TABLE holdfast_a (
        id BIGINT PRIMARY KEY,
        bytes BIGINT NOT NULL CONSTRAINT holdfast_a_bytes CHECK (bytes IN (1, 2)),
        CONSTRAINT holdfast_a_one UNIQUE (id, bytes)
      );
      CREATE UNIQUE INDEX holdfast_a_by_bytes ON holdfast_a (bytes);`,
  });
  expect(migrationTwins(tree)).toEqual([
    `${folder}/0001_a/postgres.sql: has no constraint holdfast_a_size, but its twin does: give both the same names.`,
    `${folder}/0001_a/postgres.sql: has no index holdfast_a_by_size, but its twin does: give both the same names.`,
    `${folder}/0001_a/postgres.sql: has no column holdfast_a.size, but its twin does: give both the same names.`,
    `${folder}/0001_a/sqlite.sql: has no constraint holdfast_a_bytes, but its twin does: give both the same names.`,
    `${folder}/0001_a/sqlite.sql: has no index holdfast_a_by_bytes, but its twin does: give both the same names.`,
    `${folder}/0001_a/sqlite.sql: has no column holdfast_a.bytes, but its twin does: give both the same names.`,
  ]);
});

test("a table or index without our prefix is reported", () => {
  const text =
    "CREATE TABLE a (id INTEGER);\nCREATE INDEX by_id ON a (id);\nALTER TABLE holdfast_b ADD COLUMN n INTEGER;";
  const tree = treeOf({
    [`${folder}/0001_a/sqlite.sql`]: text,
    [`${folder}/0001_a/postgres.sql`]: text,
  });
  expect(migrationTwins(tree)).toEqual([
    `${folder}/0001_a: index by_id must be named holdfast_…, since we live beside the tables of the app.`,
    `${folder}/0001_a: table a must be named holdfast_…, since we live beside the tables of the app.`,
  ]);
});

test("a stale or missing embedding is reported", () => {
  const tree = treeOf({
    [`${folder}/0001_a/sqlite.sql`]: "SELECT 1;",
    [`${folder}/0001_a/postgres.sql`]: "SELECT 1;",
    "src/sql/migrations.generated.ts": "export const migrations: readonly Migration[] = [];",
  });
  expect(embeddedMigrations(tree)).toEqual([
    'src/sql/migrations.generated.ts is not what the SQL files say: run "npm run migrations".',
  ]);
});

test("a released migration that changed or vanished is reported", () => {
  // Of the empty text, by any SHA-256 tool.
  const ofNothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  const released = { sqlite: ofNothing, postgres: ofNothing };
  const tree = treeOf({
    [`${folder}/0001_a/sqlite.sql`]: "",
    [`${folder}/0001_a/postgres.sql`]: "",
    [`${folder}/0002_b/sqlite.sql`]: "SELECT 2;",
    [`${folder}/0002_b/postgres.sql`]: "",
    "test/formats/migrations.json": JSON.stringify({
      1: released,
      2: released,
      3: released,
    }),
  });
  expect(frozenMigrations(tree)).toEqual([
    "Migration 2 is released (test/formats/migrations.json) and was changed: restore its text and write a new migration.",
    "Migration 3 is released (test/formats/migrations.json) and was changed: restore its text and write a new migration.",
  ]);
});
