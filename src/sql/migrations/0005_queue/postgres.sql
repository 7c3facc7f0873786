-- The lease of a session. Without a holder the row stays and keeps the last
-- fence, so that no fence is used twice. `given_back` has a bit for each earlier
-- lease that was released, the last one lowest.
CREATE TABLE holdfast_session_lease (
  session BIGINT NOT NULL CONSTRAINT holdfast_session_lease_pkey PRIMARY KEY,
  fence BIGINT NOT NULL,
  given_back BIGINT NOT NULL,
  owner TEXT COLLATE "C",
  incarnation TEXT COLLATE "C",
  process TEXT COLLATE "C",
  token TEXT COLLATE "C",
  claimed_at BIGINT,
  renewed_at BIGINT,
  expires_at BIGINT
);

-- Batches that wait for a session's next turn, in the order of keys. A claim is
-- valid as long as the session's lease has its fence. `claim_size` is the number
-- of batches in the claim, so that it can only be completed as a whole. A claim of
-- a turn has the id of its run in `turn` instead of a fence, and is valid until
-- that turn ends. `failed_turns` counts the turns that had the batch and ended
-- without consuming it. Such a batch is held back until more work is sent.
CREATE TABLE holdfast_queue_batch (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  session BIGINT NOT NULL,
  source_key TEXT COLLATE "C",
  process TEXT COLLATE "C",
  sequence BIGINT,
  dedupe_key TEXT COLLATE "C",
  class TEXT COLLATE "C" NOT NULL,
  delivery TEXT COLLATE "C" NOT NULL,
  slot TEXT COLLATE "C" NOT NULL,
  merge_key TEXT COLLATE "C",
  available_at BIGINT NOT NULL,
  enqueued_at BIGINT NOT NULL,
  claim TEXT COLLATE "C",
  claim_fence BIGINT,
  claim_size BIGINT,
  turn TEXT COLLATE "C",
  failed_turns BIGINT NOT NULL DEFAULT 0,
  is_held_back BIGINT NOT NULL DEFAULT 0
);

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
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  batch BIGINT NOT NULL,
  ordinal BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  checksum TEXT COLLATE "C" NOT NULL
);

CREATE UNIQUE INDEX holdfast_queue_item_batch ON holdfast_queue_item (batch, ordinal);

-- Source keys of batches that have left the queue, remembered for a while, so
-- that a repeated enqueue is not delivered again.
CREATE TABLE holdfast_queue_consumed (
  session BIGINT NOT NULL,
  source_key TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT holdfast_queue_consumed_pkey PRIMARY KEY (session, source_key)
);

CREATE INDEX holdfast_queue_consumed_age ON holdfast_queue_consumed (at);

-- The same for wakes, which a process sends in the order of their numbers: the
-- last number covers all before it.
CREATE TABLE holdfast_queue_wake_mark (
  session BIGINT NOT NULL,
  process TEXT COLLATE "C" NOT NULL,
  sequence BIGINT NOT NULL,
  CONSTRAINT holdfast_queue_wake_mark_pkey PRIMARY KEY (session, process)
);

-- The last claims of a session that were completed outside a commit, under the
-- lease of that time, so that a repetition is distinguished from an invalid
-- claim. `batches` holds the sorted ids of the claimed batches.
CREATE TABLE holdfast_queue_completed (
  session BIGINT NOT NULL,
  number BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  claim TEXT COLLATE "C" NOT NULL,
  batches TEXT COLLATE "C" NOT NULL,
  CONSTRAINT holdfast_queue_completed_pkey PRIMARY KEY (session, number)
);

-- Queued wakes with a dedupe key, by which they coalesce.
CREATE INDEX holdfast_queue_batch_dedupe ON holdfast_queue_batch (session, dedupe_key, key)
  WHERE dedupe_key IS NOT NULL;
