-- Background work that outlives the turn that started it. The row equals the
-- fold over its events and is written in their transaction. A pruned process
-- stays as a tombstone with its name and end.
CREATE TABLE holdfast_process (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  hash TEXT NOT NULL,
  parts TEXT NOT NULL,
  kind TEXT NOT NULL,
  label TEXT,
  definition TEXT,
  environment TEXT,
  disposition TEXT NOT NULL,
  attempts_max INTEGER,
  originator_session TEXT,
  originator_generation INTEGER,
  originator_frame TEXT,
  caused_by TEXT,
  wake_session TEXT,
  wake_generation INTEGER,
  wake_frame TEXT,
  event_types TEXT,
  input TEXT,
  execution INTEGER,
  execution_id TEXT,
  end_wakes TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  status TEXT NOT NULL,
  started_at INTEGER,
  attempts INTEGER NOT NULL,
  cancel_requested_at INTEGER,
  wait TEXT,
  external_sequence INTEGER,
  ended_at INTEGER,
  ended_sequence INTEGER,
  pruned_at INTEGER,
  is_pruning INTEGER NOT NULL,
  CONSTRAINT holdfast_process_sound CHECK (
    (disposition = 'rerunnable' OR disposition = 'ownerBound' OR disposition = 'external')
    AND (is_pruning = 0 OR is_pruning = 1)
    AND ((status = 'running' AND ended_sequence IS NULL)
      OR (ended_sequence IS NOT NULL
        AND (status = 'completed' OR status = 'failed' OR status = 'cancelled' OR status = 'abandoned'))))
) STRICT;

CREATE UNIQUE INDEX holdfast_process_id ON holdfast_process (id);
CREATE INDEX holdfast_process_status ON holdfast_process (status, id);
-- Indexes for workers. The status leads, and the smaller index comes last, since
-- SQLite would otherwise choose the one above.
CREATE INDEX holdfast_process_worklist ON holdfast_process (status, id)
  WHERE status = 'running' AND execution IS NULL;
CREATE INDEX holdfast_process_unstarted ON holdfast_process (status, id)
  WHERE status = 'running' AND execution IS NULL AND started_at IS NULL;
CREATE INDEX holdfast_process_started ON holdfast_process (status, id)
  WHERE status = 'running' AND execution IS NULL AND started_at IS NOT NULL;
-- Indexes for lists: of one status, or of any.
CREATE INDEX holdfast_process_kind ON holdfast_process (kind, id);
CREATE INDEX holdfast_process_kind_status ON holdfast_process (kind, status, id);
CREATE INDEX holdfast_process_definition ON holdfast_process (definition, id) WHERE definition IS NOT NULL;
CREATE INDEX holdfast_process_definition_status ON holdfast_process (definition, status, id)
  WHERE definition IS NOT NULL;
-- Finds the blobs that are the environment of a process, for collecting.
CREATE INDEX holdfast_process_environment ON holdfast_process (environment) WHERE environment IS NOT NULL;
CREATE INDEX holdfast_process_waiting ON holdfast_process (status, id) WHERE status = 'running' AND wait IS NOT NULL;
CREATE INDEX holdfast_process_wake_target ON holdfast_process (wake_session, wake_generation)
  WHERE wake_session IS NOT NULL;
CREATE INDEX holdfast_process_ended ON holdfast_process (ended_at, key) WHERE ended_at IS NOT NULL AND pruned_at IS NULL;
CREATE INDEX holdfast_process_pruning ON holdfast_process (key) WHERE is_pruning = 1;

-- The events of a process, in order: appended, never changed. The first event,
-- number 0, is the registration. The result of an execution is not copied:
-- `execution_version` is its position in the log of the execution.
CREATE TABLE holdfast_process_event (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  process INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  at INTEGER NOT NULL,
  type TEXT NOT NULL,
  ordinal INTEGER,
  replay_key TEXT,
  hash TEXT NOT NULL,
  body TEXT NOT NULL,
  payload TEXT,
  output TEXT,
  output_checksum TEXT,
  wake TEXT,
  execution_version INTEGER,
  tx INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE UNIQUE INDEX holdfast_process_event_sequence ON holdfast_process_event (process, sequence);
CREATE UNIQUE INDEX holdfast_process_event_replay ON holdfast_process_event (process, replay_key)
  WHERE replay_key IS NOT NULL;
CREATE INDEX holdfast_process_event_type ON holdfast_process_event (process, type, sequence);
CREATE UNIQUE INDEX holdfast_process_event_ordinal ON holdfast_process_event (process, type, ordinal)
  WHERE ordinal IS NOT NULL;
CREATE INDEX holdfast_process_event_wake ON holdfast_process_event (process, sequence) WHERE wake IS NOT NULL;
CREATE INDEX holdfast_process_event_feed ON holdfast_process_event (tx, key);

-- The sessions, or single frames of them, that may address a process.
CREATE TABLE holdfast_process_grant (
  process INTEGER NOT NULL,
  session TEXT NOT NULL,
  generation INTEGER NOT NULL,
  frame TEXT NOT NULL,
  kind TEXT,
  label TEXT,
  granted_at INTEGER NOT NULL,
  CONSTRAINT holdfast_process_grant_pkey PRIMARY KEY (process, session, generation, frame)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_process_grant_session ON holdfast_process_grant (session, generation, frame, process);

-- The lease of a process. Without a holder the row stays and keeps the last fence.
CREATE TABLE holdfast_process_lease (
  process INTEGER NOT NULL CONSTRAINT holdfast_process_lease_pkey PRIMARY KEY,
  fence INTEGER NOT NULL,
  given_back INTEGER NOT NULL,
  owner TEXT,
  incarnation TEXT,
  owner_process TEXT,
  token TEXT,
  claimed_at INTEGER,
  renewed_at INTEGER,
  expires_at INTEGER,
  CONSTRAINT holdfast_process_lease_sound CHECK (token IS NULL OR (owner IS NOT NULL AND incarnation IS NOT NULL
    AND claimed_at IS NOT NULL AND renewed_at IS NOT NULL AND expires_at IS NOT NULL))
) STRICT;

-- The effect of a session's deletion on processes. It stays with the tombstone,
-- so that a caller that lost the answer can ask again.
CREATE TABLE holdfast_process_session_end (
  session INTEGER NOT NULL CONSTRAINT holdfast_process_session_end_pkey PRIMARY KEY,
  report TEXT NOT NULL
) STRICT;
