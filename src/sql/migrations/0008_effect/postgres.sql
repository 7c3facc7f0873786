-- Work done outside the database that must not be done twice. An effect has a
-- key within its scope. An effect whose scope belongs to a session is removed
-- with it; `session` is 0 where the scope belongs to none. The envelope is the
-- request in canonical form; `checksum` covers the stored outcome. While an
-- effect is in progress, its claim names the caller that runs it; a row without
-- a token waits for its due time or for the next caller. The token stays when
-- the effect is settled, so that finishing it twice is finishing it once.
CREATE TABLE holdfast_effect (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL,
  scope_kind TEXT COLLATE "C" NOT NULL,
  scope TEXT COLLATE "C" NOT NULL,
  replay_key TEXT COLLATE "C" NOT NULL,
  attempt BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  envelope TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  due_at BIGINT,
  fence BIGINT NOT NULL,
  process TEXT COLLATE "C",
  token TEXT COLLATE "C",
  claimed_at BIGINT,
  renewed_at BIGINT,
  expires_at BIGINT,
  settled_at BIGINT,
  is_transient BIGINT,
  outcome TEXT COLLATE "C",
  checksum TEXT COLLATE "C"
);

CREATE UNIQUE INDEX holdfast_effect_replay_key ON holdfast_effect (session, scope_kind, scope, replay_key, attempt);
