-- What the app keeps by a name of its own: a blob that only a row of the app
-- refers to. Each row is a root of its blob.
CREATE TABLE holdfast_blob_keep (
  hash TEXT NOT NULL,
  owner TEXT NOT NULL,
  kept_at INTEGER NOT NULL,
  CONSTRAINT holdfast_blob_keep_pkey PRIMARY KEY (hash, owner)
) STRICT, WITHOUT ROWID;

CREATE INDEX holdfast_blob_keep_owner ON holdfast_blob_keep (owner, hash);
