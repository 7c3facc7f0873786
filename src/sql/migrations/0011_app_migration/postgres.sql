-- Steps by which an app has set up its own tables, through `database.setUp`.
CREATE TABLE holdfast_app_migration (
  app TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  applied_at BIGINT NOT NULL,
  CONSTRAINT holdfast_app_migration_pkey PRIMARY KEY (app, position)
);

CREATE UNIQUE INDEX holdfast_app_migration_name ON holdfast_app_migration (app, name);
