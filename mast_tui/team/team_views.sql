-- The rows that annotators read. "rights.py" runs this file whenever it makes the schema "seen"
-- anew, and then adds a view in place of each hidden table.
--
-- A table about traces has a function "..._of", which "rights.py" generates: it returns the rows of
-- the visible annotators. Each other hidden table has a function "..._rows" in this file. All run as
-- the owner of the tables (SECURITY DEFINER), and return only what the caller may see.
--
-- The caller is "session_user::text": as a name it would not use an index on text.

-- The works on which others' labels were revealed, by committed transactions only: a reveal of this
-- transaction could still be rolled back, also to a savepoint.
CREATE VIEW seen.committed_reveals AS SELECT annotator, trace_id, taxonomy FROM team.revealed
  WHERE revealed_in IS DISTINCT FROM pg_current_xact_id_if_assigned();

CREATE VIEW seen.revealed_traces AS SELECT trace_id FROM seen.committed_reveals
  WHERE annotator = session_user::text;

CREATE FUNCTION seen.sees_judges() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM team.members WHERE name = session_user::text AND assisted)
$$;

-- Judges --------------------------------------------------------------------------------------

CREATE FUNCTION seen.runs_rows() RETURNS SETOF public.runs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.runs r WHERE seen.sees_judges() OR r.id IN (
    SELECT t.run FROM public.run_traces t
    WHERE t.trace_id IN (SELECT trace_id FROM seen.revealed_traces))
$$;

CREATE FUNCTION seen.run_traces_rows() RETURNS SETOF public.run_traces
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.run_traces r
  WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM seen.revealed_traces)
$$;

CREATE FUNCTION seen.asked_rows() RETURNS SETOF public.asked
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.asked r
  WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM seen.revealed_traces)
$$;

-- Documents -----------------------------------------------------------------------------------

-- Return a document without the fields that reveal hidden labels.
CREATE FUNCTION seen.without_fields(document text, VARIADIC hidden_fields text[]) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT json_object_agg(f.key, f.value)::text FROM json_each(document::json) f
  WHERE f.key <> ALL(hidden_fields)
$$;

-- The draws of a study depend on a judge's verdicts.
CREATE FUNCTION seen.studies_rows() RETURNS SETOF public.studies
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.annotator, r.taxonomy, r.set_at, seen.without_fields(r.document, 'draws')
  FROM public.studies r
$$;

-- The case of a guideline names a trace with a decision.
CREATE FUNCTION seen.guidelines_rows() RETURNS SETOF public.guidelines
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.annotator, r.id, r.taxonomy, r.written_at,
    seen.without_fields(r.document, 'trace_id', 'item')
  FROM public.guidelines r
$$;

CREATE FUNCTION seen.sights_rows() RETURNS SETOF public.sights
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.sights r WHERE r.annotator = session_user::text
$$;

-- Settings ------------------------------------------------------------------------------------

-- The tags of others on traces whose labels of others are visible. The key of tags has the taxonomy
-- and their author; a tag has the id of its trace as second item.
CREATE VIEW seen.tags_of_others AS
  SELECT s.key, (SELECT json_agg(tag)::text FROM json_array_elements(s.value::json) tag
    WHERE (SELECT item::text FROM json_array_elements(tag) WITH ORDINALITY AS items(item, number)
      WHERE number = 2) IN (SELECT to_json(v.trace_id)::text FROM seen.committed_reveals v
        WHERE v.annotator = session_user::text
        AND starts_with(v.taxonomy, split_part(s.key, ':', 2) || '@'))) AS tags
  FROM public.settings s
  WHERE starts_with(s.key, 'open_codes.tags:')
    AND s.key <> 'open_codes.tags:' || split_part(s.key, ':', 2) || ':' || session_user::text;

CREATE FUNCTION seen.settings_rows() RETURNS SETOF public.settings
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.settings r WHERE r.key = 'set_aside'
    OR r.key = 'open_codes.tags:' || split_part(r.key, ':', 2) || ':' || session_user::text
  UNION ALL SELECT key, value FROM team.settings WHERE name = session_user::text
  UNION ALL SELECT key, tags FROM seen.tags_of_others WHERE tags IS NOT NULL
$$;

-- Traces and imports --------------------------------------------------------------------------

-- The stored index of a span reveals that it was labelled.
CREATE FUNCTION seen.span_indices_rows() RETURNS SETOF public.span_indices
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.span_indices r
  WHERE r.trace_id IN (SELECT trace_id FROM seen.revealed_traces) OR EXISTS (
    SELECT FROM public.labels l WHERE l.annotator = session_user::text
      AND l.trace_id = r.trace_id AND r.span_key IN (l.first_key, l.last_key))
$$;

CREATE FUNCTION seen.imports_rows() RETURNS SETOF public.imports
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.imports r WHERE r.format = 'migration'
$$;

CREATE FUNCTION seen.imported_events_rows() RETURNS SETOF public.imported_events
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.imported_events r WHERE false
$$;

-- The annotator's own events ------------------------------------------------------------------

-- Those that are about no trace.
CREATE FUNCTION seen.events_beside() RETURNS SETOF public.events
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT r.* FROM public.events r WHERE r.annotator = session_user::text AND r.trace_id IS NULL
$$;

CREATE FUNCTION seen.own_events(ids text[]) RETURNS SETOF public.events
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT e.* FROM public.events e WHERE e.annotator = session_user::text AND e.id = ANY(ids)
$$;

-- Return the predecessor of the next event and, for a trace, the last event on it.
CREATE FUNCTION seen.last_event(
  trace text, under text, OUT seq bigint, OUT chain text, OUT of_work bigint
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE linked boolean;
BEGIN
  SELECT e.seq, e.chain, NOT starts_with(e.action, 'import:') INTO seq, chain, linked
    FROM public.events e WHERE e.annotator = session_user::text
    ORDER BY e.seq DESC, e.id DESC LIMIT 1;
  IF chain IS NULL OR NOT linked THEN
    SELECT e.chain INTO chain FROM public.events e WHERE e.annotator = session_user::text
      AND e.chain IS NOT NULL AND NOT starts_with(e.action, 'import:')
      ORDER BY e.seq DESC, e.id DESC LIMIT 1;
  END IF;
  IF trace IS NOT NULL THEN
    SELECT max(e.seq) INTO of_work FROM public.events e
      WHERE e.annotator = session_user::text AND e.trace_id = trace AND e.taxonomy = under;
  END IF;
END $$;
