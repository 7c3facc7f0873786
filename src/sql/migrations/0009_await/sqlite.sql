-- What signs the tokens of await-events: one row, made with the first of them
-- and never changed, so that a token stays the same whenever it is asked for.
CREATE TABLE holdfast_await_secret (
  id INTEGER NOT NULL CONSTRAINT holdfast_await_secret_pkey PRIMARY KEY,
  secret TEXT NOT NULL
) STRICT;

-- What somebody inside waits for and somebody outside answers. Settled once:
-- `state` leaves `open` and is final. `revoked_at` is when its token ended to
-- count, also after it was settled.
CREATE TABLE holdfast_await_event (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  session INTEGER NOT NULL,
  scope_kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  state TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  due_at INTEGER,
  settled_at INTEGER,
  revoked_at INTEGER,
  hash TEXT,
  payload TEXT,
  CONSTRAINT holdfast_await_event_sound CHECK (
    (state = 'open' AND settled_at IS NULL AND hash IS NULL AND payload IS NULL)
    OR ((state = 'resolved' OR state = 'failed') AND settled_at IS NOT NULL AND hash IS NOT NULL AND payload IS NOT NULL)
    OR ((state = 'timedOut' OR state = 'cancelled' OR state = 'revoked')
      AND settled_at IS NOT NULL AND hash IS NULL AND payload IS NULL))
) STRICT;

CREATE UNIQUE INDEX holdfast_await_event_id ON holdfast_await_event (id);
CREATE UNIQUE INDEX holdfast_await_event_name ON holdfast_await_event (session, scope_kind, scope, name);
CREATE INDEX holdfast_await_event_order ON holdfast_await_event (session, key);
