-- What was done outside of the database and must not be done twice. An effect
-- has a key within its scope; one whose scope belongs to a session dies with
-- it, and `session` is 0 where it belongs to none. The envelope is what was
-- asked for, in canonical form; `checksum` is of the stored outcome. While an effect is in progress its claim tells
-- who is at it; a row without a token waits for its due time or for the next
-- who comes. The token stays when it is settled, so that finishing it twice is
-- finishing it once. Keys of removed rows may be given again, which spares each
-- effect a look at the list of sequences: nobody is believed for a key alone.
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
