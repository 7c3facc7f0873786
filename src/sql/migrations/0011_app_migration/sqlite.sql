-- Steps by which an app has set up its own tables, through `database.setUp`.
CREATE TABLE holdfast_app_migration (
  app TEXT NOT NULL,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  applied_at INTEGER NOT NULL,
  CONSTRAINT holdfast_app_migration_pkey PRIMARY KEY (app, position)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX holdfast_app_migration_name ON holdfast_app_migration (app, name);
