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
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  generation INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  deleted_at INTEGER,
  reclaimed_at INTEGER,
  importing_at INTEGER,
  name TEXT,
  model TEXT,
  cwd TEXT,
  parent TEXT,
  caused_by TEXT,
  origin TEXT,
  forked_from INTEGER,
  fork_node INTEGER,
  fork_top INTEGER,
  revision INTEGER NOT NULL,
  leaf INTEGER,
  config TEXT,
  current_frame TEXT,
  node_count INTEGER NOT NULL,
  user_message_count INTEGER NOT NULL,
  first_user_message TEXT,
  active_at INTEGER NOT NULL,
  agent TEXT,
  turns INTEGER NOT NULL DEFAULT 0,
  open_turn TEXT,
  turn_due_at INTEGER,
  turn_batch INTEGER,
  stop_turn TEXT,
  CONSTRAINT holdfast_session_sound CHECK (
    (fork_node IS NULL) = (fork_top IS NULL)
    AND (deleted_at IS NOT NULL OR (reclaimed_at IS NULL AND importing_at IS NULL))
    AND revision >= 0 AND node_count >= 0 AND user_message_count >= 0
    AND (open_turn IS NULL) = (turn_due_at IS NULL) AND (stop_turn IS NULL OR stop_turn = open_turn)
    AND turns >= 0 AND (open_turn IS NULL OR (turns > 0 AND deleted_at IS NULL)))
) STRICT;

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
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  parent INTEGER,
  depth INTEGER NOT NULL,
  skip INTEGER,
  far INTEGER,
  messages INTEGER NOT NULL,
  turn TEXT NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  role TEXT,
  frame TEXT,
  caused_by TEXT,
  payload TEXT,
  checksum TEXT
) STRICT;

CREATE UNIQUE INDEX holdfast_session_node_id ON holdfast_session_node (session, id);
CREATE INDEX holdfast_session_node_order ON holdfast_session_node (session, key);
CREATE INDEX holdfast_session_node_parent ON holdfast_session_node (parent) WHERE parent IS NOT NULL;

-- Nodes that a session no longer shows. Forks made before still show them.
CREATE TABLE holdfast_session_tombstone (
  session INTEGER NOT NULL,
  node INTEGER NOT NULL,
  CONSTRAINT holdfast_session_tombstone_pkey PRIMARY KEY (session, node)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_session_tombstone_node ON holdfast_session_tombstone (node);

CREATE TABLE holdfast_session_frame (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  hash TEXT NOT NULL,
  payload TEXT NOT NULL,
  blob TEXT,
  CONSTRAINT holdfast_session_frame_pkey PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_session_frame_blob ON holdfast_session_frame (blob) WHERE blob IS NOT NULL;

-- The parts of the current checkpoint. An unchanged part keeps its row, with the
-- revision of its last change.
CREATE TABLE holdfast_session_component (
  session INTEGER NOT NULL,
  name TEXT NOT NULL,
  version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  hash TEXT NOT NULL,
  blob TEXT NOT NULL,
  CONSTRAINT holdfast_session_component_pkey PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_session_component_blob ON holdfast_session_component (blob);

CREATE TABLE holdfast_session_usage (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  turn TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  at INTEGER NOT NULL,
  source TEXT NOT NULL,
  model TEXT NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL,
  cache_write_tokens INTEGER NOT NULL,
  reasoning_tokens INTEGER NOT NULL,
  CONSTRAINT holdfast_session_usage_sound CHECK (
    input_tokens >= 0 AND output_tokens >= 0 AND cache_read_tokens >= 0 AND cache_write_tokens >= 0 AND reasoning_tokens >= 0)
) STRICT;

CREATE UNIQUE INDEX holdfast_session_usage_turn ON holdfast_session_usage (session, turn, ordinal);
CREATE INDEX holdfast_session_usage_order ON holdfast_session_usage (session, key);

-- Receipts: the answer of a turn's commit, returned again when the commit is repeated.
CREATE TABLE holdfast_session_turn (
  session INTEGER NOT NULL,
  turn TEXT NOT NULL,
  hash TEXT NOT NULL,
  parts TEXT NOT NULL,
  result TEXT NOT NULL,
  committed_at INTEGER NOT NULL,
  CONSTRAINT holdfast_session_turn_pkey PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;
