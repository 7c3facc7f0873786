-- One row in a database that is being moved, or was. The source is `moving`
-- while it is copied and `moved` once the target has everything: both mean that
-- nobody writes to it. The target is `awaited` before and `arrived` with the
-- copy, in the same transaction, with the report of what was copied.
CREATE TABLE holdfast_move (
  id BIGINT NOT NULL CONSTRAINT holdfast_move_pkey PRIMARY KEY,
  move TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  report TEXT COLLATE "C"
);
