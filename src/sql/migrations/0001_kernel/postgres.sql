-- Postgres manages its own log; the table keeps the schemas alike.
CREATE TABLE holdfast_tick (
  id BIGINT PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),
  n BIGINT NOT NULL
);

INSERT INTO holdfast_tick (id, n) VALUES (1, 0);
