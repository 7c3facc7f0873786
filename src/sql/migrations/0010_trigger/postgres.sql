-- Schedules. `next_at` is the instant that fires next, or NULL; `due_at` is when
-- to try it, later than `next_at` after a failure. An instant is over once
-- `next_at` has moved past it.
CREATE TABLE holdfast_schedule (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  cadence TEXT COLLATE "C" NOT NULL,
  catch_up TEXT COLLATE "C" NOT NULL,
  catch_up_max BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  next_at BIGINT,
  due_at BIGINT,
  last_at BIGINT,
  fired_at BIGINT,
  skipped_from BIGINT,
  skipped_before BIGINT,
  failures BIGINT NOT NULL,
  failure TEXT COLLATE "C",
  changed_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_schedule_name ON holdfast_schedule (kind, name);
CREATE INDEX holdfast_schedule_due ON holdfast_schedule (kind, due_at, key) WHERE due_at IS NOT NULL;

-- The function that a schedule of kind 'run' starts, under the schedule's name.
-- The row is locked before anything else of the schedule, so that one process at
-- a time decides about overlaps.
CREATE TABLE holdfast_schedule_function (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT COLLATE "C" NOT NULL,
  role TEXT COLLATE "C" NOT NULL,
  function TEXT COLLATE "C" NOT NULL,
  input TEXT COLLATE "C" NOT NULL,
  input_hash TEXT COLLATE "C" NOT NULL,
  overlap TEXT COLLATE "C" NOT NULL,
  is_paused BIGINT NOT NULL,
  last_run TEXT COLLATE "C",
  skips BIGINT NOT NULL,
  skipped_at BIGINT,
  skip_reason TEXT COLLATE "C",
  changed_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_schedule_function_name ON holdfast_schedule_function (name);

-- Runs that a schedule has started and whose end it has not recorded, and the
-- instants that wait for such an end, which have no execution yet.
CREATE TABLE holdfast_schedule_run (
  schedule BIGINT NOT NULL,
  run TEXT COLLATE "C" NOT NULL,
  instant BIGINT NOT NULL,
  execution BIGINT,
  CONSTRAINT holdfast_schedule_run_pkey PRIMARY KEY (schedule, run)
);

CREATE INDEX holdfast_schedule_run_waiting ON holdfast_schedule_run (schedule, instant) WHERE execution IS NULL;

-- Subscriptions: requests to start a process for each occurrence of a source.
-- Session 0 is the host. A deleted subscription stays without content, so that
-- its revisions continue.
CREATE TABLE holdfast_trigger_subscription (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session BIGINT NOT NULL,
  session_id TEXT COLLATE "C",
  generation BIGINT,
  name TEXT COLLATE "C" NOT NULL,
  revision BIGINT NOT NULL,
  parts TEXT COLLATE "C" NOT NULL,
  is_enabled BIGINT NOT NULL,
  source_type TEXT COLLATE "C" NOT NULL,
  source_key TEXT COLLATE "C" NOT NULL,
  definition TEXT COLLATE "C",
  content TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  changed_at BIGINT NOT NULL,
  deleted_at BIGINT
);

CREATE UNIQUE INDEX holdfast_trigger_subscription_name ON holdfast_trigger_subscription (session, name);
CREATE INDEX holdfast_trigger_subscription_source ON holdfast_trigger_subscription (source_type, source_key, key)
  WHERE is_enabled = 1;
CREATE INDEX holdfast_trigger_subscription_definition ON holdfast_trigger_subscription (definition, session, name)
  WHERE definition IS NOT NULL;

-- Occurrences, once for each id.
CREATE TABLE holdfast_trigger_occurrence (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL,
  source_type TEXT COLLATE "C" NOT NULL,
  source_key TEXT COLLATE "C" NOT NULL,
  payload_hash TEXT COLLATE "C" NOT NULL,
  payload TEXT COLLATE "C" NOT NULL,
  occurred_at BIGINT NOT NULL,
  recorded_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX holdfast_trigger_occurrence_id ON holdfast_trigger_occurrence (id);
CREATE INDEX holdfast_trigger_occurrence_source ON holdfast_trigger_occurrence (source_type, source_key, key);
CREATE INDEX holdfast_trigger_occurrence_age ON holdfast_trigger_occurrence (recorded_at, key);

-- The process that an occurrence started for a subscription, written in its
-- transaction; or the reason why it started none.
CREATE TABLE holdfast_trigger_delivery (
  occurrence BIGINT NOT NULL,
  subscription BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  process TEXT COLLATE "C",
  refusal TEXT COLLATE "C",
  CONSTRAINT holdfast_trigger_delivery_pkey PRIMARY KEY (occurrence, subscription)
);

CREATE INDEX holdfast_trigger_delivery_subscription ON holdfast_trigger_delivery (subscription, occurrence);
CREATE UNIQUE INDEX holdfast_trigger_delivery_process ON holdfast_trigger_delivery (process) WHERE process IS NOT NULL;
