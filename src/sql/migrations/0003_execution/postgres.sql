-- Differs because Postgres parses the text of a check again for every statement.
-- An insert of one row, which takes 9 to 80 µs without a check, took 8 µs more
-- with the shortest check, 23 with five values and 80 with that of executions.
-- So only SQLite checks states, here and in all later migrations.
-- One row per execution: its state, equal to the fold over its events and
-- responses. The row exists so that runs that are due are an index lookup.
CREATE TABLE holdfast_execution (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  parent BIGINT,
  role TEXT COLLATE "C" NOT NULL,
  function TEXT COLLATE "C" NOT NULL,
  input_hash TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  scheduled_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  lifecycle TEXT COLLATE "C" NOT NULL,
  due_at BIGINT,
  lease_until BIGINT,
  finished_at BIGINT,
  result_kind TEXT COLLATE "C",
  failures BIGINT NOT NULL,
  deaths BIGINT NOT NULL,
  alone_deaths BIGINT NOT NULL DEFAULT 0,
  lock_version BIGINT,
  is_alone BIGINT,
  executor TEXT COLLATE "C",
  run TEXT COLLATE "C",
  owner TEXT COLLATE "C",
  max_retries BIGINT,
  backoff_ms BIGINT,
  backoff_max_ms BIGINT,
  inbox TEXT COLLATE "C",
  ordinal BIGINT,
  is_closing BIGINT,
  seen BIGINT,
  wake_at BIGINT,
  responses BIGINT NOT NULL,
  history_from BIGINT NOT NULL,
  responses_from BIGINT NOT NULL DEFAULT 0,
  continuations BIGINT NOT NULL DEFAULT 0,
  pruned_before BIGINT NOT NULL DEFAULT 0,
  code_version TEXT COLLATE "C",
  incompatible TEXT COLLATE "C",
  concurrency_key TEXT COLLATE "C",
  deadline_at BIGINT,
  progress TEXT COLLATE "C",
  removing_at BIGINT,
  erased_at BIGINT,
  is_erased BIGINT,
  process BIGINT,
  session BIGINT
)
-- Room on each page, so that a new version of a row needs no new index entries.
WITH (fillfactor = 70);

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

-- The events of an execution, in order: appended, never changed.
-- `responses` is the number of responses before the event, which gives events
-- and responses one order. `withdrawn` lists the delays, by set and index, that
-- the append withdrew whose last event this is.
CREATE TABLE holdfast_execution_event (
  seq BIGINT GENERATED ALWAYS AS IDENTITY,
  execution BIGINT NOT NULL,
  version BIGINT NOT NULL,
  at BIGINT NOT NULL,
  responses BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  call BIGINT NOT NULL,
  seen BIGINT NOT NULL,
  inbox TEXT COLLATE "C",
  ordinal BIGINT,
  withdrawn TEXT COLLATE "C",
  body TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C"
);

CREATE UNIQUE INDEX holdfast_execution_event_version ON holdfast_execution_event (execution, version);
-- The n-th question to an inbox (a join set, or a signal) meets its n-th response.
CREATE UNIQUE INDEX holdfast_execution_event_ordinal ON holdfast_execution_event (execution, inbox, ordinal)
  WHERE ordinal IS NOT NULL;

-- Responses that reached an execution, numbered in one order. The result of a
-- child is not copied: it is in the child's log. `read_by` is the number of the
-- run that read a signal, written when a new run starts under the id.
CREATE TABLE holdfast_execution_response (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  at BIGINT NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  inbox TEXT COLLATE "C" NOT NULL,
  ordinal BIGINT NOT NULL,
  source TEXT COLLATE "C" NOT NULL,
  outcome TEXT COLLATE "C" NOT NULL,
  child BIGINT,
  finished_version BIGINT,
  value_hash TEXT COLLATE "C",
  payload TEXT COLLATE "C",
  read_by BIGINT
);

CREATE UNIQUE INDEX holdfast_execution_response_seq ON holdfast_execution_response (execution, seq);
CREATE UNIQUE INDEX holdfast_execution_response_source ON holdfast_execution_response (execution, source);
CREATE UNIQUE INDEX holdfast_execution_response_ordinal ON holdfast_execution_response (execution, inbox, ordinal);
-- Signals that a new start takes over, found without passing those already read.
CREATE INDEX holdfast_execution_response_unread ON holdfast_execution_response (execution, seq)
  WHERE kind = 'signal' AND read_by IS NULL;
-- Differs because the planner relies on statistics. Where most executions have
-- one response, it chooses any index that begins with the execution; each answer
-- to one with thousands of children then reads all of its responses. So the
-- statistics are set to twenty responses each.
ALTER TABLE holdfast_execution_response ALTER COLUMN execution SET (n_distinct = -0.05);

-- Delays that are not answered yet.
CREATE TABLE holdfast_execution_delay (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  execution BIGINT NOT NULL,
  inbox TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  is_paused BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_execution_delay_id ON holdfast_execution_delay (id);
CREATE INDEX holdfast_execution_delay_expiry ON holdfast_execution_delay (expires_at, id) WHERE is_paused = 0;
CREATE INDEX holdfast_execution_delay_execution ON holdfast_execution_delay (execution, is_paused, expires_at);

CREATE TABLE holdfast_execution_tag (
  tag TEXT COLLATE "C" NOT NULL,
  execution BIGINT NOT NULL,
  CONSTRAINT holdfast_execution_tag_pkey PRIMARY KEY (tag, execution)
);

CREATE INDEX holdfast_execution_tag_execution ON holdfast_execution_tag (execution, tag);

-- Lines written by user code and by workers about one execution.
CREATE TABLE holdfast_execution_log (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  execution BIGINT NOT NULL,
  at BIGINT NOT NULL,
  run TEXT COLLATE "C",
  step TEXT COLLATE "C",
  attempt BIGINT,
  level TEXT COLLATE "C" NOT NULL,
  message TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C"
);

CREATE INDEX holdfast_execution_log_execution ON holdfast_execution_log (execution, key);

-- The stack in user code behind a range of events; equal texts are kept once.
CREATE TABLE holdfast_execution_stack (
  hash TEXT COLLATE "C" NOT NULL CONSTRAINT holdfast_execution_stack_pkey PRIMARY KEY,
  stack TEXT COLLATE "C" NOT NULL
);

CREATE TABLE holdfast_execution_backtrace (
  execution BIGINT NOT NULL,
  version_from BIGINT NOT NULL,
  version_to BIGINT NOT NULL,
  hash TEXT COLLATE "C" NOT NULL,
  CONSTRAINT holdfast_execution_backtrace_pkey PRIMARY KEY (execution, version_from)
);

CREATE INDEX holdfast_execution_backtrace_hash ON holdfast_execution_backtrace (hash);

-- A row that is locked while the running executions of a function are counted.
CREATE TABLE holdfast_execution_limit (
  name TEXT COLLATE "C" NOT NULL CONSTRAINT holdfast_execution_limit_pkey PRIMARY KEY
);
