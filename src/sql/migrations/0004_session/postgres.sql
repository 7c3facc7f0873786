-- Sessions. A deleted session stays as a tombstone without content; its id may
-- be used again, as the next generation. Its parent stays until it is erased, so
-- that erasing the parent finds it. A session that is being imported looks
-- deleted until it is complete: its generation is below 0 and unique, and
-- `importing_at` is the time of the import's last write. `origin` identifies the
-- imported copy, so that importing it again finds the session.
-- A fork shares the nodes on the path from `fork_top` down to `fork_node`.
-- `agent` takes the turns of the session. `turns` is the number of the last turn,
-- and `open_turn` the id of its run until it ends or gives the turn up.
-- `turn_due_at` is the instant from which that run may begin, 0 for at once, and
-- `turn_batch` the last batch that was queued for it, until it consumes work or
-- another agent is assigned. `stop_turn` equals `open_turn` when it was asked to
-- stop.
CREATE TABLE holdfast_session (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  generation BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  deleted_at BIGINT,
  reclaimed_at BIGINT,
  importing_at BIGINT,
  name TEXT COLLATE "C",
  model TEXT COLLATE "C",
  cwd TEXT COLLATE "C",
  parent TEXT COLLATE "C",
  caused_by TEXT COLLATE "C",
  origin TEXT COLLATE "C",
  forked_from BIGINT,
  fork_node BIGINT,
  fork_top BIGINT,
  revision BIGINT NOT NULL,
  leaf BIGINT,
  config TEXT COLLATE "C",
  current_frame TEXT COLLATE "C",
  node_count BIGINT NOT NULL,
  user_message_count BIGINT NOT NULL,
  first_user_message TEXT COLLATE "C",
  active_at BIGINT NOT NULL,
  agent TEXT COLLATE "C",
  turns BIGINT NOT NULL DEFAULT 0,
  open_turn TEXT COLLATE "C",
  turn_due_at BIGINT,
  turn_batch BIGINT,
  stop_turn TEXT COLLATE "C"
);

CREATE UNIQUE INDEX holdfast_session_generation ON holdfast_session (id, generation);
CREATE UNIQUE INDEX holdfast_session_living ON holdfast_session (id) WHERE deleted_at IS NULL;
CREATE INDEX holdfast_session_active ON holdfast_session (active_at, id) WHERE deleted_at IS NULL;
CREATE INDEX holdfast_session_agent ON holdfast_session (agent, active_at, id)
  WHERE deleted_at IS NULL AND agent IS NOT NULL;
CREATE INDEX holdfast_session_parent ON holdfast_session (parent, active_at, id)
  WHERE parent IS NOT NULL;
CREATE INDEX holdfast_session_forks ON holdfast_session (forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX holdfast_session_fork_node ON holdfast_session (fork_node) WHERE fork_node IS NOT NULL;
CREATE INDEX holdfast_session_unreclaimed ON holdfast_session (deleted_at)
  WHERE deleted_at IS NOT NULL AND reclaimed_at IS NULL;

-- Entries of the graph: appended, never changed. A parent may belong to the
-- session that this one was forked from. `skip` and `far` are ancestors further
-- up, at the nearest depth that is a multiple of 64 and of 4,096, so that a long
-- path is climbed in few steps. `messages` counts messages of users from the
-- root on, `checksum` covers the stored payload.
CREATE TABLE holdfast_session_node (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  parent BIGINT,
  depth BIGINT NOT NULL,
  skip BIGINT,
  far BIGINT,
  messages BIGINT NOT NULL,
  turn TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C",
  frame TEXT COLLATE "C",
  caused_by TEXT COLLATE "C",
  payload TEXT COLLATE "C",
  checksum TEXT COLLATE "C"
);

CREATE UNIQUE INDEX holdfast_session_node_id ON holdfast_session_node (session, id);
CREATE INDEX holdfast_session_node_order ON holdfast_session_node (session, key);
CREATE INDEX holdfast_session_node_parent ON holdfast_session_node (parent) WHERE parent IS NOT NULL;

-- Nodes that a session no longer shows. Forks made before still show them.
CREATE TABLE holdfast_session_tombstone (
  session BIGINT NOT NULL,
  node BIGINT NOT NULL,
  CONSTRAINT holdfast_session_tombstone_pkey PRIMARY KEY (session, node)
);

CREATE INDEX holdfast_session_tombstone_node ON holdfast_session_tombstone (node);

CREATE TABLE holdfast_session_frame (
  session BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  ordinal BIGINT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  blob TEXT COLLATE "C",
  CONSTRAINT holdfast_session_frame_pkey PRIMARY KEY (session, id)
);

CREATE INDEX holdfast_session_frame_blob ON holdfast_session_frame (blob) WHERE blob IS NOT NULL;

-- The parts of the current checkpoint. An unchanged part keeps its row, with the
-- revision of its last change.
CREATE TABLE holdfast_session_component (
  session BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  blob TEXT COLLATE "C" NOT NULL,
  CONSTRAINT holdfast_session_component_pkey PRIMARY KEY (session, name)
);

CREATE INDEX holdfast_session_component_blob ON holdfast_session_component (blob);

CREATE TABLE holdfast_session_usage (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL,
  turn TEXT COLLATE "C" NOT NULL,
  ordinal BIGINT NOT NULL,
  at BIGINT NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  model TEXT COLLATE "C" NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  cache_read_tokens BIGINT NOT NULL,
  cache_write_tokens BIGINT NOT NULL,
  reasoning_tokens BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_session_usage_turn ON holdfast_session_usage (session, turn, ordinal);
CREATE INDEX holdfast_session_usage_order ON holdfast_session_usage (session, key);

-- Receipts: the answer of a turn's commit, returned again when the commit is repeated.
CREATE TABLE holdfast_session_turn (
  session BIGINT NOT NULL,
  turn TEXT COLLATE "C" NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  parts TEXT COLLATE "C" NOT NULL,
  result TEXT COLLATE "C" NOT NULL,
  committed_at BIGINT NOT NULL,
  CONSTRAINT holdfast_session_turn_pkey PRIMARY KEY (session, turn)
);
