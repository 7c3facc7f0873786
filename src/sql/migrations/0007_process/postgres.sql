-- Background work that outlives the turn that started it. The row equals the
-- fold over its events and is written in their transaction. A pruned process
-- stays as a tombstone with its name and end.
CREATE TABLE holdfast_process (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  parts TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  label TEXT COLLATE "C",
  definition TEXT COLLATE "C",
  environment TEXT COLLATE "C",
  disposition TEXT COLLATE "C" NOT NULL,
  attempts_max BIGINT,
  originator_session TEXT COLLATE "C",
  originator_generation BIGINT,
  originator_frame TEXT COLLATE "C",
  caused_by TEXT COLLATE "C",
  wake_session TEXT COLLATE "C",
  wake_generation BIGINT,
  wake_frame TEXT COLLATE "C",
  event_types TEXT COLLATE "C",
  input TEXT COLLATE "C",
  execution BIGINT,
  execution_id TEXT COLLATE "C",
  end_wakes TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  started_at BIGINT,
  attempts BIGINT NOT NULL,
  cancel_requested_at BIGINT,
  wait TEXT COLLATE "C",
  external_sequence BIGINT,
  ended_at BIGINT,
  ended_sequence BIGINT,
  pruned_at BIGINT,
  is_pruning BIGINT NOT NULL
)
WITH (fillfactor = 80);

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
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  process BIGINT NOT NULL,
  sequence BIGINT NOT NULL,
  at BIGINT NOT NULL,
  type TEXT COLLATE "C" NOT NULL,
  ordinal BIGINT,
  replay_key TEXT COLLATE "C",
  hash TEXT COLLATE "C" NOT NULL,
  body TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C",
  output TEXT COLLATE "C",
  output_checksum TEXT COLLATE "C",
  wake TEXT COLLATE "C",
  execution_version BIGINT,
  tx XID8 NOT NULL DEFAULT pg_current_xact_id()
);

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
  process BIGINT NOT NULL,
  session TEXT COLLATE "C" NOT NULL,
  generation BIGINT NOT NULL,
  frame TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C",
  label TEXT COLLATE "C",
  granted_at BIGINT NOT NULL,
  CONSTRAINT holdfast_process_grant_pkey PRIMARY KEY (process, session, generation, frame)
);

CREATE INDEX holdfast_process_grant_session ON holdfast_process_grant (session, generation, frame, process);

-- The lease of a process. Without a holder the row stays and keeps the last fence.
CREATE TABLE holdfast_process_lease (
  process BIGINT NOT NULL CONSTRAINT holdfast_process_lease_pkey PRIMARY KEY,
  fence BIGINT NOT NULL,
  given_back BIGINT NOT NULL,
  owner TEXT COLLATE "C",
  incarnation TEXT COLLATE "C",
  owner_process TEXT COLLATE "C",
  token TEXT COLLATE "C",
  claimed_at BIGINT,
  renewed_at BIGINT,
  expires_at BIGINT
);

-- The effect of a session's deletion on processes. It stays with the tombstone,
-- so that a caller that lost the answer can ask again.
CREATE TABLE holdfast_process_session_end (
  session BIGINT NOT NULL CONSTRAINT holdfast_process_session_end_pkey PRIMARY KEY,
  report TEXT COLLATE "C" NOT NULL
);
