CREATE SCHEMA IF NOT EXISTS team;
CREATE TABLE IF NOT EXISTS team.members (name TEXT COLLATE "C" PRIMARY KEY,
role TEXT NOT NULL, assisted BOOLEAN NOT NULL);
CREATE TABLE IF NOT EXISTS team.revealed (annotator TEXT COLLATE "C",
trace_id TEXT COLLATE "C", taxonomy TEXT COLLATE "C", pass_number BIGINT,
PRIMARY KEY (annotator, trace_id, taxonomy, pass_number));
CREATE TABLE IF NOT EXISTS team.settings (name TEXT COLLATE "C",
key TEXT COLLATE "C", value TEXT NOT NULL, PRIMARY KEY (name, key));
INSERT INTO team.revealed SELECT DISTINCT annotator, trace_id, taxonomy, pass_number
FROM public.events WHERE kind = 'revealed'
AND trace_id IS NOT NULL AND taxonomy IS NOT NULL AND pass_number IS NOT NULL
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

CREATE FUNCTION seen.check_write(whose text, trace text, under text, pass bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM team.members m WHERE m.name = session_user::text AND m.name = whose) THEN
    RAISE 'you write in your own name alone, which is %', session_user USING ERRCODE = 'MAST1';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    -- It would not know of what was revealed since it began.
    RAISE 'labels are written in transactions that are READ COMMITTED'
      USING ERRCODE = 'MAST1';
  END IF;
  IF EXISTS (SELECT FROM team.revealed r WHERE r.annotator = whose AND r.trace_id = trace
    AND r.taxonomy = under AND r.pass_number >= pass) THEN
    RAISE 'what you said before you saw what others say stands; a change opens the next pass'
      USING ERRCODE = 'MAST1';
  END IF;
END $$;

CREATE FUNCTION seen.drop_label(whose text, label text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE old public.labels;
BEGIN
  SELECT * INTO old FROM public.labels l WHERE l.annotator = session_user::text AND l.id = label;
  PERFORM seen.check_write(whose, old.trace_id, old.taxonomy, old.pass_number);
  DELETE FROM public.labels l WHERE l.annotator = whose AND l.id = label;
END $$;

CREATE FUNCTION seen.asked_rows() RETURNS SETOF public.asked
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."id", r."run", r."trace_id", r."key", r."finish", r."form", r."tokens_in", r."tokens_out", r."usable", r."counted", r."at", r."answer", r."tokens_cached" FROM public.asked r WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM team.revealed WHERE annotator = session_user::text) $$;
CREATE VIEW seen.asked AS SELECT "id", "run", "trace_id", "key", "finish", "form", "tokens_in", "tokens_out", "usable", "counted", "at", "answer", "tokens_cached" FROM seen.asked_rows();
CREATE FUNCTION seen.decisions_of(trace text, under text) RETURNS SETOF public.decisions
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.decisions r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."run", r."trace_id", r."findings", r."problem", r."quotes", r."verified", r."windows", r."remarks", r."quote_kinds" FROM public.run_traces r WHERE seen.sees_judges() OR r.trace_id IN (SELECT trace_id FROM team.revealed WHERE annotator = session_user::text) $$;
CREATE VIEW seen.run_traces AS SELECT "run", "trace_id", "findings", "problem", "quotes", "verified", "windows", "remarks", "quote_kinds" FROM seen.run_traces_rows();
CREATE FUNCTION seen.runs_rows() RETURNS SETOF public.runs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."id", r."judge", r."taxonomy", r."started_at", r."finished_at", r."note", r."settings", r."form", r."ending", r."told_requests", r."told_in", r."told_out", r."told_cached" FROM public.runs r WHERE seen.sees_judges() OR r.id IN (SELECT t.run FROM public.run_traces t WHERE t.trace_id IN (SELECT trace_id FROM team.revealed WHERE annotator = session_user::text)) $$;
CREATE VIEW seen.runs AS SELECT "id", "judge", "taxonomy", "started_at", "finished_at", "note", "settings", "form", "ending", "told_requests", "told_in", "told_out", "told_cached" FROM seen.runs_rows();
CREATE FUNCTION seen.settings_rows() RETURNS SETOF public.settings
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."key", r."value" FROM public.settings r WHERE r.key = 'set_aside' OR r.key = 'open_codes.tags:' || split_part(r.key, ':', 2) || ':' || session_user::text UNION ALL SELECT key, value FROM team.settings WHERE name = session_user::text UNION ALL SELECT key, tags FROM (
  SELECT s.key, (SELECT json_agg(one)::text FROM json_array_elements(s.value::json) one
    WHERE (SELECT two::text FROM json_array_elements(one) WITH ORDINALITY AS of_it(two, number)
      WHERE number = 2) IN (SELECT to_json(v.trace_id)::text FROM team.revealed v
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
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r."trace_id", r."span_key", r."span_index", r."text_chars" FROM public.span_indices r WHERE r.trace_id IN (SELECT trace_id FROM team.revealed WHERE annotator = session_user::text) OR EXISTS (SELECT FROM public.labels l WHERE l.annotator = session_user::text AND l.trace_id = r.trace_id AND r.span_key IN (l.first_key, l.last_key)) $$;
CREATE VIEW seen.span_indices AS SELECT "trace_id", "span_key", "span_index", "text_chars" FROM seen.span_indices_rows();
CREATE FUNCTION seen.span_notes_of(trace text, under text) RETURNS SETOF public.span_notes
LANGUAGE sql STABLE ROWS 10 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ SELECT r.* FROM public.span_notes r WHERE
r.trace_id = trace AND r.taxonomy = under
AND r.annotator = ANY(
  (SELECT CASE
    WHEN EXISTS (SELECT FROM team.revealed v
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
    WHEN EXISTS (SELECT FROM team.revealed v
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
CREATE FUNCTION seen.labels_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); INSERT INTO public.labels AS o ("annotator", "id", "trace_id", "taxonomy", "pass_number", "mode", "first_key", "last_key", "quote", "char_start", "char_end", "note", "confidence", "severity", "origin", "suggestion", "saw_suggestions", "created_at", "evidence_key", "evidence_quote", "evidence_start", "evidence_end", "evidence_match", "evidence_named", "decisive", "evidence_wording", "remedy") VALUES (NEW."annotator", NEW."id", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."mode", NEW."first_key", NEW."last_key", NEW."quote", NEW."char_start", NEW."char_end", NEW."note", NEW."confidence", NEW."severity", NEW."origin", NEW."suggestion", NEW."saw_suggestions", NEW."created_at", NEW."evidence_key", NEW."evidence_quote", NEW."evidence_start", NEW."evidence_end", NEW."evidence_match", NEW."evidence_named", NEW."decisive", NEW."evidence_wording", NEW."remedy") ON CONFLICT ("annotator", "id") DO UPDATE SET "trace_id" = excluded."trace_id", "taxonomy" = excluded."taxonomy", "pass_number" = excluded."pass_number", "mode" = excluded."mode", "first_key" = excluded."first_key", "last_key" = excluded."last_key", "quote" = excluded."quote", "char_start" = excluded."char_start", "char_end" = excluded."char_end", "note" = excluded."note", "confidence" = excluded."confidence", "severity" = excluded."severity", "origin" = excluded."origin", "suggestion" = excluded."suggestion", "saw_suggestions" = excluded."saw_suggestions", "created_at" = excluded."created_at", "evidence_key" = excluded."evidence_key", "evidence_quote" = excluded."evidence_quote", "evidence_start" = excluded."evidence_start", "evidence_end" = excluded."evidence_end", "evidence_match" = excluded."evidence_match", "evidence_named" = excluded."evidence_named", "decisive" = excluded."decisive", "evidence_wording" = excluded."evidence_wording", "remedy" = excluded."remedy" WHERE (o."trace_id", o."taxonomy", o."pass_number") = (excluded."trace_id", excluded."taxonomy", excluded."pass_number"); RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.labels
FOR EACH ROW EXECUTE FUNCTION seen.labels_insert();
CREATE FUNCTION seen.labels_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); UPDATE public.labels SET ("annotator", "id", "trace_id", "taxonomy", "pass_number", "mode", "first_key", "last_key", "quote", "char_start", "char_end", "note", "confidence", "severity", "origin", "suggestion", "saw_suggestions", "created_at", "evidence_key", "evidence_quote", "evidence_start", "evidence_end", "evidence_match", "evidence_named", "decisive", "evidence_wording", "remedy") = ROW (NEW."annotator", NEW."id", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."mode", NEW."first_key", NEW."last_key", NEW."quote", NEW."char_start", NEW."char_end", NEW."note", NEW."confidence", NEW."severity", NEW."origin", NEW."suggestion", NEW."saw_suggestions", NEW."created_at", NEW."evidence_key", NEW."evidence_quote", NEW."evidence_start", NEW."evidence_end", NEW."evidence_match", NEW."evidence_named", NEW."decisive", NEW."evidence_wording", NEW."remedy") WHERE "annotator" = OLD."annotator" AND "id" = OLD."id"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.labels
FOR EACH ROW EXECUTE FUNCTION seen.labels_update();
CREATE FUNCTION seen.labels_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); DELETE FROM public.labels WHERE "annotator" = OLD."annotator" AND "id" = OLD."id"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.labels
FOR EACH ROW EXECUTE FUNCTION seen.labels_delete();
CREATE FUNCTION seen.verdicts_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); INSERT INTO public.verdicts AS o ("annotator", "trace_id", "taxonomy", "pass_number", "mode", "value") VALUES (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."mode", NEW."value") ON CONFLICT ("annotator", "trace_id", "taxonomy", "pass_number", "mode") DO UPDATE SET "value" = excluded."value" ; RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.verdicts
FOR EACH ROW EXECUTE FUNCTION seen.verdicts_insert();
CREATE FUNCTION seen.verdicts_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); UPDATE public.verdicts SET ("annotator", "trace_id", "taxonomy", "pass_number", "mode", "value") = ROW (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."mode", NEW."value") WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "mode" = OLD."mode"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.verdicts
FOR EACH ROW EXECUTE FUNCTION seen.verdicts_update();
CREATE FUNCTION seen.verdicts_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); DELETE FROM public.verdicts WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "mode" = OLD."mode"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.verdicts
FOR EACH ROW EXECUTE FUNCTION seen.verdicts_delete();
CREATE FUNCTION seen.reviews_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); INSERT INTO public.reviews AS o ("annotator", "trace_id", "taxonomy", "pass_number", "suggestion", "answer", "label", "reason") VALUES (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."suggestion", NEW."answer", NEW."label", NEW."reason") ON CONFLICT ("annotator", "trace_id", "taxonomy", "pass_number", "suggestion") DO UPDATE SET "answer" = excluded."answer", "label" = excluded."label", "reason" = excluded."reason" ; RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.reviews
FOR EACH ROW EXECUTE FUNCTION seen.reviews_insert();
CREATE FUNCTION seen.reviews_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); UPDATE public.reviews SET ("annotator", "trace_id", "taxonomy", "pass_number", "suggestion", "answer", "label", "reason") = ROW (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."suggestion", NEW."answer", NEW."label", NEW."reason") WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "suggestion" = OLD."suggestion"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.reviews
FOR EACH ROW EXECUTE FUNCTION seen.reviews_update();
CREATE FUNCTION seen.reviews_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); DELETE FROM public.reviews WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "suggestion" = OLD."suggestion"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.reviews
FOR EACH ROW EXECUTE FUNCTION seen.reviews_delete();
CREATE FUNCTION seen.span_notes_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); INSERT INTO public.span_notes AS o ("annotator", "trace_id", "taxonomy", "pass_number", "span_key", "text") VALUES (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."span_key", NEW."text") ON CONFLICT ("annotator", "trace_id", "taxonomy", "pass_number", "span_key") DO UPDATE SET "text" = excluded."text" ; RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.span_notes
FOR EACH ROW EXECUTE FUNCTION seen.span_notes_insert();
CREATE FUNCTION seen.span_notes_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."pass_number"); UPDATE public.span_notes SET ("annotator", "trace_id", "taxonomy", "pass_number", "span_key", "text") = ROW (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."span_key", NEW."text") WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "span_key" = OLD."span_key"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.span_notes
FOR EACH ROW EXECUTE FUNCTION seen.span_notes_update();
CREATE FUNCTION seen.span_notes_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."pass_number"); DELETE FROM public.span_notes WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "pass_number" = OLD."pass_number" AND "span_key" = OLD."span_key"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.span_notes
FOR EACH ROW EXECUTE FUNCTION seen.span_notes_delete();
CREATE FUNCTION seen.passes_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."number"); INSERT INTO public.passes AS o ("annotator", "trace_id", "taxonomy", "number", "kind", "started_at", "finished_at", "judge_seen", "spans_read", "spans", "revealed_at", "withdrawn", "withheld") VALUES (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."number", NEW."kind", NEW."started_at", NEW."finished_at", NEW."judge_seen", NEW."spans_read", NEW."spans", NEW."revealed_at", NEW."withdrawn", NEW."withheld") ON CONFLICT ("annotator", "trace_id", "taxonomy", "number") DO UPDATE SET "kind" = CASE WHEN o.withdrawn THEN excluded.kind ELSE o.kind END, "started_at" = CASE WHEN o.withdrawn THEN excluded.started_at ELSE o.started_at END, "withheld" = CASE WHEN o.withdrawn THEN excluded.withheld ELSE o.withheld END, "withdrawn" = FALSE ; RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.passes
FOR EACH ROW EXECUTE FUNCTION seen.passes_insert();
CREATE FUNCTION seen.passes_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN IF NOT ((NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."number", NEW."kind", NEW."started_at", NEW."finished_at", NEW."judge_seen", NEW."spans_read", NEW."spans", NEW."withdrawn", NEW."withheld") IS NOT DISTINCT FROM (OLD."annotator", OLD."trace_id", OLD."taxonomy", OLD."number", OLD."kind", OLD."started_at", OLD."finished_at", OLD."judge_seen", OLD."spans_read", OLD."spans", OLD."withdrawn", OLD."withheld")) THEN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."number"); PERFORM seen.check_write(NEW.annotator, NEW."trace_id", NEW."taxonomy", NEW."number"); END IF; PERFORM seen.check_write(NEW.annotator, NULL, NULL, NULL); UPDATE public.passes SET ("annotator", "trace_id", "taxonomy", "number", "kind", "started_at", "finished_at", "judge_seen", "spans_read", "spans", "revealed_at", "withdrawn", "withheld") = ROW (NEW."annotator", NEW."trace_id", NEW."taxonomy", NEW."number", NEW."kind", NEW."started_at", NEW."finished_at", NEW."judge_seen", NEW."spans_read", NEW."spans", NEW."revealed_at", NEW."withdrawn", NEW."withheld") WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "number" = OLD."number"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.passes
FOR EACH ROW EXECUTE FUNCTION seen.passes_update();
CREATE FUNCTION seen.passes_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, OLD."trace_id", OLD."taxonomy", OLD."number"); DELETE FROM public.passes WHERE "annotator" = OLD."annotator" AND "trace_id" = OLD."trace_id" AND "taxonomy" = OLD."taxonomy" AND "number" = OLD."number"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.passes
FOR EACH ROW EXECUTE FUNCTION seen.passes_delete();
CREATE FUNCTION seen.sights_insert() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(NEW.annotator, NULL::text, NULL::text, NULL); INSERT INTO public.sights AS o ("annotator", "blind") VALUES (NEW."annotator", NEW."blind") ON CONFLICT ("annotator") DO UPDATE SET "blind" = excluded."blind" ; RETURN NEW; END $$;
CREATE TRIGGER on_insert INSTEAD OF INSERT ON seen.sights
FOR EACH ROW EXECUTE FUNCTION seen.sights_insert();
CREATE FUNCTION seen.sights_update() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, NULL::text, NULL::text, NULL); PERFORM seen.check_write(NEW.annotator, NULL::text, NULL::text, NULL); UPDATE public.sights SET ("annotator", "blind") = ROW (NEW."annotator", NEW."blind") WHERE "annotator" = OLD."annotator"; RETURN NEW; END $$;
CREATE TRIGGER on_update INSTEAD OF UPDATE ON seen.sights
FOR EACH ROW EXECUTE FUNCTION seen.sights_update();
CREATE FUNCTION seen.sights_delete() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$ BEGIN PERFORM seen.check_write(OLD.annotator, NULL::text, NULL::text, NULL); DELETE FROM public.sights WHERE "annotator" = OLD."annotator"; RETURN OLD; END $$;
CREATE TRIGGER on_delete INSTEAD OF DELETE ON seen.sights
FOR EACH ROW EXECUTE FUNCTION seen.sights_delete();

CREATE FUNCTION seen.events_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_write(NEW.annotator, NEW.trace_id, NEW.taxonomy, NEW.pass_number);
  IF NEW.kind IN ('study_set', 'decided', 'guideline_set') THEN
    RAISE 'an annotator cannot do that' USING ERRCODE = 'MAST1';
  ELSIF NEW.kind = 'revealed' THEN
    IF NOT EXISTS (SELECT FROM public.events e WHERE e.annotator = NEW.annotator
      AND e.trace_id = NEW.trace_id AND e.taxonomy = NEW.taxonomy
      AND e.pass_number = NEW.pass_number AND e.kind = 'pass_finished') THEN
      RAISE 'what others say is shown once you have finished' USING ERRCODE = 'MAST1';
    END IF;
    INSERT INTO team.revealed
      VALUES (NEW.annotator, NEW.trace_id, NEW.taxonomy, NEW.pass_number);
  END IF;
  INSERT INTO public.events ("id", "annotator", "seq", "at", "kind", "trace_id", "taxonomy", "pass_number", "payload", "replaces", "action", "undoes", "redoes", "chain")
    VALUES (NEW."id", NEW."annotator", NEW."seq", NEW."at", NEW."kind", NEW."trace_id", NEW."taxonomy", NEW."pass_number", NEW."payload", NEW."replaces", NEW."action", NEW."undoes", NEW."redoes", NEW."chain");
  RETURN NEW;
END $$;
CREATE TRIGGER adds INSTEAD OF INSERT ON seen.events
  FOR EACH ROW EXECUTE FUNCTION seen.events_insert();


CREATE FUNCTION seen.settings_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_write(session_user::text, NULL, NULL, NULL);
  IF NEW.key = 'open_codes.tags:' || split_part(NEW.key, ':', 2) || ':' || session_user::text THEN
    -- It is what others can read: a list of lists.
    PERFORM two FROM json_array_elements(NEW.value::json) one, json_array_elements(one) two;
    INSERT INTO public.settings VALUES (NEW.key, NEW.value)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value;
    RETURN NEW;
  END IF;
  INSERT INTO team.settings VALUES (session_user::text, NEW.key, NEW.value)
    ON CONFLICT (name, key) DO UPDATE SET value = excluded.value;
  RETURN NEW;
END $$;
CREATE TRIGGER adds INSTEAD OF INSERT ON seen.settings
  FOR EACH ROW EXECUTE FUNCTION seen.settings_insert();


CREATE FUNCTION seen.span_indices_insert() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_write(session_user::text, NULL, NULL, NULL);
  INSERT INTO public.span_indices AS kept
    VALUES (NEW.trace_id, NEW.span_key, NEW.span_index, NEW.text_chars)
    ON CONFLICT (trace_id, span_key) DO UPDATE SET span_index = excluded.span_index,
      text_chars = coalesce(excluded.text_chars, kept.text_chars);
  RETURN NEW;
END $$;
CREATE TRIGGER adds INSTEAD OF INSERT ON seen.span_indices
  FOR EACH ROW EXECUTE FUNCTION seen.span_indices_insert();
