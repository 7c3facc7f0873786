-- The secret that signs the tokens of await-events: one row, written with the
-- first await-event and never changed, so that a token is always the same.
CREATE TABLE holdfast_await_secret (
  id INTEGER NOT NULL CONSTRAINT holdfast_await_secret_pkey PRIMARY KEY,
  secret TEXT NOT NULL
) STRICT;

-- Events that a scope waits for and an outside party answers. Each is settled
-- once: `state` leaves `open` and is then final. `revoked_at` is the time at
-- which its token became invalid, possibly after it was settled.
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

-- Groups: effects and await-events of one scope that are awaited together.
CREATE TABLE holdfast_effect_group (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  scope_kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  opened_at INTEGER NOT NULL,
  CONSTRAINT holdfast_effect_group_sound CHECK (kind = 'race' OR kind = 'all')
) STRICT;

CREATE UNIQUE INDEX holdfast_effect_group_name ON holdfast_effect_group (session, scope_kind, scope, name);
CREATE INDEX holdfast_effect_group_order ON holdfast_effect_group (session, key);

-- The members of a group, in the order of the call. `place` is the order in
-- which they were settled, written once with the `attempt` that settled an
-- effect. The answer of the group follows from these, not from later attempts.
CREATE TABLE holdfast_effect_group_member (
  effect_group INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  place INTEGER,
  attempt INTEGER,
  succeeded INTEGER,
  settled_at INTEGER,
  CONSTRAINT holdfast_effect_group_member_pkey PRIMARY KEY (effect_group, ordinal),
  CONSTRAINT holdfast_effect_group_member_sound CHECK (
    (kind = 'effect' OR kind = 'awaitEvent')
    AND (place IS NULL OR (settled_at IS NOT NULL AND succeeded IS NOT NULL AND (succeeded = 0 OR succeeded = 1)
      AND (attempt IS NOT NULL) = (kind = 'effect'))))
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holdfast_effect_group_member_place ON holdfast_effect_group_member (effect_group, place)
  WHERE place IS NOT NULL;
-- Includes the place, so that SQLite need not read the row. Names repeat between scopes, so they do not lead.
CREATE INDEX holdfast_effect_group_member_open ON holdfast_effect_group_member (effect_group, kind, name, place)
  WHERE place IS NULL;
