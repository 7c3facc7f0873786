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
];
