-- Postgres manages its own log; the table keeps the schemas alike.
CREATE TABLE holdfast_tick (
  id BIGINT PRIMARY KEY CONSTRAINT holdfast_tick_one CHECK (id = 1),
  n BIGINT NOT NULL
);

INSERT INTO holdfast_tick (id, n) VALUES (1, 0);

-- The payload codec of the values: one row, written with the first value.
-- Without a name, values are in the clear. A process that cannot decode the
-- sample neither reads nor writes values.
CREATE TABLE holdfast_payload_codec (
  id BIGINT NOT NULL CONSTRAINT holdfast_payload_codec_pkey PRIMARY KEY CONSTRAINT holdfast_payload_codec_one CHECK (id = 1),
  codec TEXT COLLATE "C",
  sample TEXT COLLATE "C" NOT NULL
);
