-- Content by its own hash: the SHA-256 of the bytes before compression, which
-- every read verifies. Columns of other tables refer to it.
CREATE TABLE holdfast_blob (
  key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  hash TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  encoding TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  put_at BIGINT NOT NULL,
  content BYTEA NOT NULL
);

CREATE UNIQUE INDEX holdfast_blob_hash ON holdfast_blob (hash);

-- The time of a blob's last separate put, by a caller that is about to refer to
-- it: no sweep removes it until the grace period is over. A table of its own, so
-- that putting a blob again does not write its content again.
CREATE TABLE holdfast_blob_put (
  hash TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  CONSTRAINT holdfast_blob_put_pkey PRIMARY KEY (hash)
);

-- Names for blobs. Each name keeps its blob.
CREATE TABLE holdfast_artifact (
  namespace TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  blob TEXT COLLATE "C" NOT NULL,
  put_at BIGINT NOT NULL,
  CONSTRAINT holdfast_artifact_pkey PRIMARY KEY (namespace, name)
);

CREATE INDEX holdfast_artifact_blob ON holdfast_artifact (blob);

-- The attachments of each session. A row is written before the bytes: one that
-- no commit has stamped shows what to remove after a crash.
CREATE TABLE holdfast_attachment (
  session BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  intent_at BIGINT NOT NULL,
  committed_at BIGINT,
  size BIGINT NOT NULL,
  media_type TEXT COLLATE "C" NOT NULL,
  width BIGINT,
  height BIGINT,
  label TEXT COLLATE "C",
  CONSTRAINT holdfast_attachment_pkey PRIMARY KEY (session, id)
);

CREATE INDEX holdfast_attachment_id ON holdfast_attachment (id);
CREATE INDEX holdfast_attachment_intent ON holdfast_attachment (session) WHERE committed_at IS NULL;
CREATE INDEX holdfast_attachment_uncommitted ON holdfast_attachment (intent_at, session, id)
  WHERE committed_at IS NULL;

-- The places of attachments' bytes. A name is used for one put and never again,
-- so removing an old name cannot remove bytes that were put since.
-- `condemned_for` is the last session that had them, if there was one.
CREATE TABLE holdfast_attachment_copy (
  name TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  store TEXT COLLATE "C" NOT NULL,
  state TEXT COLLATE "C" NOT NULL,
  size BIGINT NOT NULL,
  made_at BIGINT NOT NULL,
  condemned_for BIGINT,
  CONSTRAINT holdfast_attachment_copy_pkey PRIMARY KEY (name)
);

CREATE INDEX holdfast_attachment_copy_id ON holdfast_attachment_copy (id);
CREATE INDEX holdfast_attachment_copy_unfinished ON holdfast_attachment_copy (made_at)
  WHERE state = 'writing';
CREATE INDEX holdfast_attachment_copy_condemned ON holdfast_attachment_copy (store, name)
  WHERE state = 'condemned';

-- The bytes themselves, unless they are kept in files.
CREATE TABLE holdfast_attachment_bytes (
  name TEXT COLLATE "C" NOT NULL,
  content BYTEA NOT NULL,
  CONSTRAINT holdfast_attachment_bytes_pkey PRIMARY KEY (name)
);

-- Blobs that the app keeps under a name of its own, because only a row of the
-- app refers to them. Each row is a root of its blob.
CREATE TABLE holdfast_blob_keep (
  hash TEXT COLLATE "C" NOT NULL,
  owner TEXT COLLATE "C" NOT NULL,
  kept_at BIGINT NOT NULL,
  CONSTRAINT holdfast_blob_keep_pkey PRIMARY KEY (hash, owner)
);

CREATE INDEX holdfast_blob_keep_owner ON holdfast_blob_keep (owner, hash);
