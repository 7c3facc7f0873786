-- One row per execution: its state, equal to the fold over its events and
-- responses. The row exists so that runs that are due are an index lookup.
CREATE TABLE holdfast_execution (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  parent INTEGER,
  role TEXT NOT NULL,
  function TEXT NOT NULL,
  input_hash TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  scheduled_at INTEGER NOT NULL,
  version INTEGER NOT NULL,
  state TEXT NOT NULL,
  lifecycle TEXT NOT NULL,
  due_at INTEGER,
  lease_until INTEGER,
  finished_at INTEGER,
  result_kind TEXT,
  failures INTEGER NOT NULL,
  deaths INTEGER NOT NULL,
  alone_deaths INTEGER NOT NULL DEFAULT 0,
  lock_version INTEGER,
  is_alone INTEGER,
  executor TEXT,
  run TEXT,
  owner TEXT,
  max_retries INTEGER,
  backoff_ms INTEGER,
  backoff_max_ms INTEGER,
  inbox TEXT,
  ordinal INTEGER,
  is_closing INTEGER,
  seen INTEGER,
  wake_at INTEGER,
  responses INTEGER NOT NULL,
  history_from INTEGER NOT NULL,
  responses_from INTEGER NOT NULL DEFAULT 0,
  continuations INTEGER NOT NULL DEFAULT 0,
  pruned_before INTEGER NOT NULL DEFAULT 0,
  code_version TEXT,
  incompatible TEXT,
  concurrency_key TEXT,
  deadline_at INTEGER,
  progress TEXT,
  removing_at INTEGER,
  erased_at INTEGER,
  is_erased INTEGER,
  process INTEGER,
  session INTEGER,
  -- Refuses states that no operation writes. With OR and the most frequent case
  -- first it costs an insert 1 % and an append nothing; CASE or IN would cost more.
  CONSTRAINT holdfast_execution_sound CHECK (
    (role = 'workflow' OR role = 'activity' OR role = 'external')
    AND (lifecycle = 'active' OR (state <> 'finished'
      AND (lifecycle = 'paused' OR lifecycle = 'cancelling' OR lifecycle = 'parked')))
    AND alone_deaths <= deaths AND (is_alone IS NULL OR (is_alone = 1 AND state = 'locked'))
    AND ((state = 'pending' AND due_at IS NOT NULL AND (seen IS NULL) = (wake_at IS NULL))
      OR (state = 'locked' AND executor IS NOT NULL AND run IS NOT NULL AND lease_until IS NOT NULL AND lock_version IS NOT NULL)
      OR (state = 'blocked' AND (inbox IS NULL) = (ordinal IS NULL))
      OR (state = 'finished' AND finished_at IS NOT NULL AND result_kind IS NOT NULL
        AND (result_kind = 'completed' OR result_kind = 'failed' OR result_kind = 'cancelled' OR result_kind = 'timedOut'))))
) STRICT;

CREATE UNIQUE INDEX holdfast_execution_id ON holdfast_execution (id);
-- New runs, and runs that have begun: they share the places of a function, so each kind has its own order.
CREATE INDEX holdfast_execution_new ON holdfast_execution (function, due_at, id)
  WHERE state = 'pending' AND lifecycle IN ('active', 'cancelling') AND incompatible IS NULL AND deaths < 3
    AND backoff_ms IS NULL;
CREATE INDEX holdfast_execution_begun ON holdfast_execution (function, due_at, id)
  WHERE state = 'pending' AND lifecycle IN ('active', 'cancelling') AND incompatible IS NULL AND deaths < 3
    AND backoff_ms IS NOT NULL;
CREATE INDEX holdfast_execution_waiting_key ON holdfast_execution (function, concurrency_key, due_at, id)
  WHERE state = 'pending' AND lifecycle IN ('active', 'cancelling') AND incompatible IS NULL AND deaths < 3;
-- Runs with code versions under which they were parked: for workers of other versions.
CREATE INDEX holdfast_execution_lane ON holdfast_execution (function, lifecycle, incompatible, due_at, id)
  WHERE state = 'pending' AND incompatible IS NOT NULL AND deaths < 3;
-- Suspects: runs whose last three workers died while they held them. Ordinary locks skip them.
CREATE INDEX holdfast_execution_suspect ON holdfast_execution (function, deaths, due_at, id)
  WHERE state = 'pending' AND deaths >= 3 AND lifecycle <> 'paused'
    AND (lifecycle <> 'parked' OR incompatible IS NOT NULL);
CREATE INDEX holdfast_execution_expiry ON holdfast_execution (lease_until, id) WHERE state = 'locked';
CREATE INDEX holdfast_execution_holder ON holdfast_execution (owner, lease_until) WHERE lease_until IS NOT NULL;
-- Running executions, counted against the limits of a function and its keys.
CREATE INDEX holdfast_execution_running ON holdfast_execution (function, concurrency_key) WHERE state = 'locked';
CREATE INDEX holdfast_execution_deadline ON holdfast_execution (deadline_at, id)
  WHERE deadline_at IS NOT NULL AND state <> 'finished' AND lifecycle <> 'cancelling';
CREATE INDEX holdfast_execution_created ON holdfast_execution (created_at, id);
CREATE INDEX holdfast_execution_top ON holdfast_execution (created_at, id) WHERE parent IS NULL;
CREATE INDEX holdfast_execution_function ON holdfast_execution (function, created_at, id);
CREATE INDEX holdfast_execution_parent ON holdfast_execution (parent, created_at, id) WHERE parent IS NOT NULL;
CREATE INDEX holdfast_execution_open ON holdfast_execution (created_at, id) WHERE state <> 'finished';
-- The few that are paused, being cancelled or parked, and that may need a person.
CREATE INDEX holdfast_execution_interrupted ON holdfast_execution (lifecycle, created_at, id)
  WHERE lifecycle <> 'active';
-- On an expression, not the bare column: otherwise the planner would choose this index for a worker's search by function and key.
CREATE INDEX holdfast_execution_key ON holdfast_execution ((concurrency_key || ''), created_at, id)
  WHERE concurrency_key IS NOT NULL;
CREATE INDEX holdfast_execution_result ON holdfast_execution (result_kind, created_at, id)
  WHERE state = 'finished';
CREATE INDEX holdfast_execution_retention ON holdfast_execution (function, finished_at, id)
  WHERE state = 'finished' AND parent IS NULL;
-- Questions that can still be answered, in the order of lists.
CREATE INDEX holdfast_execution_question ON holdfast_execution (created_at, id)
  WHERE role = 'external' AND state <> 'finished';
-- Finds an unfinished descendant of an execution in one lookup, for a tree of any size.
CREATE INDEX holdfast_execution_open_child ON holdfast_execution (id)
  WHERE parent IS NOT NULL AND state <> 'finished';
-- The tombstone of an erased run (is_erased) has nothing left to remove.
CREATE INDEX holdfast_execution_removing ON holdfast_execution (id) WHERE removing_at IS NOT NULL AND is_erased IS NULL;
-- Executions spawned for a process that is not pruned yet: retention keeps them.
CREATE INDEX holdfast_execution_process ON holdfast_execution (id) WHERE process IS NOT NULL;
-- Turns of sessions.
CREATE INDEX holdfast_execution_session ON holdfast_execution (session, id) WHERE session IS NOT NULL;
CREATE INDEX holdfast_execution_cancelling ON holdfast_execution (function, id) WHERE lifecycle = 'cancelling';

-- The events of an execution, in order: appended, never changed. Nothing refers
-- to the number of a row, here and in the two tables below, so it may be reused:
-- a sequence that never reuses numbers costs about 1 µs of each insert.
-- `responses` is the number of responses before the event, which gives events
-- and responses one order. `withdrawn` lists the delays, by set and index, that
-- the append withdrew whose last event this is.
CREATE TABLE holdfast_execution_event (
  seq INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  version INTEGER NOT NULL,
  at INTEGER NOT NULL,
  responses INTEGER NOT NULL,
  kind TEXT NOT NULL,
  call INTEGER NOT NULL,
  seen INTEGER NOT NULL,
  inbox TEXT,
  ordinal INTEGER,
  withdrawn TEXT,
  body TEXT NOT NULL,
  payload TEXT
) STRICT;

CREATE UNIQUE INDEX holdfast_execution_event_version ON holdfast_execution_event (execution, version);
-- The n-th question to an inbox (a join set, or a signal) meets its n-th response.
CREATE UNIQUE INDEX holdfast_execution_event_ordinal ON holdfast_execution_event (execution, inbox, ordinal)
  WHERE ordinal IS NOT NULL;

-- Responses that reached an execution, numbered in one order. The result of a
-- child is not copied: it is in the child's log. `read_by` is the number of the
-- run that read a signal, written when a new run starts under the id.
CREATE TABLE holdfast_execution_response (
  key INTEGER PRIMARY KEY,
  execution INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,
  inbox TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  source TEXT NOT NULL,
  outcome TEXT NOT NULL,
  child INTEGER,
  finished_version INTEGER,
  value_hash TEXT,
  payload TEXT,
  read_by INTEGER,
  CONSTRAINT holdfast_execution_response_sound CHECK (kind = 'child' OR kind = 'delay' OR kind = 'signal')
) STRICT;

CREATE UNIQUE INDEX holdfast_execution_response_seq ON holdfast_execution_response (execution, seq);
CREATE UNIQUE INDEX holdfast_execution_response_source ON holdfast_execution_response (execution, source);
CREATE UNIQUE INDEX holdfast_execution_response_ordinal ON holdfast_execution_response (execution, inbox, ordinal);
-- Signals that a new start takes over, found without passing those already read.
CREATE INDEX holdfast_execution_response_unread ON holdfast_execution_response (execution, seq)
  WHERE kind = 'signal' AND read_by IS NULL;

-- Delays that are not answered yet.
CREATE TABLE holdfast_execution_delay (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  execution INTEGER NOT NULL,
  inbox TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  is_paused INTEGER NOT NULL,
  CONSTRAINT holdfast_execution_delay_sound CHECK (is_paused = 0 OR is_paused = 1)
) STRICT;

CREATE UNIQUE INDEX holdfast_execution_delay_id ON holdfast_execution_delay (id);
CREATE INDEX holdfast_execution_delay_expiry ON holdfast_execution_delay (expires_at, id) WHERE is_paused = 0;
CREATE INDEX holdfast_execution_delay_execution ON holdfast_execution_delay (execution, is_paused, expires_at);

CREATE TABLE holdfast_execution_tag (
  tag TEXT NOT NULL,
  execution INTEGER NOT NULL,
  CONSTRAINT holdfast_execution_tag_pkey PRIMARY KEY (tag, execution)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_execution_tag_execution ON holdfast_execution_tag (execution, tag);

-- Lines written by user code and by workers about one execution.
CREATE TABLE holdfast_execution_log (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  execution INTEGER NOT NULL,
  at INTEGER NOT NULL,
  run TEXT,
  step TEXT,
  attempt INTEGER,
  level TEXT NOT NULL,
  message TEXT NOT NULL,
  payload TEXT,
  CONSTRAINT holdfast_execution_log_sound CHECK (
    level = 'info' OR level = 'debug' OR level = 'warn' OR level = 'error' OR level = 'trace')
) STRICT;

CREATE INDEX holdfast_execution_log_execution ON holdfast_execution_log (execution, key);

-- The stack in user code behind a range of events; equal texts are kept once.
CREATE TABLE holdfast_execution_stack (
  hash TEXT NOT NULL CONSTRAINT holdfast_execution_stack_pkey PRIMARY KEY,
  stack TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_execution_backtrace (
  execution INTEGER NOT NULL,
  version_from INTEGER NOT NULL,
  version_to INTEGER NOT NULL,
  hash TEXT NOT NULL,
  CONSTRAINT holdfast_execution_backtrace_pkey PRIMARY KEY (execution, version_from)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_execution_backtrace_hash ON holdfast_execution_backtrace (hash);

-- A row that is locked while the running executions of a function are counted.
CREATE TABLE holdfast_execution_limit (
  name TEXT NOT NULL CONSTRAINT holdfast_execution_limit_pkey PRIMARY KEY
) STRICT, WITHOUT ROWID;
