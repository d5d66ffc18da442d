-- The functions by which the members of a team write: no member has a right to change any table.
--
-- Each function runs as the owner of the tables (SECURITY DEFINER), checks who calls it, and accepts
-- one row of the table that it writes to. "append_event" adds an event and changes the state
-- tables by it, as mast_tui.workspace.events.append does in a file: so they always agree with the
-- events. "rights.py" runs this file whenever it makes the schema "seen" anew, and adds a function
-- "put_..." for each register.
--
-- What "append_event" calls runs as the owner too, and with its search path. All are written in
-- PL/pgSQL, as the server keeps their plans: a function in plain SQL is planned for every call.
-- Labels are added far more often than anything else, so "append_event" asks all that it needs to
-- know in one query, and has payloads checked by paths: both take a fraction of the time of queries
-- and patterns one by one.

-- Who writes ----------------------------------------------------------------------------------

-- All write in their own name; leads also in the names of judges and of people outside the team,
-- whose labels they import.
CREATE FUNCTION seen.may_write(whose text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (SELECT FROM team.members me
    WHERE me.name = session_user::text AND CASE me.role
      WHEN 'judge' THEN starts_with(whose, 'judge:')
      WHEN 'lead' THEN whose = session_user::text
        OR NOT EXISTS (SELECT FROM team.members m WHERE m.name = whose)
      ELSE whose = session_user::text END)
$$;

-- Refuse a caller who has none of these roles.
CREATE FUNCTION seen.check_role(VARIADIC roles text[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own_role text;
BEGIN
  SELECT m.role INTO own_role FROM team.members m WHERE m.name = session_user::text;
  IF NOT FOUND THEN
    RAISE 'you are not in the team' USING ERRCODE = 'MAST1';
  END IF;
  IF own_role <> ALL(roles) THEN
    RAISE '% % cannot do that', CASE WHEN own_role ^@ 'a' THEN 'an' ELSE 'a' END, own_role
      USING ERRCODE = CASE own_role WHEN 'annotator' THEN '55000' ELSE 'MAST1' END;
  END IF;
END $$;

CREATE FUNCTION seen.is_lead() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN EXISTS (SELECT FROM team.members m
    WHERE m.name = session_user::text AND m.role = 'lead');
END $$;

CREATE FUNCTION seen.check_writer() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_role('annotator', 'adjudicator', 'lead', 'judge');
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    -- An older snapshot would not show what was revealed since the transaction began.
    RAISE 'labels are written in transactions that are READ COMMITTED' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Refuse to write in a name that is not the caller's to write in.
CREATE FUNCTION seen.check_name(name text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF seen.may_write(name) IS NOT TRUE THEN
    RAISE 'you can write only in your own name, %', session_user USING ERRCODE = 'MAST1';
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
    RAISE 'you can write only in your own name, %', session_user USING ERRCODE = 'MAST1';
  END IF;
  PERFORM FROM public.turns t WHERE t.name = ANY(names) ORDER BY t.name FOR UPDATE;
  GET DIAGNOSTICS taken = ROW_COUNT;
  IF taken < cardinality(names) THEN
    INSERT INTO public.turns SELECT n FROM unnest(names) n ORDER BY n ON CONFLICT DO NOTHING;
    PERFORM FROM public.turns t WHERE t.name = ANY(names) ORDER BY t.name FOR UPDATE;
  END IF;
END $$;

-- What an event may hold ----------------------------------------------------------------------

-- Paths are lax: a list in the place of an object would be looked into. So each path asks for the
-- type first, which it takes of the list itself.

CREATE FUNCTION seen.is_list_of_texts(list jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(list,
    '$.type() == "array" && !exists($[*] ? (@.type() != "string"))', '{}', true);
END $$;

CREATE FUNCTION seen.is_target(target jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(target, '$.type() == "object"
    && (!exists($.first) || $.first.type() == "string")
    && (!exists($.last) || $.last.type() == "string" && exists($.first))
    && (!exists($.quote) || $.quote.type() == "string" && exists($.first)
      && (!exists($.last) || $.last == $.first))
    && (!exists($.start) && !exists($.end)
      || $.start.type() == "number" && $.start >= 0 && $.start < 1e15
      && $.start.floor() == $.start
      && $.end.type() == "number" && $.end >= 0 && $.end < 1e15 && $.end.floor() == $.end)',
    '{}', true);
END $$;

CREATE FUNCTION seen.is_list_of_targets(list jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN jsonb_typeof(list) = 'array' THEN NOT EXISTS (
    SELECT FROM jsonb_array_elements(list) e WHERE seen.is_target(e) IS NOT TRUE) ELSE false END;
END $$;

CREATE FUNCTION seen.is_evidence(evidence jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(evidence, '$.type() == "object" && $.quote.type() == "string"
    && (!exists($.key) || $.key.type() == "string")
    && (!exists($.wording) || $.wording.type() == "string")
    && (!exists($.match) || $.match.type() == "string" && ($.match == "exact"
      || $.match == "spacing" || $.match == "reworded" || $.match == "in_parts"
      || $.match == "altered" || $.match == "fuzzy"))
    && (!exists($.named) || $.named.type() == "array" && $.named.size() == 2
      && $.named[0].type() == "string" && $.named[1].type() == "string")
    && (!exists($.start) && !exists($.end)
      || $.start.type() == "number" && $.start >= 0 && $.start < 1e15
      && $.start.floor() == $.start && exists($.key)
      && $.end.type() == "number" && $.end >= 0 && $.end < 1e15 && $.end.floor() == $.end)',
    '{}', true);
END $$;

CREATE FUNCTION seen.is_label(label jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(label, '$.type() == "object"
    && $.id.type() == "string" && $.mode.type() == "string"
    && (!exists($.note) || $.note.type() == "string")
    && (!exists($.severity) || $.severity.type() == "string"
      && ($.severity == "fatal" || $.severity == "benign"))
    && (!exists($.origin) || $.origin.type() == "string" && ($.origin == "manual"
      || $.origin == "accepted" || $.origin == "edited" || $.origin == "imported"
      || $.origin == "suggested"))
    && (!exists($.suggestion) || $.suggestion.type() == "string")
    && (!exists($.saw_suggestions) || $.saw_suggestions.type() == "boolean")
    && (!exists($.created_at) || $.created_at.type() == "string")
    && (!exists($.confidence) || $.confidence.type() == "number" && $.confidence >= 0
      && $.confidence <= 1)
    && (!exists($.decisive) || $.decisive.type() == "boolean")
    && (!exists($.remedy) || $.remedy.type() == "string")', '{}', true)
    AND length(label ->> 'id') BETWEEN 1 AND 200 AND length(label ->> 'mode') BETWEEN 1 AND 200
    AND seen.is_target(label -> 'target')
    AND (NOT label ? 'evidence' OR seen.is_evidence(label -> 'evidence'));
END $$;

CREATE FUNCTION seen.is_finish(finish jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(finish, '$.type() == "object" && $.open_modes.type() == "string"
    && (!exists($.read) || $.read.type() == "number" && $.read >= 0 && $.read < 1e15
      && $.read.floor() == $.read)
    && (!exists($.spans) || $.spans.type() == "number" && $.spans >= 0 && $.spans < 1e15
      && $.spans.floor() == $.spans)
    && (!exists($.at) || $.at.type() == "string" && $.at like_regex
      "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{5,20}(Z|[+-][0-9:]{5})$")', '{}', true);
END $$;

CREATE FUNCTION seen.is_review(review jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(review, '$.type() == "null" || $.type() == "object"
    && $.answer.type() == "string"
    && ($.answer == "accept" || $.answer == "edit" || $.answer == "reject")
    && (!exists($.label) || $.label.type() == "string")
    && (!exists($.reason) || $.reason.type() == "string")', '{}', true);
END $$;

CREATE FUNCTION seen.is_decision(decision jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_typeof(decision) = 'null' OR jsonb_path_match(decision, '$.type() == "object"
    && $.mode.type() == "string" && $.item.type() == "string" && $.value.type() == "string"
    && ($.value == "present" || $.value == "absent" || $.value == "unsure")
    && $.decided_by.type() == "string" && $.decided_at.type() == "string"
    && (!exists($.judge_seen) || $.judge_seen.type() == "boolean")
    && (!exists($.reason) || $.reason.type() == "string")
    && $.said.type() == "array" && !exists($.said[*] ? (@.type() != "object"
      || exists(@.annotator) && @.annotator.type() != "string"
      || exists(@.value) && !(@.value.type() == "string"
        && (@.value == "present" || @.value == "absent" || @.value == "unsure"))))',
      '{}', true)
    AND seen.is_list_of_texts(decision -> 'sides')
    AND seen.is_list_of_targets(decision -> 'targets')
    AND NOT EXISTS (SELECT FROM jsonb_array_elements(decision -> 'said') said
      WHERE seen.is_list_of_targets(said -> 'targets') IS NOT TRUE);
END $$;

CREATE FUNCTION seen.is_guideline(guideline jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(guideline, '$.type() == "null" || $.type() == "object"
    && $.id.type() == "string" && $.mode.type() == "string" && $.text.type() == "string"
    && $.written_by.type() == "string" && $.written_at.type() == "string"
    && (!exists($.trace_id) || $.trace_id.type() == "string")
    && (!exists($.item) || $.item.type() == "string")', '{}', true);
END $$;

-- A study is the lead's, whose program has checked it.
CREATE FUNCTION seen.is_study(study jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_path_match(study, '$.type() == "null" || $.type() == "object"
    && $.taxonomy.type() == "string" && $.annotators.type() == "array"
    && $.adjudicators.type() == "array" && $.batches.type() == "array"', '{}', true);
END $$;

-- Return whether a program can read the payload of an event of this kind.
CREATE FUNCTION seen.is_payload(kind text, payload jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF kind = 'label_added' THEN
    RETURN seen.is_label(payload -> 'label');
  END IF;
  RETURN CASE kind
    WHEN 'label_removed' THEN seen.is_label(payload -> 'label')
    WHEN 'label_changed' THEN seen.is_label(payload -> 'before')
      AND seen.is_label(payload -> 'after')
    WHEN 'verdict_set' THEN jsonb_path_match(payload, '$.type() == "object"
      && $.mode.type() == "string"
      && ($.before.type() == "null" || $.before.type() == "string"
        && ($.before == "absent" || $.before == "unsure"))
      && ($.after.type() == "null" || $.after.type() == "string"
        && ($.after == "absent" || $.after == "unsure"))', '{}', true)
      AND length(payload ->> 'mode') BETWEEN 1 AND 200
    WHEN 'spans_read' THEN seen.is_list_of_texts(payload -> 'keys')
      AND (NOT payload ? 'runs' OR jsonb_path_match(payload -> 'runs', '$.type() == "array"
        && !exists($[*] ? (@.type() != "object" || !(@.first.type() == "string")
          || !(@.last.type() == "string")))', '{}', true))
    WHEN 'pass_started' THEN seen.is_pass_kind(payload -> 'kind')
      AND jsonb_path_match(payload, '(!exists($.copy_of) || $.copy_of.type() == "number"
        && $.copy_of >= 0 && $.copy_of < 1e9 && $.copy_of.floor() == $.copy_of)
        && (!exists($.withheld) || $.withheld.type() == "boolean")', '{}', true)
    WHEN 'pass_withdrawn' THEN seen.is_pass_kind(payload -> 'kind')
      AND jsonb_path_match(payload, '!exists($.copy_of) || $.copy_of.type() == "number"
        && $.copy_of >= 0 && $.copy_of < 1e9 && $.copy_of.floor() == $.copy_of', '{}', true)
    WHEN 'pass_kind_set' THEN seen.is_pass_kind(payload -> 'before')
      AND seen.is_pass_kind(payload -> 'after')
    WHEN 'pass_finished' THEN seen.is_finish(payload)
    WHEN 'pass_unfinished' THEN seen.is_finish(payload -> 'was')
    WHEN 'review_set' THEN jsonb_typeof(payload -> 'suggestion') = 'string'
      AND length(payload ->> 'suggestion') BETWEEN 1 AND 200
      AND seen.is_review(payload -> 'before') AND seen.is_review(payload -> 'after')
    WHEN 'span_note_set' THEN jsonb_path_match(payload, '$.type() == "object"
      && $.key.type() == "string" && $.key != ""
      && $.before.type() == "string" && $.after.type() == "string"', '{}', true)
    WHEN 'suggestions_seen' THEN jsonb_typeof(payload) = 'object'
    WHEN 'revealed' THEN jsonb_typeof(payload -> 'what') = 'string'
    WHEN 'look_again_set' THEN seen.is_list_of_texts(payload -> 'before')
      AND seen.is_list_of_texts(payload -> 'after')
    WHEN 'sight_set' THEN jsonb_typeof(payload -> 'before') IN ('boolean', 'null')
      AND jsonb_typeof(payload -> 'blind') = 'boolean'
    WHEN 'decided' THEN jsonb_typeof(payload -> 'item') = 'string'
      AND seen.is_decision(payload -> 'before') AND seen.is_decision(payload -> 'after')
    WHEN 'guideline_set' THEN jsonb_typeof(payload -> 'id') = 'string'
      AND seen.is_guideline(payload -> 'before') AND seen.is_guideline(payload -> 'after')
    WHEN 'study_set' THEN seen.is_study(payload -> 'before') AND seen.is_study(payload -> 'after')
    WHEN 'judged' THEN seen.is_list_of_texts(payload -> 'looks_at')
      AND seen.is_list_of_texts(payload -> 'absent')
      AND (NOT payload ? 'unsure' OR seen.is_list_of_texts(payload -> 'unsure'))
      AND (NOT payload ? 'run' OR jsonb_typeof(payload -> 'run') = 'string')
      AND (NOT payload ? 'judged_at' OR jsonb_typeof(payload -> 'judged_at') = 'string')
    ELSE false END;
END $$;

CREATE FUNCTION seen.is_pass_kind(kind jsonb) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN jsonb_typeof(kind) = 'string'
    AND kind #>> '{}' IN ('blind', 'assisted', 'second_look', 'adjudication', 'retest');
END $$;

-- Return JSON as the tables keep texts: they hold no NUL, so it is kept as two characters.
CREATE FUNCTION seen.escaped(payload text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  payload := regexp_replace(payload, '(?<!\\)((?:\\\\)*)\\u001a', '\1\\u001aS', 'g');
  RETURN regexp_replace(payload, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\u001a0', 'g');
END $$;

CREATE FUNCTION seen.kept_texts(payload text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF strpos(payload, '\u001a') > 0 OR strpos(payload, '\u0000') > 0 THEN
    payload := seen.escaped(payload);
  END IF;
  RETURN payload::jsonb;
END $$;

-- Return the same, null for what is no JSON.
CREATE FUNCTION seen.readable(payload text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN seen.kept_texts(payload);
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END $$;

-- Return a part of JSON as it is written there: the server's JSON reads no NUL.
CREATE FUNCTION seen.part_of(payload text, VARIADIC path text[]) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  part text;
BEGIN
  IF strpos(payload, '\u0000') = 0 THEN
    RETURN (payload::json #> path)::text;
  END IF;
  part := (seen.escaped(payload)::json #> path)::text;
  part := regexp_replace(part, '(?<!\\)((?:\\\\)*)\\u001a0', '\1\\u0000', 'g');
  RETURN regexp_replace(part, '(?<!\\)((?:\\\\)*)\\u001aS', '\1\\u001a', 'g');
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

-- Put a label in the place of one with its id; one that is of another pass stays, and is refused,
-- where this is strict. The payload holds the label under this key.
CREATE FUNCTION seen.put_label(
  event public.events, payload jsonb, key text, is_strict boolean
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  named text;
BEGIN
  IF payload #> ARRAY[key, 'evidence', 'named'] IS NOT NULL THEN
    named := seen.part_of(event.payload, key, 'evidence', 'named');
  END IF;
  INSERT INTO public.labels AS kept (annotator, id, trace_id, taxonomy, pass_number, mode,
    first_key, last_key, quote, char_start, char_end, note, confidence, severity, origin,
    suggestion, saw_suggestions, created_at, evidence_key, evidence_quote, evidence_start,
    evidence_end, evidence_match, evidence_named, decisive, evidence_wording, remedy)
  SELECT event.annotator, l.id, event.trace_id, event.taxonomy, event.pass_number, l.mode,
    l.target ->> 'first', coalesce(l.target ->> 'last', l.target ->> 'first'),
    l.target ->> 'quote', (l.target ->> 'start')::bigint, (l.target ->> 'end')::bigint,
    coalesce(l.note, ''), l.confidence, l.severity, coalesce(l.origin, 'manual'), l.suggestion,
    coalesce(l.saw_suggestions, false), coalesce(l.created_at, ''), l.evidence ->> 'key',
    l.evidence ->> 'quote', (l.evidence ->> 'start')::bigint, (l.evidence ->> 'end')::bigint,
    l.evidence ->> 'match', named, l.decisive, l.evidence ->> 'wording', nullif(l.remedy, '')
  FROM jsonb_to_record(payload -> key) AS l(id text, mode text, target jsonb, note text,
    confidence float8, severity text, origin text, suggestion text, saw_suggestions boolean,
    created_at text, evidence jsonb, decisive boolean, remedy text)
  ON CONFLICT (annotator, id) DO UPDATE SET trace_id = excluded.trace_id,
    taxonomy = excluded.taxonomy, pass_number = excluded.pass_number, mode = excluded.mode,
    first_key = excluded.first_key, last_key = excluded.last_key, quote = excluded.quote,
    char_start = excluded.char_start, char_end = excluded.char_end, note = excluded.note,
    confidence = excluded.confidence, severity = excluded.severity, origin = excluded.origin,
    suggestion = excluded.suggestion, saw_suggestions = excluded.saw_suggestions,
    created_at = excluded.created_at, evidence_key = excluded.evidence_key,
    evidence_quote = excluded.evidence_quote, evidence_start = excluded.evidence_start,
    evidence_end = excluded.evidence_end, evidence_match = excluded.evidence_match,
    evidence_named = excluded.evidence_named, decisive = excluded.decisive,
    evidence_wording = excluded.evidence_wording, remedy = excluded.remedy
  WHERE NOT is_strict OR (kept.trace_id, kept.taxonomy, kept.pass_number)
    = (excluded.trace_id, excluded.taxonomy, excluded.pass_number);
  IF NOT FOUND THEN
    RAISE 'a label of another pass has this id' USING ERRCODE = 'MAST1';
  END IF;
END $$;

CREATE FUNCTION seen.remove_label(event public.events, label text, is_strict boolean) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM public.labels l WHERE l.annotator = event.annotator AND l.id = label
    AND (NOT is_strict OR (l.trace_id, l.taxonomy, l.pass_number)
      = (event.trace_id, event.taxonomy, event.pass_number));
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
  IF event.kind = 'pass_withdrawn' AND event.annotator ^@ 'judge:' THEN
    -- That a judge was through with a trace is taken back with its pass.
    DELETE FROM public.verdicts v WHERE v.annotator = event.annotator
      AND v.trace_id = event.trace_id AND v.taxonomy = event.taxonomy
      AND v.pass_number = event.pass_number;
    DELETE FROM public.judgements j WHERE j.annotator = event.annotator
      AND j.trace_id = event.trace_id AND j.taxonomy = event.taxonomy;
  END IF;
END $$;

-- Begin a pass. It stays as it began, unless it was withdrawn.
CREATE FUNCTION seen.begin_pass(event public.events, pass_kind text, is_withheld boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.passes AS p (annotator, trace_id, taxonomy, number, kind, started_at,
    judge_seen, withdrawn, withheld)
  VALUES (event.annotator, event.trace_id, event.taxonomy, event.pass_number, pass_kind,
    event.at, false, false, is_withheld)
  ON CONFLICT (annotator, trace_id, taxonomy, number) DO UPDATE SET
    kind = CASE WHEN p.withdrawn THEN excluded.kind ELSE p.kind END,
    started_at = CASE WHEN p.withdrawn THEN excluded.started_at ELSE p.started_at END,
    withheld = CASE WHEN p.withdrawn THEN excluded.withheld ELSE p.withheld END,
    withdrawn = false;
END $$;

-- Note that a judge is through with a trace: its pass is finished, its verdicts are these.
CREATE FUNCTION seen.finish_judgement(event public.events, payload jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  judged_at text := coalesce(payload ->> 'judged_at', event.at);
BEGIN
  PERFORM seen.begin_pass(event, 'blind', false);
  UPDATE public.passes p SET finished_at = judged_at, spans_read = NULL, spans = NULL
    WHERE p.annotator = event.annotator AND p.trace_id = event.trace_id
    AND p.taxonomy = event.taxonomy AND p.number = event.pass_number;
  DELETE FROM public.verdicts v WHERE v.annotator = event.annotator
    AND v.trace_id = event.trace_id AND v.taxonomy = event.taxonomy
    AND v.pass_number = event.pass_number;
  INSERT INTO public.verdicts
    SELECT DISTINCT event.annotator, event.trace_id, event.taxonomy, event.pass_number, mode,
      CASE WHEN payload -> 'unsure' ? mode THEN 'unsure' ELSE 'absent' END
    FROM jsonb_array_elements_text(
      (payload -> 'absent') || coalesce(payload -> 'unsure', '[]')) AS mode;
  INSERT INTO public.judgements VALUES (event.annotator, event.trace_id, event.taxonomy,
    seen.part_of(event.payload, 'looks_at'), payload ->> 'run', judged_at)
  ON CONFLICT (annotator, trace_id, taxonomy) DO UPDATE
    SET looks_at = excluded.looks_at, run = excluded.run, at = excluded.at;
END $$;

-- Change a decision, a study or a guideline. The document is kept as the payload has it.
CREATE FUNCTION seen.put_document(event public.events, payload jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  is_gone boolean := jsonb_typeof(payload -> 'after') = 'null';
  document text := seen.part_of(event.payload, 'after');
BEGIN
  CASE event.kind
    WHEN 'decided' THEN
      DELETE FROM public.decisions d WHERE d.annotator = event.annotator
        AND d.trace_id = event.trace_id AND d.taxonomy = event.taxonomy
        AND d.item = payload ->> 'item';
      IF NOT is_gone THEN
        INSERT INTO public.decisions VALUES (event.annotator, event.trace_id, event.taxonomy,
          payload ->> 'item', payload #>> '{after,decided_at}', document);
      END IF;
    WHEN 'study_set' THEN
      DELETE FROM public.studies s
        WHERE s.annotator = event.annotator AND s.taxonomy = event.taxonomy;
      IF NOT is_gone THEN
        INSERT INTO public.studies
          VALUES (event.annotator, event.taxonomy, event.at, document);
      END IF;
    WHEN 'guideline_set' THEN
      DELETE FROM public.guidelines g
        WHERE g.annotator = event.annotator AND g.id = payload ->> 'id';
      IF NOT is_gone THEN
        INSERT INTO public.guidelines VALUES (event.annotator, payload ->> 'id', event.taxonomy,
          payload #>> '{after,written_at}', document);
      END IF;
  END CASE;
END $$;


-- Change the state tables by an event.
CREATE FUNCTION seen.follow_event(event public.events, payload jsonb, is_strict boolean)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  CASE event.kind
    WHEN 'label_added' THEN
      PERFORM seen.put_label(event, payload, 'label', is_strict);
    WHEN 'label_changed' THEN
      PERFORM seen.put_label(event, payload, 'after', is_strict);
    WHEN 'label_removed' THEN
      PERFORM seen.remove_label(event, payload #>> '{label,id}', is_strict);
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
      PERFORM seen.begin_pass(event, payload ->> 'kind',
        coalesce((payload ->> 'withheld')::boolean, false));
    WHEN 'judged' THEN
      PERFORM seen.finish_judgement(event, payload);
    WHEN 'decided', 'study_set', 'guideline_set' THEN
      PERFORM seen.put_document(event, payload);
    WHEN 'spans_read' THEN NULL;
    WHEN 'look_again_set' THEN NULL;
    WHEN 'sight_set' THEN
      INSERT INTO public.sights VALUES (event.annotator, (payload ->> 'blind')::boolean)
      ON CONFLICT (annotator) DO UPDATE SET blind = excluded.blind;
    ELSE
      PERFORM seen.change_pass(event, payload);
  END CASE;
END $$;

-- Refuse an event of an annotator whose pass cannot take it.
CREATE FUNCTION seen.check_pass(
  event public.events, payload jsonb, last_pass bigint, last_revealed bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  pass_kind text := CASE event.kind WHEN 'pass_started' THEN payload ->> 'kind'
    WHEN 'pass_kind_set' THEN payload ->> 'after' END;
BEGIN
  IF event.kind = 'sight_set' THEN
    IF event.trace_id IS NOT NULL OR event.pass_number IS NOT NULL THEN
      RAISE 'not a valid event' USING ERRCODE = 'MAST1';
    END IF;
    RETURN;
  END IF;
  IF event.trace_id IS NULL OR event.taxonomy IS NULL THEN
    RAISE 'the workspace has no such trace or taxonomy' USING ERRCODE = 'MAST1';
  END IF;
  IF event.pass_number <= last_revealed THEN
    RAISE 'your work from before you saw others'' labels cannot change; an edit begins the next pass'
      USING ERRCODE = 'MAST1';
  END IF;
  IF last_revealed IS NOT NULL AND pass_kind IN ('blind', 'assisted') THEN
    RAISE 'a pass that begins after you saw others'' labels must be a second look'
      USING ERRCODE = 'MAST1';
  END IF;
  IF (event.pass_number BETWEEN 1 AND coalesce(last_pass, 0)
    OR event.kind = 'pass_started' AND event.pass_number = coalesce(last_pass, 0) + 1)
    IS NOT TRUE
  THEN
    RAISE 'a pass must start before work in it, and the first one is number 1'
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
    RAISE 'others'' labels are shown once you have finished' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Refuse an event that a member with this role may not add.
CREATE FUNCTION seen.check_kind(event public.events, payload jsonb, own_role text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF (CASE event.kind
    WHEN 'decided' THEN own_role IN ('adjudicator', 'lead')
    WHEN 'guideline_set' THEN own_role IN ('adjudicator', 'lead')
    WHEN 'study_set' THEN own_role = 'lead'
    WHEN 'judged' THEN event.annotator ^@ 'judge:'
    ELSE true END) IS NOT TRUE
  THEN
    RAISE '% % cannot do that', CASE WHEN own_role ^@ 'a' THEN 'an' ELSE 'a' END, own_role
      USING ERRCODE = 'MAST1';
  END IF;
  IF event.kind IN ('decided', 'guideline_set')
    AND coalesce(payload #>> '{after,decided_by}', payload #>> '{after,written_by}')
      <> event.annotator
  THEN
    RAISE 'you can write only in your own name, %', session_user USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Add an event, with what follows from it, in a name that is the caller's to write in.
CREATE FUNCTION seen.append_event(event public.events) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  me text := session_user;
  is_own boolean := event.annotator IS NOT DISTINCT FROM session_user::text;
  payload jsonb;
  own_role text;
  last_seq bigint;
  is_known boolean;
  last_pass bigint;
  last_revealed bigint;
  is_anothers boolean;
BEGIN
  IF NOT is_own THEN
    PERFORM seen.check_name(event.annotator);
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM seen.check_writer();
  END IF;
  PERFORM FROM public.turns t WHERE t.name = event.annotator FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM seen.check_writer();
    PERFORM public.take_turns(ARRAY[event.annotator]);
  END IF;
  SELECT m.role,
    (SELECT max(e.seq) FROM public.events e WHERE e.annotator = event.annotator),
    (event.trace_id IS NULL OR EXISTS (SELECT FROM public.traces t WHERE t.id = event.trace_id))
      AND (event.taxonomy IS NULL
        OR EXISTS (SELECT FROM public.taxonomies t WHERE t.ref = event.taxonomy)),
    (SELECT max(p.number) FROM public.passes p WHERE p.annotator = event.annotator
      AND p.trace_id = event.trace_id AND p.taxonomy = event.taxonomy),
    (SELECT max(r.pass_number) FROM team.revealed r WHERE r.annotator = event.annotator
      AND r.trace_id = event.trace_id AND r.taxonomy = event.taxonomy),
    EXISTS (SELECT FROM public.events e WHERE e.id = event.id AND e.annotator <> event.annotator)
    INTO own_role, last_seq, is_known, last_pass, last_revealed, is_anothers
    FROM team.members m WHERE m.name = me;
  IF own_role IS NULL THEN
    RAISE 'you are not in the team' USING ERRCODE = 'MAST1';
  END IF;
  IF is_own AND own_role = 'judge' THEN
    PERFORM seen.check_name(me);
  END IF;
  IF event.seq IS DISTINCT FROM coalesce(last_seq, 0) + 1 THEN
    RAISE 'another program was first' USING ERRCODE = 'MAST1';
  END IF;
  payload := seen.kept_texts(event.payload);
  IF event.kind <> 'label_added' THEN
    PERFORM seen.check_kind(event, payload, own_role);
  END IF;
  -- An id is a UUID of version 7: those of imports, which anyone can work out, are of version 5.
  -- Patterns would take several times as long as "translate".
  IF (event.id = event.id::uuid::text
    AND (substr(event.id, 15, 1) = '7' AND NOT event.action ^@ 'import:' OR NOT is_own)
    AND translate(event.at, '123456789', '000000000') ^@ '0000-00-00T00:00:00'
    AND event.at::timestamptz IS NOT NULL AND length(event.at) <= 40
    AND length(event.action) BETWEEN 1 AND 200
    AND (event.undoes IS NULL OR length(event.undoes) <= 200)
    AND (event.redoes IS NULL OR length(event.redoes) <= 200)
    AND CASE WHEN event.annotator ^@ 'judge:' THEN event.chain IS NULL
      ELSE length(event.chain) = 32 AND translate(event.chain, '0123456789abcdef', '') = '' END
    AND length(event.payload) <= 1000000
    AND (event.replaces = '[]' OR seen.is_list_of_texts(event.replaces::jsonb))
    AND seen.is_payload(event.kind, payload)) IS NOT TRUE
  THEN
    RAISE 'not a valid event' USING ERRCODE = 'MAST1';
  END IF;
  IF is_anothers THEN
    RAISE 'an event of another annotator has this id' USING ERRCODE = 'MAST1';
  END IF;
  IF NOT is_known THEN
    RAISE 'the workspace has no such trace or taxonomy' USING ERRCODE = 'MAST1';
  END IF;
  IF own_role = 'annotator' THEN
    PERFORM seen.check_pass(event, payload, last_pass, last_revealed);
  END IF;
  INSERT INTO public.events VALUES (event.*);
  IF event.kind = 'label_added' THEN
    PERFORM seen.put_label(event, payload, 'label', true);
  ELSE
    PERFORM seen.follow_event(event, payload, own_role = 'annotator');
  END IF;
  IF event.kind = 'revealed' THEN
    INSERT INTO team.revealed
      VALUES (event.annotator, event.trace_id, event.taxonomy, event.pass_number)
      ON CONFLICT DO NOTHING;
  END IF;
END $$;

-- Merging -------------------------------------------------------------------------------------

-- Refuse a row that is no event, or is in the name of a member.
CREATE FUNCTION seen.check_foreign_event(event public.events) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_role('lead');
  PERFORM seen.check_name(event.annotator);
  IF (event.seq >= 1 AND length(event.id) BETWEEN 1 AND 200 AND event.at::timestamptz IS NOT NULL
    AND seen.is_list_of_texts(event.replaces::jsonb)
    AND seen.is_payload(event.kind, seen.kept_texts(event.payload))) IS NOT TRUE
  THEN
    RAISE 'not a valid event' USING ERRCODE = 'MAST1';
  END IF;
END $$;

-- Add an event that was recorded elsewhere as it is, with what follows where it is the last one.
CREATE FUNCTION seen.insert_event(event public.events) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  is_last boolean;
BEGIN
  PERFORM seen.check_foreign_event(event);
  PERFORM public.take_turns(ARRAY[event.annotator]);
  is_last := NOT EXISTS (SELECT FROM public.events e WHERE e.annotator = event.annotator
    AND (e.seq, e.id) > (event.seq, event.id));
  INSERT INTO public.events VALUES (event.*);
  IF is_last THEN
    PERFORM seen.follow_event(event, seen.kept_texts(event.payload), false);
  END IF;
END $$;

-- Put an event in the place of the one with its id; a member's own history stays as it is.
CREATE FUNCTION seen.replace_event(event public.events) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_foreign_event(event);
  IF event.annotator = session_user::text THEN
    RAISE 'your own events can only be added to' USING ERRCODE = 'MAST1';
  END IF;
  PERFORM public.take_turns(ARRAY[event.annotator]);
  UPDATE public.events e SET (seq, at, kind, trace_id, taxonomy, pass_number, payload, replaces,
      action, undoes, redoes, chain)
    = (event.seq, event.at, event.kind, event.trace_id, event.taxonomy, event.pass_number,
      event.payload, event.replaces, event.action, event.undoes, event.redoes, event.chain)
    WHERE e.id = event.id AND e.annotator = event.annotator;
END $$;

-- Make the state of an annotator anew from the events.
CREATE FUNCTION seen.rebuild_state(whose public.annotators) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  state_table text;
  event public.events;
  payload jsonb;
BEGIN
  PERFORM seen.check_role('lead');
  PERFORM seen.check_name(whose.name);
  PERFORM public.take_turns(ARRAY[whose.name]);
  FOREACH state_table IN ARRAY '{labels,verdicts,reviews,span_notes,passes,decisions,judgements,'
    'sights,studies,guidelines}'::text[]
  LOOP
    EXECUTE format('DELETE FROM public.%I WHERE annotator = $1', state_table) USING whose.name;
  END LOOP;
  FOR event IN SELECT e.* FROM public.events e WHERE e.annotator = whose.name ORDER BY e.seq, e.id
  LOOP
    payload := seen.readable(event.payload);
    IF seen.is_payload(event.kind, payload) THEN
      PERFORM seen.follow_event(event, payload, false);
    END IF;
  END LOOP;
END $$;

-- Registers -----------------------------------------------------------------------------------

-- Forget an import that brought nothing.
CREATE FUNCTION seen.drop_import(import public.imports) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_role('lead');
  DELETE FROM public.imports i WHERE i.id = import.id;
END $$;

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
    RAISE 'not a valid trace' USING ERRCODE = 'MAST1';
  END IF;
  INSERT INTO public.traces SELECT trace.* ON CONFLICT DO NOTHING;
END $$;

-- Keep the index of a span; one that is kept stays, until one who reads everything brings another.
-- An index is a help that is kept again when the trace is read, so nobody waits for it.
CREATE FUNCTION seen.keep_span_index(place public.span_indices) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '500ms'
AS $$
BEGIN
  PERFORM seen.check_writer();
  IF (coalesce(place.span_index, 0) >= 0 AND coalesce(place.text_chars, 0) >= 0) IS NOT TRUE
    OR NOT EXISTS (SELECT FROM public.traces t WHERE t.id = place.trace_id) THEN
    RAISE 'not a valid span of a trace' USING ERRCODE = 'MAST1';
  END IF;
  BEGIN
    INSERT INTO public.span_indices AS kept VALUES (place.*)
      ON CONFLICT (trace_id, span_key) DO UPDATE SET span_index = excluded.span_index,
        text_chars = coalesce(excluded.text_chars, kept.text_chars)
      WHERE NOT EXISTS (SELECT FROM team.members m
        WHERE m.name = session_user::text AND m.role = 'annotator');
  EXCEPTION WHEN lock_not_available THEN
    NULL;  -- Someone is keeping it.
  END;
END $$;

-- Keep a setting of the caller's own; the tags that they give can be read by others.
CREATE FUNCTION seen.set_setting(setting public.settings) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM seen.check_writer();
  IF setting.key = 'open_codes.tags:' || split_part(setting.key, ':', 2) || ':' || session_user::text THEN
    IF seen.are_tags(seen.kept_texts(setting.value)) IS NOT TRUE THEN
      RAISE 'not valid tags' USING ERRCODE = 'MAST1';
    END IF;
    INSERT INTO public.settings SELECT setting.*
      ON CONFLICT (key) DO UPDATE SET value = excluded.value;
  ELSE
    INSERT INTO team.settings VALUES (session_user::text, setting.key, setting.value)
      ON CONFLICT (name, key) DO UPDATE SET value = excluded.value;
  END IF;
END $$;

-- Parts of the functions above, which check nothing themselves.
DO $$
DECLARE
  part regprocedure;
BEGIN
  FOR part IN SELECT p.oid FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
    WHERE n.nspname = 'seen' AND p.proname IN ('check_pass', 'check_kind', 'put_label',
      'remove_label', 'begin_pass', 'finish_judgement', 'put_document', 'change_pass',
      'follow_event')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', part);
  END LOOP;
END $$;
REVOKE EXECUTE ON FUNCTION public.take_turns(text[]) FROM PUBLIC;
