-- A little of everything that a database can hold.
CREATE SCHEMA shop;
CREATE TYPE shop.mood AS ENUM ('glad', 'so so');
CREATE DOMAIN shop.price AS numeric(12, 2) CHECK (VALUE >= 0);
CREATE TABLE shop.users (
  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, mood shop.mood, born date,
  seen timestamptz DEFAULT now(), raw bytea, ratio float8,
  length int GENERATED ALWAYS AS (length(name)) STORED);
CREATE TABLE shop.orders (
  id bigserial PRIMARY KEY, user_id int NOT NULL REFERENCES shop.users ON DELETE CASCADE,
  total shop.price, note text, tags text[], extra jsonb);
CREATE INDEX orders_by_user ON shop.orders (user_id) WHERE total > 10;
CREATE TABLE log (at timestamptz, line text);
CREATE TABLE parted (k int, v text) PARTITION BY RANGE (k);
CREATE TABLE parted_low PARTITION OF parted FOR VALUES FROM (0) TO (100);
CREATE TABLE parted_high PARTITION OF parted FOR VALUES FROM (100) TO (200);
CREATE TABLE grown (extra text) INHERITS (log);
CREATE TABLE "od""d Na\me.;--" ("col umn" int, "Ünï" text, "select" text);
CREATE TABLE nothing ();
CREATE UNLOGGED TABLE quick (v int);
CREATE VIEW shop.rich AS SELECT u.name, sum(o.total) FROM shop.users u
  JOIN shop.orders o ON o.user_id = u.id GROUP BY u.name;
CREATE MATERIALIZED VIEW shop.kept AS SELECT count(*) AS users FROM shop.users;
CREATE FUNCTION shop.twice(n int) RETURNS int LANGUAGE plpgsql AS $f$
/*
\! echo hostile
\restrict me
\.
*/
BEGIN RETURN n * 2; END $f$;
CREATE FUNCTION shop.noted() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN INSERT INTO public.log VALUES ('2024-01-01', TG_OP); RETURN NEW; END $f$;
CREATE TRIGGER noted AFTER INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.noted();
CREATE SEQUENCE shop.odd START 7 INCREMENT 3;
SELECT setval('shop.odd', 40, false);
COMMENT ON TABLE shop.users IS 'people; -- and ''more''';
CREATE PUBLICATION everything FOR TABLE shop.users;
CREATE AGGREGATE shop.total (int) (sfunc = int4pl, stype = int, initcond = '0');
CREATE OPERATOR shop.<+> (leftarg = int, rightarg = int, function = int4pl);
CREATE STATISTICS shop.together ON user_id, total FROM shop.orders;
ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON shop.orders USING (user_id = 1);
CREATE RULE keep AS ON DELETE TO log DO INSTEAD NOTHING;
INSERT INTO shop.users (name, mood, born, seen, raw, ratio) VALUES
  ('Ann', 'glad', '1990-02-28', '2024-05-06 07:08:09.123456+02', '\x00ff5c', 0.1),
  (E'tab\tnew\nline\\back\r\\.', 'so so', 'infinity', NULL, NULL, 'NaN'),
  (E'\\.', NULL, NULL, NULL, '', 1e-300);
INSERT INTO shop.orders (user_id, total, note, tags, extra)
  SELECT 1 + n % 3, n, repeat('x', n), ARRAY['a', NULL, '"', '{}'], json_build_object('n', n)
  FROM generate_series(1, 50) n;
INSERT INTO parted SELECT n, n::text FROM generate_series(1, 199) n;
INSERT INTO grown VALUES ('2024-02-02', 'line', 'extra');
INSERT INTO "od""d Na\me.;--" VALUES (1, U&'\2028\0085', NULL), (NULL, '', '\N');
INSERT INTO nothing DEFAULT VALUES;
INSERT INTO quick VALUES (1);
REFRESH MATERIALIZED VIEW shop.kept;
