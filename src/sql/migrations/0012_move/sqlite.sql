-- One row in a database that is being moved, or was. The source is `moving`
-- while it is copied and `moved` once the target has everything: both mean that
-- nobody writes to it. The target is `awaited` before and `arrived` with the
-- copy, in the same transaction, with the report of what was copied.
CREATE TABLE holdfast_move (
  id INTEGER NOT NULL CONSTRAINT holdfast_move_pkey PRIMARY KEY,
  move TEXT NOT NULL,
  state TEXT NOT NULL,
  at INTEGER NOT NULL,
  report TEXT,
  CONSTRAINT holdfast_move_sound CHECK (
    id = 1 AND (state = 'moving' OR state = 'moved' OR state = 'awaited' OR state = 'arrived'))
) STRICT;
