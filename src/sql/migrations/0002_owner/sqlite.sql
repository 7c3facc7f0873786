-- Processes that have, or had, this database open. An orderly close removes the
-- row; died_at is written once the death is proven.
CREATE TABLE holdfast_owner (
  id TEXT NOT NULL CONSTRAINT holdfast_owner_pkey PRIMARY KEY,
  host TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  died_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_owner_died ON holdfast_owner (died_at) WHERE died_at IS NOT NULL;
