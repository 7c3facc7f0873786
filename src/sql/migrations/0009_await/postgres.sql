-- What signs the tokens of await-events: one row, made with the first of them
-- and never changed, so that a token stays the same whenever it is asked for.
CREATE TABLE holdfast_await_secret (
  id BIGINT NOT NULL CONSTRAINT holdfast_await_secret_pkey PRIMARY KEY,
  secret TEXT COLLATE "C" NOT NULL
);

-- What somebody inside waits for and somebody outside answers. Settled once:
-- `state` leaves `open` and is final. `revoked_at` is when its token ended to
-- count, also after it was settled.
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
