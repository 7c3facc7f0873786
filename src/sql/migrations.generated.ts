// Written by `npm run migrations` from src/sql/migrations/. Do not edit.
import type { Migration } from "./migrations.ts";

export const migrations: readonly Migration[] = [
  {
    number: 1,
    name: "kernel",
    sqlite: "-- One row that the checkpointer touches after it restarted the write-ahead\n-- log, so that the sync of the new log header happens on its thread.\nCREATE TABLE holdfast_tick (\n  id INTEGER PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),\n  n INTEGER NOT NULL\n) STRICT;\n\nINSERT INTO holdfast_tick (id, n) VALUES (1, 0);\n",
    postgres: "-- Postgres manages its own log; the table keeps the schemas alike.\nCREATE TABLE holdfast_tick (\n  id BIGINT PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),\n  n BIGINT NOT NULL\n);\n\nINSERT INTO holdfast_tick (id, n) VALUES (1, 0);\n",
    checksum: {
      sqlite: "b2b680be5057fbb58646756606ed4c9766d1d008c229fefe9fd59aa8757dc782",
      postgres: "448d2f88a1541225e72b7f5c60ad4f655acbf8ed097859f92a283b972312032e",
    },
  },
  {
    number: 2,
    name: "owner",
    sqlite: "-- Processes that have, or had, this database open. A row goes with an orderly\n-- close; died_at is written once the death has been proven.\nCREATE TABLE holdfast_owner (\n  id TEXT NOT NULL CONSTRAINT holdfast_owner_pkey PRIMARY KEY,\n  host TEXT NOT NULL,\n  opened_at INTEGER NOT NULL,\n  died_at INTEGER\n) STRICT, WITHOUT ROWID;\n\nCREATE INDEX holdfast_owner_died ON holdfast_owner (died_at) WHERE died_at IS NOT NULL;\n",
    postgres: "-- Processes that have, or had, this database open. A row goes with an orderly\n-- close; died_at is written once the death has been proven.\nCREATE TABLE holdfast_owner (\n  id TEXT COLLATE \"C\" NOT NULL CONSTRAINT holdfast_owner_pkey PRIMARY KEY,\n  host TEXT COLLATE \"C\" NOT NULL,\n  opened_at BIGINT NOT NULL,\n  died_at BIGINT\n);\n\nCREATE INDEX holdfast_owner_died ON holdfast_owner (died_at) WHERE died_at IS NOT NULL;\n",
    checksum: {
      sqlite: "c1d4a66f2a369c19c43e7de5fa1be9a283d15422ff3279cc6ceef1ffd0693836",
      postgres: "ada6b2cb3b9f2205e565f45adb012658de3fb02fa3c325af9573d08be787a155",
    },
  },
];
