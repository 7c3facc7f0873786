-- Schedules. `next_at` is the instant that fires next, or NULL; `due_at` is when
-- to try it, later than `next_at` after a failure. An instant is over once
-- `next_at` has moved past it.
CREATE TABLE holdfast_schedule (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  cadence TEXT NOT NULL,
  catch_up TEXT NOT NULL,
  catch_up_max INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  next_at INTEGER,
  due_at INTEGER,
  last_at INTEGER,
  fired_at INTEGER,
  skipped_from INTEGER,
  skipped_before INTEGER,
  failures INTEGER NOT NULL,
  failure TEXT,
  changed_at INTEGER NOT NULL,
  CONSTRAINT holdfast_schedule_sound CHECK (
    (catch_up = 'skip' OR catch_up = 'latest' OR catch_up = 'all') AND catch_up_max >= 1)
) STRICT;

CREATE UNIQUE INDEX holdfast_schedule_name ON holdfast_schedule (kind, name);
CREATE INDEX holdfast_schedule_due ON holdfast_schedule (kind, due_at, key) WHERE due_at IS NOT NULL;

-- The function that a schedule of kind 'run' starts, under the schedule's name.
-- The row is locked before anything else of the schedule, so that one process at
-- a time decides about overlaps.
CREATE TABLE holdfast_schedule_function (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  function TEXT NOT NULL,
  input TEXT NOT NULL,
  input_hash TEXT NOT NULL,
  overlap TEXT NOT NULL,
  is_paused INTEGER NOT NULL,
  last_run TEXT,
  skips INTEGER NOT NULL,
  skipped_at INTEGER,
  skip_reason TEXT,
  changed_at INTEGER NOT NULL,
  CONSTRAINT holdfast_schedule_function_sound CHECK (
    (overlap = 'skip' OR overlap = 'queue' OR overlap = 'allow' OR overlap = 'cancelPrevious')
    AND (role = 'workflow' OR role = 'activity')
    AND (is_paused = 0 OR is_paused = 1) AND skips >= 0 AND (skipped_at IS NULL) = (skip_reason IS NULL))
) STRICT;

CREATE UNIQUE INDEX holdfast_schedule_function_name ON holdfast_schedule_function (name);

-- Runs that a schedule has started and whose end it has not recorded, and the
-- instants that wait for such an end, which have no execution yet.
CREATE TABLE holdfast_schedule_run (
  schedule INTEGER NOT NULL,
  run TEXT NOT NULL,
  instant INTEGER NOT NULL,
  execution INTEGER,
  CONSTRAINT holdfast_schedule_run_pkey PRIMARY KEY (schedule, run)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_schedule_run_waiting ON holdfast_schedule_run (schedule, instant) WHERE execution IS NULL;

-- Subscriptions: requests to start a process for each occurrence of a source.
-- Session 0 is the host. A deleted subscription stays without content, so that
-- its revisions continue.
CREATE TABLE holdfast_trigger_subscription (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  session_id TEXT,
  generation INTEGER,
  name TEXT NOT NULL,
  revision INTEGER NOT NULL,
  parts TEXT NOT NULL,
  is_enabled INTEGER NOT NULL,
  source_type TEXT NOT NULL,
  source_key TEXT NOT NULL,
  definition TEXT,
  content TEXT,
  created_at INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  deleted_at INTEGER,
  CONSTRAINT holdfast_trigger_subscription_sound CHECK (is_enabled = 0 OR is_enabled = 1)
) STRICT;

CREATE UNIQUE INDEX holdfast_trigger_subscription_name ON holdfast_trigger_subscription (session, name);
CREATE INDEX holdfast_trigger_subscription_source ON holdfast_trigger_subscription (source_type, source_key, key)
  WHERE is_enabled = 1;
CREATE INDEX holdfast_trigger_subscription_definition ON holdfast_trigger_subscription (definition, session, name)
  WHERE definition IS NOT NULL;

-- Occurrences, once for each id.
CREATE TABLE holdfast_trigger_occurrence (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL,
  source_type TEXT NOT NULL,
  source_key TEXT NOT NULL,
  payload_hash TEXT NOT NULL,
  payload TEXT NOT NULL,
  occurred_at INTEGER NOT NULL,
  recorded_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX holdfast_trigger_occurrence_id ON holdfast_trigger_occurrence (id);
CREATE INDEX holdfast_trigger_occurrence_source ON holdfast_trigger_occurrence (source_type, source_key, key);
CREATE INDEX holdfast_trigger_occurrence_age ON holdfast_trigger_occurrence (recorded_at, key);

-- The process that an occurrence started for a subscription, written in its
-- transaction; or the reason why it started none.
CREATE TABLE holdfast_trigger_delivery (
  occurrence INTEGER NOT NULL,
  subscription INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  process TEXT,
  refusal TEXT,
  CONSTRAINT holdfast_trigger_delivery_pkey PRIMARY KEY (occurrence, subscription)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_trigger_delivery_subscription ON holdfast_trigger_delivery (subscription, occurrence);
CREATE UNIQUE INDEX holdfast_trigger_delivery_process ON holdfast_trigger_delivery (process) WHERE process IS NOT NULL;
