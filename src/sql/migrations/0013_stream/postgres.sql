-- The live output of runs: no part of their record, and lost in a crash at worst.
-- A row per run that has written some. The row of the execution is not touched.
-- `position` numbers the chunks of the run, also those that were dropped.
CREATE TABLE holdfast_stream (
  execution BIGINT PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  run_version BIGINT NOT NULL,
  position BIGINT NOT NULL,
  size BIGINT NOT NULL
);

CREATE INDEX holdfast_stream_id ON holdfast_stream (id);

-- The chunks of one attempt that were written together, from `position` on.
-- `supersedes` marks the first chunks of an attempt that replaces an older one.
CREATE TABLE holdfast_stream_part (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution BIGINT NOT NULL,
  position BIGINT NOT NULL,
  chunks BIGINT NOT NULL,
  run_version BIGINT NOT NULL,
  continuation BIGINT NOT NULL,
  call BIGINT NOT NULL,
  step TEXT COLLATE "C",
  attempt BIGINT NOT NULL,
  at BIGINT NOT NULL,
  size BIGINT NOT NULL,
  supersedes BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX holdfast_stream_part_position ON holdfast_stream_part (execution, position);
CREATE INDEX holdfast_stream_part_call ON holdfast_stream_part (execution, continuation, call)
  WHERE state <> 'superseded';
