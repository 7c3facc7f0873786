-- Work done outside the database that must not be done twice. An effect has a
-- key within its scope. An effect whose scope belongs to a session is removed
-- with it; `session` is 0 where the scope belongs to none. The envelope is the
-- request in canonical form; `checksum` covers the stored outcome. While an
-- effect is in progress, its claim names the caller that runs it; a row without
-- a token waits for its due time or for the next caller. The token stays when
-- the effect is settled, so that finishing it twice is finishing it once.
-- Keys of removed rows may be reused, which saves each effect a lookup in the
-- list of sequences: no caller is trusted because of a key.
CREATE TABLE holdfast_effect (
  key INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  scope_kind TEXT NOT NULL,
  scope TEXT NOT NULL,
  replay_key TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  kind TEXT NOT NULL,
  hash TEXT NOT NULL,
  envelope TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  due_at INTEGER,
  fence INTEGER NOT NULL,
  process TEXT,
  token TEXT,
  claimed_at INTEGER,
  renewed_at INTEGER,
  expires_at INTEGER,
  settled_at INTEGER,
  is_transient INTEGER,
  outcome TEXT,
  checksum TEXT,
  CONSTRAINT holdfast_effect_sound CHECK (status = 'inProgress'
    OR ((status = 'completed' OR status = 'failed') AND token IS NOT NULL AND settled_at IS NOT NULL AND outcome IS NOT NULL
      AND checksum IS NOT NULL))
) STRICT;

CREATE UNIQUE INDEX holdfast_effect_replay_key ON holdfast_effect (session, scope_kind, scope, replay_key, attempt);
