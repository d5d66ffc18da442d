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
