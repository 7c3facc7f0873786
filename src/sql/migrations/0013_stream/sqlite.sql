-- The live output of runs: no part of their record, and lost in a crash at worst.
-- A row per run that has written some. The row of the execution is not touched.
-- `position` numbers the chunks of the run, also those that were dropped.
CREATE TABLE holdfast_stream (
  execution INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  run_version INTEGER NOT NULL,
  position INTEGER NOT NULL,
  size INTEGER NOT NULL
) STRICT;

CREATE INDEX holdfast_stream_id ON holdfast_stream (id);

-- The chunks of one attempt that were written together, from `position` on.
-- `supersedes` marks the first chunks of an attempt that replaces an older one.
CREATE TABLE holdfast_stream_part (
  key INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  position INTEGER NOT NULL,
  chunks INTEGER NOT NULL,
  run_version INTEGER NOT NULL,
  continuation INTEGER NOT NULL,
  call INTEGER NOT NULL,
  step TEXT,
  attempt INTEGER NOT NULL,
  at INTEGER NOT NULL,
  size INTEGER NOT NULL,
  supersedes INTEGER NOT NULL,
  state TEXT NOT NULL,
  payload TEXT NOT NULL,
  CONSTRAINT holdfast_stream_part_sound CHECK (
    (state = 'live' OR state = 'folded' OR state = 'superseded') AND (supersedes = 0 OR supersedes = 1) AND chunks > 0)
) STRICT;

CREATE UNIQUE INDEX holdfast_stream_part_position ON holdfast_stream_part (execution, position);
CREATE INDEX holdfast_stream_part_call ON holdfast_stream_part (execution, continuation, call)
  WHERE state <> 'superseded';
