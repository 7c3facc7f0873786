-- One row in a database that is being moved, or was. The source is `moving`
-- while it is copied and `moved` once the target has everything; in both states
-- it accepts no writes. The target is `awaited` before the copy. The transaction
-- of the copy sets it to `arrived`, with the report of the copied rows.
CREATE TABLE holdfast_move (
  id INTEGER NOT NULL CONSTRAINT holdfast_move_pkey PRIMARY KEY,
  move TEXT NOT NULL,
  state TEXT NOT NULL,
  at INTEGER NOT NULL,
  report TEXT,
  CONSTRAINT holdfast_move_sound CHECK (
    id = 1 AND (state = 'moving' OR state = 'moved' OR state = 'awaited' OR state = 'arrived'))
) STRICT;
