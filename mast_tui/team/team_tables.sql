-- The tables of a team, made or brought from an earlier version to this one. "rights.py" runs this
-- file before "team_views.sql" and "team_functions.sql".

CREATE SCHEMA IF NOT EXISTS team;
CREATE TABLE IF NOT EXISTS team.members (name TEXT COLLATE "C" PRIMARY KEY,
  role TEXT NOT NULL, assisted BOOLEAN NOT NULL);
CREATE TABLE IF NOT EXISTS team.revealed (annotator TEXT COLLATE "C", trace_id TEXT COLLATE "C",
  taxonomy TEXT COLLATE "C", pass_number BIGINT,
  PRIMARY KEY (annotator, trace_id, taxonomy, pass_number));
-- The id of the transaction that revealed the trace, the same within its savepoints.
ALTER TABLE team.revealed ADD COLUMN IF NOT EXISTS
  revealed_in xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE TABLE IF NOT EXISTS team.settings (name TEXT COLLATE "C", key TEXT COLLATE "C",
  value TEXT NOT NULL, PRIMARY KEY (name, key));

-- Until version 10 events could name a pass with any number, even one below 1.
DELETE FROM team.revealed WHERE pass_number < 1;
INSERT INTO team.revealed SELECT DISTINCT annotator, trace_id, taxonomy, pass_number
  FROM public.events WHERE kind = 'revealed'
    AND trace_id IS NOT NULL AND taxonomy IS NOT NULL AND pass_number >= 1
  ON CONFLICT DO NOTHING;

-- Tags were private settings of their author in earlier versions.
WITH mine AS (DELETE FROM team.settings
  WHERE key = 'open_codes.tags:' || split_part(key, ':', 2) || ':' || name RETURNING key, value)
INSERT INTO public.settings SELECT * FROM mine ON CONFLICT DO NOTHING;

-- A key must not collide with another person's, as the error would reveal that one.
ALTER TABLE public.events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (id, annotator);
