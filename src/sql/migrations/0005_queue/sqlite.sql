-- The lease of a session. Without a holder the row stays and keeps the last
-- fence, so that no fence is used twice. `given_back` has a bit for each earlier
-- lease that was released, the last one lowest.
CREATE TABLE holdfast_session_lease (
  session INTEGER NOT NULL CONSTRAINT holdfast_session_lease_pkey PRIMARY KEY,
  fence INTEGER NOT NULL,
  given_back INTEGER NOT NULL,
  owner TEXT,
  incarnation TEXT,
  process TEXT,
  token TEXT,
  claimed_at INTEGER,
  renewed_at INTEGER,
  expires_at INTEGER,
  CONSTRAINT holdfast_session_lease_sound CHECK (token IS NULL OR (owner IS NOT NULL AND incarnation IS NOT NULL
    AND claimed_at IS NOT NULL AND renewed_at IS NOT NULL AND expires_at IS NOT NULL))
) STRICT;

-- Batches that wait for a session's next turn, in the order of keys. A claim is
-- valid as long as the session's lease has its fence. `claim_size` is the number
-- of batches in the claim, so that it can only be completed as a whole. A claim of
-- a turn has the id of its run in `turn` instead of a fence, and is valid until
-- that turn ends. `failed_turns` counts the turns that had the batch and ended
-- without consuming it. Such a batch is held back until more work is sent.
CREATE TABLE holdfast_queue_batch (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  session INTEGER NOT NULL,
  source_key TEXT,
  process TEXT,
  sequence INTEGER,
  dedupe_key TEXT,
  class TEXT NOT NULL,
  delivery TEXT NOT NULL,
  slot TEXT NOT NULL,
  merge_key TEXT,
  available_at INTEGER NOT NULL,
  enqueued_at INTEGER NOT NULL,
  claim TEXT,
  claim_fence INTEGER,
  claim_size INTEGER,
  turn TEXT,
  failed_turns INTEGER NOT NULL DEFAULT 0,
  is_held_back INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT holdfast_queue_batch_sound CHECK (
    (class = 'turn' OR class = 'command') AND (slot = 'exclusive' OR slot = 'join')
    AND (delivery = 'afterTurnCommit' OR delivery = 'earliestSafeBoundary')
    AND (turn IS NULL OR (claim IS NOT NULL AND claim_fence IS NULL))
    AND (claim IS NULL OR ((claim_fence IS NOT NULL OR turn IS NOT NULL) AND claim_size IS NOT NULL))
    AND failed_turns >= 0 AND (is_held_back = 0 OR (is_held_back = 1 AND failed_turns > 0)))
) STRICT;

CREATE UNIQUE INDEX holdfast_queue_batch_id ON holdfast_queue_batch (session, id);
CREATE INDEX holdfast_queue_batch_order ON holdfast_queue_batch (session, key);
CREATE UNIQUE INDEX holdfast_queue_batch_source ON holdfast_queue_batch (session, source_key)
  WHERE source_key IS NOT NULL;
CREATE UNIQUE INDEX holdfast_queue_batch_wake ON holdfast_queue_batch (session, process, sequence)
  WHERE process IS NOT NULL;
CREATE INDEX holdfast_queue_batch_claim ON holdfast_queue_batch (session, claim_fence, claim, key)
  WHERE claim IS NOT NULL;
CREATE INDEX holdfast_queue_batch_turn ON holdfast_queue_batch (session, turn, key) WHERE turn IS NOT NULL;
CREATE INDEX holdfast_queue_batch_later ON holdfast_queue_batch (session, available_at) WHERE available_at > 0;

-- `checksum` covers the stored payload.
CREATE TABLE holdfast_queue_item (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  batch INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  kind TEXT NOT NULL,
  payload TEXT NOT NULL,
  checksum TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX holdfast_queue_item_batch ON holdfast_queue_item (batch, ordinal);

-- Source keys of batches that have left the queue, remembered for a while, so
-- that a repeated enqueue is not delivered again.
CREATE TABLE holdfast_queue_consumed (
  session INTEGER NOT NULL,
  source_key TEXT NOT NULL,
  at INTEGER NOT NULL,
  CONSTRAINT holdfast_queue_consumed_pkey PRIMARY KEY (session, source_key)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_queue_consumed_age ON holdfast_queue_consumed (at);

-- The same for wakes, which a process sends in the order of their numbers: the
-- last number covers all before it.
CREATE TABLE holdfast_queue_wake_mark (
  session INTEGER NOT NULL,
  process TEXT NOT NULL,
  sequence INTEGER NOT NULL,
  CONSTRAINT holdfast_queue_wake_mark_pkey PRIMARY KEY (session, process)
) STRICT, WITHOUT ROWID;

-- The last claims of a session that were completed outside a commit, under the
-- lease of that time, so that a repetition is distinguished from an invalid
-- claim. `batches` holds the sorted ids of the claimed batches.
CREATE TABLE holdfast_queue_completed (
  session INTEGER NOT NULL,
  number INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  claim TEXT NOT NULL,
  batches TEXT NOT NULL,
  CONSTRAINT holdfast_queue_completed_pkey PRIMARY KEY (session, number)
) STRICT, WITHOUT ROWID;

-- Queued wakes with a dedupe key, by which they coalesce.
CREATE INDEX holdfast_queue_batch_dedupe ON holdfast_queue_batch (session, dedupe_key, key)
  WHERE dedupe_key IS NOT NULL;
