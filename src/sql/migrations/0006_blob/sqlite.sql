-- Content by its own hash: the SHA-256 of the bytes before compression, which
-- every read verifies. Columns of other tables refer to it.
CREATE TABLE holdfast_blob (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  hash TEXT NOT NULL,
  kind TEXT NOT NULL,
  encoding TEXT NOT NULL,
  size INTEGER NOT NULL,
  put_at INTEGER NOT NULL,
  content BLOB NOT NULL,
  CONSTRAINT holdfast_blob_sound CHECK ((encoding = 'identity' OR encoding = 'deflate') AND size >= 0)
) STRICT;

CREATE UNIQUE INDEX holdfast_blob_hash ON holdfast_blob (hash);

-- The time of a blob's last separate put, by a caller that is about to refer to
-- it: no sweep removes it until the grace period is over. A table of its own, so
-- that putting a blob again does not write its content again.
CREATE TABLE holdfast_blob_put (
  hash TEXT NOT NULL,
  at INTEGER NOT NULL,
  CONSTRAINT holdfast_blob_put_pkey PRIMARY KEY (hash)
) STRICT, WITHOUT ROWID;

-- Names for blobs. Each name keeps its blob.
CREATE TABLE holdfast_artifact (
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  blob TEXT NOT NULL,
  put_at INTEGER NOT NULL,
  CONSTRAINT holdfast_artifact_pkey PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_artifact_blob ON holdfast_artifact (blob);

-- The attachments of each session. A row is written before the bytes: one that
-- no commit has stamped shows what to remove after a crash.
CREATE TABLE holdfast_attachment (
  session INTEGER NOT NULL,
  id TEXT NOT NULL,
  intent_at INTEGER NOT NULL,
  committed_at INTEGER,
  size INTEGER NOT NULL,
  media_type TEXT NOT NULL,
  width INTEGER,
  height INTEGER,
  label TEXT,
  CONSTRAINT holdfast_attachment_pkey PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_attachment_id ON holdfast_attachment (id);
CREATE INDEX holdfast_attachment_intent ON holdfast_attachment (session) WHERE committed_at IS NULL;
CREATE INDEX holdfast_attachment_uncommitted ON holdfast_attachment (intent_at, session, id)
  WHERE committed_at IS NULL;

-- The places of attachments' bytes. A name is used for one put and never again,
-- so removing an old name cannot remove bytes that were put since.
-- `condemned_for` is the last session that had them, if there was one.
CREATE TABLE holdfast_attachment_copy (
  name TEXT NOT NULL,
  id TEXT NOT NULL,
  store TEXT NOT NULL,
  state TEXT NOT NULL,
  size INTEGER NOT NULL,
  made_at INTEGER NOT NULL,
  condemned_for INTEGER,
  CONSTRAINT holdfast_attachment_copy_pkey PRIMARY KEY (name),
  CONSTRAINT holdfast_attachment_copy_sound CHECK (state = 'writing' OR state = 'stored' OR state = 'condemned')
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_attachment_copy_id ON holdfast_attachment_copy (id);
CREATE INDEX holdfast_attachment_copy_unfinished ON holdfast_attachment_copy (made_at)
  WHERE state = 'writing';
CREATE INDEX holdfast_attachment_copy_condemned ON holdfast_attachment_copy (store, name)
  WHERE state = 'condemned';

-- The bytes themselves, unless they are kept in files.
CREATE TABLE holdfast_attachment_bytes (
  name TEXT NOT NULL,
  content BLOB NOT NULL,
  CONSTRAINT holdfast_attachment_bytes_pkey PRIMARY KEY (name)
) STRICT;

-- Blobs that the app keeps under a name of its own, because only a row of the
-- app refers to them. Each row is a root of its blob.
CREATE TABLE holdfast_blob_keep (
  hash TEXT NOT NULL,
  owner TEXT NOT NULL,
  kept_at INTEGER NOT NULL,
  CONSTRAINT holdfast_blob_keep_pkey PRIMARY KEY (hash, owner)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_blob_keep_owner ON holdfast_blob_keep (owner, hash);
