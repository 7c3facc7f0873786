-- One row that the checkpointer touches after it has restarted the write-ahead
-- log, so that the new log header is synced on the checkpointer's thread.
CREATE TABLE holdfast_tick (
  id INTEGER PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),
  n INTEGER NOT NULL
) STRICT;

INSERT INTO holdfast_tick (id, n) VALUES (1, 0);

-- The payload codec of the values: one row, written with the first value.
-- Without a name, values are in the clear. A process that cannot decode the
-- sample neither reads nor writes values.
CREATE TABLE holdfast_payload_codec (
  id INTEGER NOT NULL CONSTRAINT holdfast_payload_codec_pkey PRIMARY KEY CONSTRAINT holdfast_payload_codec_one CHECK (id = 1),
  codec TEXT,
  sample TEXT NOT NULL
) STRICT;
