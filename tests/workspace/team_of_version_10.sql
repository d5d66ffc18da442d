CREATE SCHEMA IF NOT EXISTS team;
CREATE TABLE IF NOT EXISTS team.members (name TEXT COLLATE "C" PRIMARY KEY,
role TEXT NOT NULL, assisted BOOLEAN NOT NULL);
CREATE TABLE IF NOT EXISTS team.revealed (annotator TEXT COLLATE "C",
trace_id TEXT COLLATE "C", taxonomy TEXT COLLATE "C", pass_number BIGINT,
PRIMARY KEY (annotator, trace_id, taxonomy, pass_number));
ALTER TABLE team.revealed ADD COLUMN IF NOT EXISTS
revealed_in xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE TABLE IF NOT EXISTS team.settings (name TEXT COLLATE "C",
key TEXT COLLATE "C", value TEXT NOT NULL, PRIMARY KEY (name, key));
DELETE FROM team.revealed WHERE pass_number < 1;
INSERT INTO team.revealed SELECT DISTINCT annotator, trace_id, taxonomy, pass_number
FROM public.events WHERE kind = 'revealed'
AND trace_id IS NOT NULL AND taxonomy IS NOT NULL AND pass_number >= 1
ON CONFLICT DO NOTHING;
WITH mine AS (DELETE FROM team.settings WHERE
key = 'open_codes.tags:' || split_part(key, ':', 2) || ':' || name RETURNING key, value)
INSERT INTO public.settings SELECT * FROM mine ON CONFLICT DO NOTHING;
ALTER TABLE public.events DROP CONSTRAINT events_pkey, ADD PRIMARY KEY (id, annotator);
DROP SCHEMA IF EXISTS seen CASCADE; CREATE SCHEMA seen;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

CREATE FUNCTION seen.may_write(whose text) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM team.members me WHERE me.name = session_user::text AND CASE me.role
    WHEN 'judge' THEN starts_with(whose, 'judge:')
    WHEN 'lead' THEN whose = session_user::text
      OR NOT EXISTS (SELECT FROM team.members m WHERE m.name = whose)
    ELSE whose = session_user::text END)
$$;
CREATE FUNCTION seen.is_role(VARIADIC roles text[]) RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT EXISTS (SELECT FROM team.members WHERE name = session_user::text AND role = ANY(roles)) $$;

ALTER TABLE public.events ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.events;
CREATE POLICY sees ON public.events FOR SELECT USING (true);
CREATE POLICY adds ON public.events FOR INSERT WITH CHECK (seen.may_write(annotator) AND (seen.is_role('lead') OR kind NOT IN ('study_set')) AND (seen.is_role('lead', 'adjudicator') OR kind NOT IN ('study_set', 'decided', 'guideline_set')));
CREATE POLICY changes ON public.events FOR UPDATE USING (seen.may_write(annotator) AND (seen.is_role('lead') OR kind NOT IN ('study_set')) AND (seen.is_role('lead', 'adjudicator') OR kind NOT IN ('study_set', 'decided', 'guideline_set'))) WITH CHECK (seen.may_write(annotator) AND (seen.is_role('lead') OR kind NOT IN ('study_set')) AND (seen.is_role('lead', 'adjudicator') OR kind NOT IN ('study_set', 'decided', 'guideline_set')));
CREATE POLICY drops ON public.events FOR DELETE USING (seen.may_write(annotator) AND (seen.is_role('lead') OR kind NOT IN ('study_set')) AND (seen.is_role('lead', 'adjudicator') OR kind NOT IN ('study_set', 'decided', 'guideline_set')));
ALTER TABLE public.labels ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.labels;
CREATE POLICY sees ON public.labels FOR SELECT USING (true);
CREATE POLICY adds ON public.labels FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.labels FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.labels FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.verdicts ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.verdicts;
CREATE POLICY sees ON public.verdicts FOR SELECT USING (true);
CREATE POLICY adds ON public.verdicts FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.verdicts FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.verdicts FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.reviews ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.reviews;
CREATE POLICY sees ON public.reviews FOR SELECT USING (true);
CREATE POLICY adds ON public.reviews FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.reviews FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.reviews FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.span_notes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.span_notes;
CREATE POLICY sees ON public.span_notes FOR SELECT USING (true);
CREATE POLICY adds ON public.span_notes FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.span_notes FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.span_notes FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.passes ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.passes;
CREATE POLICY sees ON public.passes FOR SELECT USING (true);
CREATE POLICY adds ON public.passes FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.passes FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.passes FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.decisions ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.decisions;
CREATE POLICY sees ON public.decisions FOR SELECT USING (true);
CREATE POLICY adds ON public.decisions FOR INSERT WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
CREATE POLICY changes ON public.decisions FOR UPDATE USING (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator')) WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
CREATE POLICY drops ON public.decisions FOR DELETE USING (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
ALTER TABLE public.judgements ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.judgements;
CREATE POLICY sees ON public.judgements FOR SELECT USING (true);
CREATE POLICY adds ON public.judgements FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.judgements FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.judgements FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.sights ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.sights;
CREATE POLICY sees ON public.sights FOR SELECT USING (true);
CREATE POLICY adds ON public.sights FOR INSERT WITH CHECK (seen.may_write(annotator));
CREATE POLICY changes ON public.sights FOR UPDATE USING (seen.may_write(annotator)) WITH CHECK (seen.may_write(annotator));
CREATE POLICY drops ON public.sights FOR DELETE USING (seen.may_write(annotator));
ALTER TABLE public.studies ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.studies;
CREATE POLICY sees ON public.studies FOR SELECT USING (true);
CREATE POLICY adds ON public.studies FOR INSERT WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead'));
CREATE POLICY changes ON public.studies FOR UPDATE USING (seen.may_write(annotator) AND seen.is_role('lead')) WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead'));
CREATE POLICY drops ON public.studies FOR DELETE USING (seen.may_write(annotator) AND seen.is_role('lead'));
ALTER TABLE public.guidelines ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.guidelines;
CREATE POLICY sees ON public.guidelines FOR SELECT USING (true);
CREATE POLICY adds ON public.guidelines FOR INSERT WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
CREATE POLICY changes ON public.guidelines FOR UPDATE USING (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator')) WITH CHECK (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
CREATE POLICY drops ON public.guidelines FOR DELETE USING (seen.may_write(annotator) AND seen.is_role('lead', 'adjudicator'));
ALTER TABLE public.annotators ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS sees ON public.annotators;
CREATE POLICY sees ON public.annotators FOR SELECT USING (true);
CREATE POLICY adds ON public.annotators FOR INSERT WITH CHECK (seen.may_write(name));
CREATE POLICY changes ON public.annotators FOR UPDATE USING (seen.may_write(name)) WITH CHECK (seen.may_write(name));
CREATE POLICY drops ON public.annotators FOR DELETE USING (seen.may_write(name));

CREATE VIEW seen.committed_reveals AS SELECT annotator, trace_id, taxonomy FROM team.revealed
  WHERE revealed_in IS DISTINCT FROM pg_current_xact_id_if_assigned();


CREATE FUNCTION seen.sees_judges() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM team.members WHERE name = session_user::text AND assisted)
$$;

CREATE FUNCTION seen.events_beside() RETURNS SETOF public.events LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT r.* FROM public.events r WHERE r.annotator = session_user::text AND r.trace_id IS NULL $$;

CREATE FUNCTION seen.last_event(
  trace text, under text, OUT seq bigint, OUT chain text, OUT of_work bigint
) LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE linked boolean;
BEGIN
  SELECT e.seq, e.chain, NOT starts_with(e.action, 'import:') INTO seq, chain, linked
    FROM public.events e WHERE e.annotator = session_user::text ORDER BY e.seq DESC, e.id DESC LIMIT 1;
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
CREATE FUNCTION seen.own_events(ids text[]) RETURNS SETOF public.events
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT e.* FROM public.events e WHERE e.annotator = session_user::text AND e.id = ANY(ids) $$;

CREATE FUNCTION seen.asked_rows() RETURNS SETOF public.asked
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."id", r."run", r."trace_id", r."key", r."finish", r."form", r."tokens_in", r."tokens_out", r."usable", r."counted", r."at", r."answer", r."tokens_cached" FROM public.asked r WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM seen.committed_reveals WHERE annotator = session_user::text) $$;
CREATE VIEW seen.asked AS SELECT "id", "run", "trace_id", "key", "finish", "form", "tokens_in", "tokens_out", "usable", "counted", "at", "answer", "tokens_cached" FROM seen.asked_rows();
CREATE FUNCTION seen.decisions_of(trace text, under text) RETURNS SETOF public.decisions
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.decisions r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.decisions AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."item" AS "item", x."decided_at" AS "decided_at", x."document" AS "document"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.decisions_of(t.id, k.ref) x
;
CREATE FUNCTION seen.events_of(trace text, under text) RETURNS SETOF public.events
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.events r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.events AS SELECT x."id" AS "id", x."annotator" AS "annotator", x."seq" AS "seq", x."at" AS "at", x."kind" AS "kind", t.id AS "trace_id", k.ref AS "taxonomy", x."pass_number" AS "pass_number", x."payload" AS "payload", x."replaces" AS "replaces", x."action" AS "action", x."undoes" AS "undoes", x."redoes" AS "redoes", x."chain" AS "chain"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.events_of(t.id, k.ref) x
UNION ALL SELECT "id", "annotator", "seq", "at", "kind", "trace_id", "taxonomy", "pass_number", "payload", "replaces", "action", "undoes", "redoes", "chain" FROM seen.events_beside()
;
CREATE FUNCTION seen.guidelines_rows() RETURNS SETOF public.guidelines
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."annotator", r."id", r."taxonomy", r."written_at", (SELECT json_object_agg(f.key, f.value)::text FROM json_each(r.document::json) f WHERE f.key NOT IN ('trace_id', 'item')) FROM public.guidelines r WHERE true $$;
CREATE VIEW seen.guidelines AS SELECT "annotator", "id", "taxonomy", "written_at", "document" FROM seen.guidelines_rows();
CREATE FUNCTION seen.imported_events_rows() RETURNS SETOF public.imported_events
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."import", r."event" FROM public.imported_events r WHERE false $$;
CREATE VIEW seen.imported_events AS SELECT "import", "event" FROM seen.imported_events_rows();
CREATE FUNCTION seen.imports_rows() RETURNS SETOF public.imports
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."id", r."at", r."who", r."format", r."files", r."asked", r."finished_at", r."undo_begun_at", r."undone_at", r."undone_by" FROM public.imports r WHERE r.format = 'migration' $$;
CREATE VIEW seen.imports AS SELECT "id", "at", "who", "format", "files", "asked", "finished_at", "undo_begun_at", "undone_at", "undone_by" FROM seen.imports_rows();
CREATE FUNCTION seen.judgements_of(trace text, under text) RETURNS SETOF public.judgements
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.judgements r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.judgements AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."looks_at" AS "looks_at", x."run" AS "run", x."at" AS "at"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.judgements_of(t.id, k.ref) x
;
CREATE FUNCTION seen.labels_of(trace text, under text) RETURNS SETOF public.labels
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.labels r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.labels AS SELECT x."annotator" AS "annotator", x."id" AS "id", t.id AS "trace_id", k.ref AS "taxonomy", x."pass_number" AS "pass_number", x."mode" AS "mode", x."first_key" AS "first_key", x."last_key" AS "last_key", x."quote" AS "quote", x."char_start" AS "char_start", x."char_end" AS "char_end", x."note" AS "note", x."confidence" AS "confidence", x."severity" AS "severity", x."origin" AS "origin", x."suggestion" AS "suggestion", x."saw_suggestions" AS "saw_suggestions", x."created_at" AS "created_at", x."evidence_key" AS "evidence_key", x."evidence_quote" AS "evidence_quote", x."evidence_start" AS "evidence_start", x."evidence_end" AS "evidence_end", x."evidence_match" AS "evidence_match", x."evidence_named" AS "evidence_named", x."decisive" AS "decisive", x."evidence_wording" AS "evidence_wording", x."remedy" AS "remedy"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.labels_of(t.id, k.ref) x
;
CREATE FUNCTION seen.passes_of(trace text, under text) RETURNS SETOF public.passes
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.passes r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.passes AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."number" AS "number", x."kind" AS "kind", x."started_at" AS "started_at", x."finished_at" AS "finished_at", x."judge_seen" AS "judge_seen", x."spans_read" AS "spans_read", x."spans" AS "spans", x."revealed_at" AS "revealed_at", x."withdrawn" AS "withdrawn", x."withheld" AS "withheld"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.passes_of(t.id, k.ref) x
;
CREATE FUNCTION seen.reviews_of(trace text, under text) RETURNS SETOF public.reviews
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.reviews r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.reviews AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."pass_number" AS "pass_number", x."suggestion" AS "suggestion", x."answer" AS "answer", x."label" AS "label", x."reason" AS "reason"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.reviews_of(t.id, k.ref) x
;
CREATE FUNCTION seen.run_traces_rows() RETURNS SETOF public.run_traces
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."run", r."trace_id", r."findings", r."problem", r."quotes", r."verified", r."windows", r."remarks", r."quote_kinds" FROM public.run_traces r WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM seen.committed_reveals WHERE annotator = session_user::text) $$;
CREATE VIEW seen.run_traces AS SELECT "run", "trace_id", "findings", "problem", "quotes", "verified", "windows", "remarks", "quote_kinds" FROM seen.run_traces_rows();
CREATE FUNCTION seen.runs_rows() RETURNS SETOF public.runs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."id", r."judge", r."taxonomy", r."started_at", r."finished_at", r."note", r."settings", r."form", r."ending", r."told_requests", r."told_in", r."told_out", r."told_cached" FROM public.runs r WHERE seen.sees_judges() OR r.id IN (SELECT t.run FROM public.run_traces t WHERE t.trace_id IN (SELECT trace_id FROM seen.committed_reveals WHERE annotator = session_user::text)) $$;
CREATE VIEW seen.runs AS SELECT "id", "judge", "taxonomy", "started_at", "finished_at", "note", "settings", "form", "ending", "told_requests", "told_in", "told_out", "told_cached" FROM seen.runs_rows();
CREATE FUNCTION seen.settings_rows() RETURNS SETOF public.settings
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."key", r."value" FROM public.settings r WHERE r.key = 'set_aside' OR r.key = 'open_codes.tags:' || split_part(r.key, ':', 2) || ':' || session_user::text UNION ALL SELECT key, value FROM team.settings WHERE name = session_user::text UNION ALL SELECT key, tags FROM (
  SELECT s.key, (SELECT json_agg(one)::text FROM json_array_elements(s.value::json) one
    WHERE (SELECT two::text FROM json_array_elements(one) WITH ORDINALITY AS of_it(two, number)
      WHERE number = 2) IN (SELECT to_json(v.trace_id)::text FROM seen.committed_reveals v
      WHERE v.annotator = session_user::text
      AND starts_with(v.taxonomy, split_part(s.key, ':', 2) || '@'))) AS tags
  FROM public.settings s
  WHERE starts_with(s.key, 'open_codes.tags:') AND NOT (s.key = 'open_codes.tags:' || split_part(s.key, ':', 2) || ':' || session_user::text)
) others WHERE tags IS NOT NULL $$;
CREATE VIEW seen.settings AS SELECT "key", "value" FROM seen.settings_rows();
CREATE FUNCTION seen.sights_rows() RETURNS SETOF public.sights
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."annotator", r."blind" FROM public.sights r WHERE r.annotator = session_user::text $$;
CREATE VIEW seen.sights AS SELECT "annotator", "blind" FROM seen.sights_rows();
CREATE FUNCTION seen.span_indices_rows() RETURNS SETOF public.span_indices
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."trace_id", r."span_key", r."span_index", r."text_chars" FROM public.span_indices r WHERE r.trace_id IN (SELECT trace_id FROM seen.committed_reveals WHERE annotator = session_user::text) OR EXISTS (SELECT FROM public.labels l WHERE l.annotator = session_user::text AND l.trace_id = r.trace_id AND r.span_key IN (l.first_key, l.last_key)) $$;
CREATE VIEW seen.span_indices AS SELECT "trace_id", "span_key", "span_index", "text_chars" FROM seen.span_indices_rows();
CREATE FUNCTION seen.span_notes_of(trace text, under text) RETURNS SETOF public.span_notes
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.span_notes r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.span_notes AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."pass_number" AS "pass_number", x."span_key" AS "span_key", x."text" AS "text"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.span_notes_of(t.id, k.ref) x
;
CREATE FUNCTION seen.studies_rows() RETURNS SETOF public.studies
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."annotator", r."taxonomy", r."set_at", (SELECT json_object_agg(f.key, f.value)::text FROM json_each(r.document::json) f WHERE f.key NOT IN ('draws')) FROM public.studies r WHERE true $$;
CREATE VIEW seen.studies AS SELECT "annotator", "taxonomy", "set_at", "document" FROM seen.studies_rows();
CREATE FUNCTION seen.verdicts_of(trace text, under text) RETURNS SETOF public.verdicts
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.verdicts r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM seen.committed_reveals v
      WHERE v.annotator = me.name AND v.trace_id = trace AND v.taxonomy = under)
    THEN ARRAY(SELECT a.name FROM public.annotators a)
    WHEN me.assisted
    THEN ARRAY(SELECT a.name FROM public.annotators a
      WHERE a.name = me.name OR starts_with(a.name, 'judge:'))
    ELSE ARRAY[me.name] END
  FROM team.members me WHERE me.name = session_user::text)
::text[])
$$; CREATE VIEW seen.verdicts AS SELECT x."annotator" AS "annotator", t.id AS "trace_id", k.ref AS "taxonomy", x."pass_number" AS "pass_number", x."mode" AS "mode", x."value" AS "value"
FROM public.traces t CROSS JOIN public.taxonomies k
CROSS JOIN LATERAL seen.verdicts_of(t.id, k.ref) x
;
-- The functions by which annotators of a team write: they have no right to change any table.
--
-- Each function runs as the owner of the tables (SECURITY DEFINER), checks who calls it, and takes
-- one row of the table that it writes to. "append_event" adds an event and changes the state
-- tables by it, as mast_tui.workspace.events.append does in a file: so they always agree with the
-- events. "team.py" runs this file whenever it makes the schema "seen" anew.
--
-- What "append_event" calls runs as the owner too, and with its search path. All are written in
-- PL/pgSQL, as the server keeps their plans: a function in plain SQL is planned for every call.

-- Who writes ----------------------------------------------------------------------------------

CREATE FUNCTION seen.check_writer() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM team.members m WHERE m.name = session_user::text) THEN
    RAISE 'you are not in the team' USING ERRCODE = 'MAST1';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    -- An older snapshot would not show what was revealed since the transaction began.
    RAISE 'labels are written in transactions that are READ COMMITTED' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Take the turn to write in these names; '' is the turn to write anything but events. A turn ends
-- with the transaction. Members take turns in names only in which they write, and annotators never
-- that of the registers, so that no one waits for them.
CREATE OR REPLACE FUNCTION public.take_turns(names text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  taken bigint;
BEGIN
  IF EXISTS (SELECT FROM team.members m, unnest(names) n WHERE m.name = session_user::text
    AND n <> m.name AND (m.role = 'annotator' OR n <> '' AND NOT seen.may_write(n))) THEN
    RAISE 'you write in your own name alone, which is %', session_user USING ERRCODE = 'MAST1';
  END IF;
  PERFORM FROM public.turns t WHERE t.name = ANY(names) ORDER BY t.name FOR UPDATE;
  GET DIAGNOSTICS taken = ROW_COUNT;
  IF taken < cardinality(names) THEN
    INSERT INTO public.turns SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
    PERFORM FROM public.turns t WHERE t.name = ANY(names) ORDER BY t.name FOR UPDATE;
  END IF;
END $$;

-- What an event may hold ----------------------------------------------------------------------

-- Return whether a JSON object has the fields that the rules name. A rule is a name, a space and a
-- pattern, which the field's JSON text matches; the text of a missing field is empty.
CREATE FUNCTION seen.has_fields(object jsonb, rules text[]) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_typeof(object) = 'object' AND NOT EXISTS (
    SELECT FROM unnest(rules) rule
    WHERE coalesce((object -> split_part(rule, ' ', 1))::text, '') !~ split_part(rule, ' ', 2));
END $$;

CREATE FUNCTION seen.is_list_of_texts(list jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN jsonb_typeof(list) = 'array'
    THEN NOT EXISTS (SELECT FROM jsonb_array_elements(list) e WHERE jsonb_typeof(e) <> 'string')
    ELSE false END;
END $$;

CREATE FUNCTION seen.is_target(target jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN seen.has_fields(target, ARRAY['first ^("|$)', 'last ^("|$)', 'quote ^("|$)',
      'start ^([0-9]{1,15}|$)', 'end ^([0-9]{1,15}|$)'])
    AND (target ? 'first' OR NOT target ?| '{last,quote}')
    AND NOT (target ? 'quote' AND target ? 'last' AND target -> 'last' <> target -> 'first')
    AND (target ? 'start') = (target ? 'end');
END $$;

CREATE FUNCTION seen.is_label(label jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN seen.has_fields(label, ARRAY[
      'id ^".', 'mode ^".', 'target ^[{]', 'note ^("|$)',
      'severity ^("(fatal|benign)"|$)',
      'origin ^("(manual|accepted|edited|imported|suggested)"|$)', 'suggestion ^("|$)',
      'saw_suggestions ^(true|false|$)', 'created_at ^("|$)', 'evidence ^([{]|$)',
      'confidence ^(0|1|0[.][0-9]+|1[.]0+|$)', 'decisive ^(true|false|$)', 'remedy ^("|$)'])
    AND length(label ->> 'id') BETWEEN 1 AND 200 AND length(label ->> 'mode') BETWEEN 1 AND 200
    AND seen.is_target(label -> 'target')
    AND (NOT label ? 'evidence' OR (seen.has_fields(label -> 'evidence', ARRAY[
        'key ^("|$)', 'quote ^"', 'start ^([0-9]{1,15}|$)', 'end ^([0-9]{1,15}|$)',
        'match ^("(exact|spacing|reworded|in_parts|altered|fuzzy)"|$)', 'named ^(\[|$)',
        'wording ^("|$)'])
      AND (label -> 'evidence' ? 'start') = (label -> 'evidence' ? 'end')
      AND (label -> 'evidence' ? 'key' OR NOT label -> 'evidence' ? 'start')
      AND (NOT label -> 'evidence' ? 'named'
        OR seen.is_list_of_texts(label #> '{evidence,named}')
        AND jsonb_array_length(label #> '{evidence,named}') = 2)));
END $$;

CREATE FUNCTION seen.is_finish(finish jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN seen.has_fields(finish, ARRAY[
    'open_modes ^"', 'read ^([0-9]{1,15}|$)', 'spans ^([0-9]{1,15}|$)',
    'at ^("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(Z|[+-][0-9:]{5})"|$)']);
END $$;

CREATE FUNCTION seen.is_review(review jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_typeof(review) = 'null' OR seen.has_fields(review, ARRAY[
    'answer ^"(accept|edit|reject)"$', 'label ^("|$)', 'reason ^("|$)']);
END $$;

-- Return whether a program can read the payload of an event of this kind.
CREATE FUNCTION seen.is_payload(kind text, payload jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE kind
    WHEN 'label_added' THEN seen.is_label(payload -> 'label')
    WHEN 'label_removed' THEN seen.is_label(payload -> 'label')
    WHEN 'label_changed' THEN seen.is_label(payload -> 'before')
      AND seen.is_label(payload -> 'after')
    WHEN 'verdict_set' THEN seen.has_fields(payload, ARRAY['mode ^".{1,200}"$',
      'before ^("(absent|unsure)"|null)$', 'after ^("(absent|unsure)"|null)$'])
    WHEN 'spans_read' THEN seen.is_list_of_texts(payload -> 'keys')
      AND (NOT payload ? 'runs' OR jsonb_typeof(payload -> 'runs') = 'array' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(payload -> 'runs') run
        WHERE NOT seen.has_fields(run, ARRAY['first ^"', 'last ^"'])))
    WHEN 'pass_started' THEN seen.has_fields(payload, ARRAY[
      'kind ^"(blind|assisted|second_look|adjudication|retest)"$', 'copy_of ^([0-9]{1,9}|$)',
      'withheld ^(true|false|$)'])
    WHEN 'pass_withdrawn' THEN seen.has_fields(payload, ARRAY[
      'kind ^"(blind|assisted|second_look|adjudication|retest)"$', 'copy_of ^([0-9]{1,9}|$)'])
    WHEN 'pass_kind_set' THEN seen.has_fields(payload, ARRAY[
      'before ^"(blind|assisted|second_look|adjudication|retest)"$',
      'after ^"(blind|assisted|second_look|adjudication|retest)"$'])
    WHEN 'pass_finished' THEN seen.is_finish(payload)
    WHEN 'pass_unfinished' THEN seen.is_finish(payload -> 'was')
    WHEN 'review_set' THEN seen.has_fields(payload, ARRAY['suggestion ^".{1,200}"$'])
      AND seen.is_review(payload -> 'before') AND seen.is_review(payload -> 'after')
    WHEN 'span_note_set' THEN seen.has_fields(payload,
      ARRAY['key ^".+"$', 'before ^"', 'after ^"'])
    WHEN 'suggestions_seen' THEN jsonb_typeof(payload) = 'object'
    WHEN 'revealed' THEN seen.has_fields(payload, ARRAY['what ^"'])
    WHEN 'look_again_set' THEN seen.is_list_of_texts(payload -> 'before')
      AND seen.is_list_of_texts(payload -> 'after')
    WHEN 'sight_set' THEN seen.has_fields(payload,
      ARRAY['before ^(true|false|null)$', 'blind ^(true|false)$'])
    ELSE false END;
END $$;

-- Return a payload as the tables keep texts: they hold no NUL, so it is kept as two characters.
CREATE FUNCTION seen.kept_texts(payload text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF strpos(payload, '\u001a') > 0 OR strpos(payload, '\u0000') > 0 THEN
    payload := regexp_replace(payload, '(?<!\\)((?:\\\\)*)\\u001a', '\1\\u001aS', 'g');
    payload := regexp_replace(payload, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u001a0', 'g');
  END IF;
  RETURN payload::jsonb;
END $$;

-- Return whether these are the tags of open codes: of each its annotator, trace, target, kind, tags.
CREATE FUNCTION seen.are_tags(tags jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN jsonb_typeof(tags) = 'array' THEN NOT EXISTS (
    SELECT FROM jsonb_array_elements(tags) place
    WHERE CASE WHEN jsonb_typeof(place) = 'array' AND jsonb_array_length(place) = 5
      THEN NOT (jsonb_typeof(place -> 0) = 'string' AND jsonb_typeof(place -> 1) = 'string'
        AND seen.is_target(place -> 2) AND jsonb_typeof(place -> 3) = 'boolean'
        AND seen.is_list_of_texts(place -> 4))
      ELSE true END) ELSE false END;
END $$;

-- Events --------------------------------------------------------------------------------------

-- Refuse an event that no program could read, or whose counter is not the next one.
CREATE FUNCTION seen.check_event(event public.events) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  last_seq bigint;
BEGIN
  SELECT max(e.seq) INTO last_seq FROM public.events e WHERE e.annotator = event.annotator;
  IF event.seq IS DISTINCT FROM coalesce(last_seq, 0) + 1 THEN
    RAISE 'another program was first' USING ERRCODE = 'MAST1';
  END IF;
  IF event.kind IN ('decided', 'judged', 'study_set', 'guideline_set') THEN
    RAISE 'an annotator cannot do that' USING ERRCODE = 'MAST1';
  END IF;
  -- Patterns would take several times as long as "translate". An id is a UUID of version 7: those
  -- of imports, which anyone can work out, are of version 5.
  IF (event.id = event.id::uuid::text AND substr(event.id, 15, 1) = '7'
    AND starts_with(translate(event.at, '123456789', '000000000'), '0000-00-00T00:00:00')
    AND event.at::timestamptz IS NOT NULL AND length(event.at) <= 40
    AND length(event.action) BETWEEN 1 AND 200 AND NOT starts_with(event.action, 'import:')
    AND length(coalesce(event.undoes, '')) <= 200 AND length(coalesce(event.redoes, '')) <= 200
    AND length(event.chain) = 32 AND translate(event.chain, '0123456789abcdef', '') = ''
    AND length(event.payload) <= 1000000
    AND (event.replaces = '[]' OR seen.is_list_of_texts(event.replaces::jsonb))) IS NOT TRUE
  THEN
    RAISE 'this is no event that a program could read' USING ERRCODE = 'MAST1';
  END IF;
  IF EXISTS (SELECT FROM public.events e
    WHERE e.id = event.id AND e.annotator <> event.annotator) THEN
    RAISE 'an event of another annotator has this id' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Refuse an event whose pass cannot take it.
CREATE FUNCTION seen.check_pass(event public.events, payload jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  is_known boolean;
  last_pass bigint;
  last_revealed bigint;
  pass_kind text := CASE event.kind WHEN 'pass_started' THEN payload ->> 'kind'
    WHEN 'pass_kind_set' THEN payload ->> 'after' END;
BEGIN
  SELECT EXISTS (SELECT FROM public.traces t WHERE t.id = event.trace_id)
      AND EXISTS (SELECT FROM public.taxonomies t WHERE t.ref = event.taxonomy),
    (SELECT max(r.pass_number) FROM team.revealed r WHERE r.annotator = event.annotator
      AND r.trace_id = event.trace_id AND r.taxonomy = event.taxonomy),
    (SELECT max(p.number) FROM public.passes p WHERE p.annotator = event.annotator
      AND p.trace_id = event.trace_id AND p.taxonomy = event.taxonomy)
    INTO is_known, last_revealed, last_pass;
  IF NOT is_known THEN
    RAISE 'the workspace has no such trace or taxonomy' USING ERRCODE = 'MAST1';
  END IF;
  IF event.pass_number <= last_revealed THEN
    RAISE 'what you said before you saw what others say stands; a change opens the next pass'
      USING ERRCODE = 'MAST1';
  END IF;
  IF last_revealed IS NOT NULL AND pass_kind IN ('blind', 'assisted') THEN
    RAISE 'a pass that begins after you saw what others say is a second look'
      USING ERRCODE = 'MAST1';
  END IF;
  IF (event.pass_number BETWEEN 1 AND coalesce(last_pass, 0)
    OR event.kind = 'pass_started' AND event.pass_number = coalesce(last_pass, 0) + 1)
    IS NOT TRUE
  THEN
    RAISE 'a pass begins before anything is said in it, and the first one is number 1'
      USING ERRCODE = 'MAST1';
  END IF;
  -- Others are shown after the last pass: none that comes later is blind.
  IF event.kind = 'revealed' AND NOT EXISTS (SELECT FROM public.passes p
    WHERE p.annotator = event.annotator AND p.trace_id = event.trace_id
    AND p.taxonomy = event.taxonomy AND p.number = event.pass_number
    AND p.finished_at IS NOT NULL AND NOT p.withdrawn AND NOT EXISTS (
      SELECT FROM public.passes later WHERE later.annotator = p.annotator
      AND later.trace_id = p.trace_id AND later.taxonomy = p.taxonomy
      AND later.number > p.number AND NOT later.withdrawn))
  THEN
    RAISE 'what others say is shown once you have finished' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Put a label in the place of one with its id.
CREATE FUNCTION seen.put_label(event public.events, label jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  target jsonb := label -> 'target';
  evidence jsonb := label -> 'evidence';
  named text[];
BEGIN
  IF evidence ? 'named' THEN
    -- As the payload has it, in ASCII; of a change the label after it comes first.
    named := regexp_match(event.payload,
      '"named":\[("(?:[^"\\]|\\.)*"),("(?:[^"\\]|\\.)*")\]');
  END IF;
  INSERT INTO public.labels AS kept (annotator, id, trace_id, taxonomy, pass_number, mode,
    first_key, last_key, quote, char_start, char_end, note, confidence, severity, origin,
    suggestion, saw_suggestions, created_at, evidence_key, evidence_quote, evidence_start,
    evidence_end, evidence_match, evidence_named, decisive, evidence_wording, remedy)
  VALUES (event.annotator, label ->> 'id', event.trace_id, event.taxonomy, event.pass_number,
    label ->> 'mode', target ->> 'first', coalesce(target ->> 'last', target ->> 'first'),
    target ->> 'quote', (target ->> 'start')::bigint, (target ->> 'end')::bigint,
    coalesce(label ->> 'note', ''), (label ->> 'confidence')::float8, label ->> 'severity',
    coalesce(label ->> 'origin', 'manual'), label ->> 'suggestion',
    coalesce((label ->> 'saw_suggestions')::boolean, false), coalesce(label ->> 'created_at', ''),
    evidence ->> 'key', evidence ->> 'quote', (evidence ->> 'start')::bigint,
    (evidence ->> 'end')::bigint, evidence ->> 'match',
    '[' || named[1] || ', ' || named[2] || ']',
    (label ->> 'decisive')::boolean, evidence ->> 'wording', nullif(label ->> 'remedy', ''))
  ON CONFLICT (annotator, id) DO UPDATE SET mode = excluded.mode, first_key = excluded.first_key,
    last_key = excluded.last_key, quote = excluded.quote, char_start = excluded.char_start,
    char_end = excluded.char_end, note = excluded.note, confidence = excluded.confidence,
    severity = excluded.severity, origin = excluded.origin, suggestion = excluded.suggestion,
    saw_suggestions = excluded.saw_suggestions, created_at = excluded.created_at,
    evidence_key = excluded.evidence_key, evidence_quote = excluded.evidence_quote,
    evidence_start = excluded.evidence_start, evidence_end = excluded.evidence_end,
    evidence_match = excluded.evidence_match, evidence_named = excluded.evidence_named,
    decisive = excluded.decisive, evidence_wording = excluded.evidence_wording,
    remedy = excluded.remedy
  WHERE (kept.trace_id, kept.taxonomy, kept.pass_number)
    = (excluded.trace_id, excluded.taxonomy, excluded.pass_number);
  IF NOT FOUND THEN
    RAISE 'a label of another pass has this id' USING ERRCODE = 'MAST1';
  END IF;
END $$;

CREATE FUNCTION seen.remove_label(event public.events, label text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM public.labels l WHERE l.annotator = event.annotator AND l.id = label
    AND l.trace_id = event.trace_id AND l.taxonomy = event.taxonomy
    AND l.pass_number = event.pass_number;
  IF NOT FOUND AND EXISTS (SELECT FROM public.labels l
    WHERE l.annotator = event.annotator AND l.id = label) THEN
    RAISE 'a label of another pass has this id' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Change the row of a pass that has begun.
CREATE FUNCTION seen.change_pass(event public.events, payload jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.passes p SET
    withdrawn = p.withdrawn OR event.kind = 'pass_withdrawn',
    judge_seen = p.judge_seen OR event.kind = 'suggestions_seen',
    kind = CASE event.kind WHEN 'pass_kind_set' THEN payload ->> 'after' ELSE p.kind END,
    revealed_at = CASE event.kind WHEN 'revealed' THEN event.at ELSE p.revealed_at END,
    finished_at = CASE event.kind WHEN 'pass_finished' THEN coalesce(payload ->> 'at', event.at)
      WHEN 'pass_unfinished' THEN NULL ELSE p.finished_at END,
    spans_read = CASE event.kind WHEN 'pass_finished' THEN (payload ->> 'read')::bigint
      WHEN 'pass_unfinished' THEN NULL ELSE p.spans_read END,
    spans = CASE event.kind WHEN 'pass_finished' THEN (payload ->> 'spans')::bigint
      WHEN 'pass_unfinished' THEN NULL ELSE p.spans END
  WHERE p.annotator = event.annotator AND p.trace_id = event.trace_id
    AND p.taxonomy = event.taxonomy AND p.number = event.pass_number;
END $$;

-- Change the state tables by an event.
CREATE FUNCTION seen.follow_event(event public.events, payload jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  CASE event.kind
    WHEN 'label_added' THEN
      PERFORM seen.put_label(event, payload -> 'label');
    WHEN 'label_changed' THEN
      PERFORM seen.put_label(event, payload -> 'after');
    WHEN 'label_removed' THEN
      PERFORM seen.remove_label(event, payload #>> '{label,id}');
    WHEN 'verdict_set' THEN
      IF payload ->> 'after' IS NULL THEN
        DELETE FROM public.verdicts v WHERE v.annotator = event.annotator
          AND v.trace_id = event.trace_id AND v.taxonomy = event.taxonomy
          AND v.pass_number = event.pass_number AND v.mode = payload ->> 'mode';
      ELSE
        INSERT INTO public.verdicts VALUES (event.annotator, event.trace_id, event.taxonomy,
          event.pass_number, payload ->> 'mode', payload ->> 'after')
        ON CONFLICT (annotator, trace_id, taxonomy, pass_number, mode)
          DO UPDATE SET value = excluded.value;
      END IF;
    WHEN 'review_set' THEN
      IF jsonb_typeof(payload -> 'after') = 'null' THEN
        DELETE FROM public.reviews r WHERE r.annotator = event.annotator
          AND r.trace_id = event.trace_id AND r.taxonomy = event.taxonomy
          AND r.pass_number = event.pass_number AND r.suggestion = payload ->> 'suggestion';
      ELSE
        INSERT INTO public.reviews VALUES (event.annotator, event.trace_id, event.taxonomy,
          event.pass_number, payload ->> 'suggestion', payload #>> '{after,answer}',
          payload #>> '{after,label}', coalesce(payload #>> '{after,reason}', ''))
        ON CONFLICT (annotator, trace_id, taxonomy, pass_number, suggestion) DO UPDATE
          SET answer = excluded.answer, label = excluded.label, reason = excluded.reason;
      END IF;
    WHEN 'span_note_set' THEN
      IF payload ->> 'after' = '' THEN
        DELETE FROM public.span_notes n WHERE n.annotator = event.annotator
          AND n.trace_id = event.trace_id AND n.taxonomy = event.taxonomy
          AND n.pass_number = event.pass_number AND n.span_key = payload ->> 'key';
      ELSE
        INSERT INTO public.span_notes VALUES (event.annotator, event.trace_id, event.taxonomy,
          event.pass_number, payload ->> 'key', payload ->> 'after')
        ON CONFLICT (annotator, trace_id, taxonomy, pass_number, span_key)
          DO UPDATE SET text = excluded.text;
      END IF;
    WHEN 'pass_started' THEN
      -- A pass stays as it began, unless it was withdrawn.
      INSERT INTO public.passes AS p (annotator, trace_id, taxonomy, number, kind, started_at,
        judge_seen, withdrawn, withheld)
      VALUES (event.annotator, event.trace_id, event.taxonomy, event.pass_number,
        payload ->> 'kind', event.at, false, false,
        coalesce((payload ->> 'withheld')::boolean, false))
      ON CONFLICT (annotator, trace_id, taxonomy, number) DO UPDATE SET
        kind = CASE WHEN p.withdrawn THEN excluded.kind ELSE p.kind END,
        started_at = CASE WHEN p.withdrawn THEN excluded.started_at ELSE p.started_at END,
        withheld = CASE WHEN p.withdrawn THEN excluded.withheld ELSE p.withheld END,
        withdrawn = false;
    WHEN 'spans_read' THEN NULL;
    WHEN 'look_again_set' THEN NULL;
    WHEN 'sight_set' THEN
      INSERT INTO public.sights VALUES (event.annotator, (payload ->> 'blind')::boolean)
      ON CONFLICT (annotator) DO UPDATE SET blind = excluded.blind;
    ELSE
      PERFORM seen.change_pass(event, payload);
  END CASE;
END $$;

-- Add an event of the caller, with what follows from it.
CREATE FUNCTION seen.append_event(event public.events) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  payload jsonb;
BEGIN
  PERFORM seen.check_writer();
  IF event.annotator IS DISTINCT FROM session_user::text THEN
    RAISE 'you write in your own name alone, which is %', session_user USING ERRCODE = 'MAST1';
  END IF;
  PERFORM FROM public.turns t WHERE t.name = event.annotator FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM public.take_turns(ARRAY[event.annotator]);
  END IF;
  PERFORM seen.check_event(event);
  payload := seen.kept_texts(event.payload);
  IF seen.is_payload(event.kind, payload) IS NOT TRUE THEN
    RAISE 'this is no event that a program could read' USING ERRCODE = 'MAST1';
  END IF;
  IF event.kind <> 'sight_set' THEN
    PERFORM seen.check_pass(event, payload);
  ELSIF event.trace_id IS NOT NULL OR event.pass_number IS NOT NULL THEN
    RAISE 'this is no event that a program could read' USING ERRCODE = 'MAST1';
  END IF;
  INSERT INTO public.events SELECT event.*;
  PERFORM seen.follow_event(event, payload);
  IF event.kind = 'revealed' THEN
    INSERT INTO team.revealed
      VALUES (event.annotator, event.trace_id, event.taxonomy, event.pass_number);
  END IF;
END $$;

-- Registers -----------------------------------------------------------------------------------

-- Register a trace that no one has registered; one that is registered stays as it is.
CREATE FUNCTION seen.register_trace(trace public.traces) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'
AS $$
BEGIN
  PERFORM seen.check_writer();
  IF (length(trace.id) BETWEEN 1 AND 1000 AND length(trace.base_id) BETWEEN 1 AND 1000
    AND trace.outcome IN ('succeeded', 'failed', 'unknown')
    AND (trace.content_hash IS NULL OR trace.content_hash ~ '^[0-9a-f]{1,128}$'
      AND trace.content_bytes >= 0 AND trace.reader IS NOT NULL AND trace.key_scheme >= 0)
    AND coalesce(trace.spans, 0) >= 0 AND coalesce(trace.record, 0) >= 0) IS NOT TRUE
  THEN
    RAISE 'this is no trace that a program could read' USING ERRCODE = 'MAST1';
  END IF;
  INSERT INTO public.traces SELECT trace.* ON CONFLICT DO NOTHING;
END $$;

-- Keep the index of a span; one that is kept stays, until one who reads everything brings another.
CREATE FUNCTION seen.keep_span_index(place public.span_indices) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'
AS $$
BEGIN
  PERFORM seen.check_writer();
  IF (coalesce(place.span_index, 0) >= 0 AND coalesce(place.text_chars, 0) >= 0) IS NOT TRUE
    OR NOT EXISTS (SELECT FROM public.traces t WHERE t.id = place.trace_id) THEN
    RAISE 'this is no span of a trace' USING ERRCODE = 'MAST1';
  END IF;
  INSERT INTO public.span_indices SELECT place.* ON CONFLICT DO NOTHING;
END $$;

-- Keep a setting of the caller's own; the tags that they give can be read by others.
CREATE FUNCTION seen.set_setting(setting public.settings) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_writer();
  IF setting.key = 'open_codes.tags:' || split_part(setting.key, ':', 2) || ':' || session_user::text THEN
    IF seen.are_tags(seen.kept_texts(setting.value)) IS NOT TRUE THEN
      RAISE 'these are no tags that a program could read' USING ERRCODE = 'MAST1';
    END IF;
    INSERT INTO public.settings SELECT setting.*
      ON CONFLICT (key) DO UPDATE SET value = excluded.value;
  ELSE
    INSERT INTO team.settings VALUES (session_user::text, setting.key, setting.value)
      ON CONFLICT (name, key) DO UPDATE SET value = excluded.value;
  END IF;
END $$;

-- Parts of "append_event", which check nothing themselves.
REVOKE EXECUTE ON FUNCTION seen.check_event(public.events), seen.check_pass(public.events, jsonb),
  seen.put_label(public.events, jsonb), seen.remove_label(public.events, text),
  seen.change_pass(public.events, jsonb), seen.follow_event(public.events, jsonb),
  public.take_turns(text[]) FROM PUBLIC;

