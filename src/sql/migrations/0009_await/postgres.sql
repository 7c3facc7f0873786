-- The secret that signs the tokens of await-events: one row, written with the
-- first await-event and never changed, so that a token is always the same.
CREATE TABLE holdfast_await_secret (
  id BIGINT NOT NULL CONSTRAINT holdfast_await_secret_pkey PRIMARY KEY,
  secret TEXT COLLATE "C" NOT NULL
);

-- Events that a scope waits for and an outside party answers. Each is settled
-- once: `state` leaves `open` and is then final. `revoked_at` is the time at
-- which its token became invalid, possibly after it was settled.
CREATE TABLE holdfast_await_event (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  session BIGINT NOT NULL,
  scope_kind TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT NOT NULL,
  due_at BIGINT,
  settled_at BIGINT,
  revoked_at BIGINT,
  hash TEXT COLLATE "C",
  payload TEXT COLLATE "C"
);

CREATE UNIQUE INDEX holdfast_await_event_id ON holdfast_await_event (id);
CREATE UNIQUE INDEX holdfast_await_event_name ON holdfast_await_event (session, scope_kind, scope, name);
CREATE INDEX holdfast_await_event_order ON holdfast_await_event (session, key);

-- Groups: effects and await-events of one scope that are awaited together.
CREATE TABLE holdfast_effect_group (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL,
  scope_kind TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_effect_group_name ON holdfast_effect_group (session, scope_kind, scope, name);
CREATE INDEX holdfast_effect_group_order ON holdfast_effect_group (session, key);

-- The members of a group, in the order of the call. `place` is the order in
-- which they were settled, written once with the `attempt` that settled an
-- effect. The answer of the group follows from these, not from later attempts.
CREATE TABLE holdfast_effect_group_member (
  effect_group BIGINT NOT NULL,
  ordinal BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL,
  place BIGINT,
  attempt BIGINT,
  succeeded BIGINT,
  settled_at BIGINT,
  CONSTRAINT holdfast_effect_group_member_pkey PRIMARY KEY (effect_group, ordinal)
);

CREATE UNIQUE INDEX holdfast_effect_group_member_place ON holdfast_effect_group_member (effect_group, place)
  WHERE place IS NOT NULL;
-- Includes the place, so that SQLite need not read the row. Names repeat between scopes, so they do not lead.
CREATE INDEX holdfast_effect_group_member_open ON holdfast_effect_group_member (effect_group, kind, name, place)
  WHERE place IS NULL;
