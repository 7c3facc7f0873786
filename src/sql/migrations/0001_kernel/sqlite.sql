-- One row that the checkpointer touches after it restarted the write-ahead
-- log, so that the sync of the new log header happens on its thread.
CREATE TABLE holdfast_tick (
  id INTEGER PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),
  n INTEGER NOT NULL
) STRICT;

INSERT INTO holdfast_tick (id, n) VALUES (1, 0);
