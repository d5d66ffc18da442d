"""``doccano``: one line of JSON per annotator and trace, as its sequence labelling imports it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from mast_tui.exchange.label_studio import label_name
from mast_tui.exchange.trace_files import TextsOf, TextSpan
from mast_tui.labels import Target, TraceWork, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.records import TraceRecord

Values = dict[str, Any]


def doccano_lines(
    all_work: Iterable[TraceWork],
    taxonomy: Taxonomy,
    records: Mapping[str, TraceRecord],
    texts: TextsOf,
) -> tuple[list[str], list[str]]:
    """Return the lines of a Doccano file, and the ids of traces whose file is missing.

    A line is the work of one annotator on one trace. Its field ``label`` holds ``[start, end,
    name]`` in code points of ``text``, ``cats`` the labels of the whole trace. Other fields are the
    app's own, which Doccano keeps.

    Args:
        all_work: The work of annotators under the taxonomy.
        taxonomy: The taxonomy.
        records: The known facts of traces by id.
        texts: Returns the texts of a trace by its id.
    """
    lines: list[str] = []
    missing: list[str] = []
    in_order = sorted(all_work, key=lambda work: (work.trace_id, work.annotator))
    for trace_id, trace_work in groupby(in_order, key=lambda work: work.trace_id):
        spans = texts(trace_id)
        if spans is None:
            missing.append(trace_id)
            continue
        record = records.get(trace_id, TraceRecord(trace_id))
        for work in trace_work:
            values = _line_values(work, taxonomy, spans, record)
            lines.append(json.dumps(values, ensure_ascii=False) + "\n")
    return lines, missing


def _line_values(
    work: TraceWork, taxonomy: Taxonomy, spans: Sequence[TextSpan], record: TraceRecord
) -> Values:
    """Return the line of one annotator's work on a trace as values."""
    text, places = _whole_text(spans)
    ranges: set[tuple[int, int, str]] = set()
    merged_ranges: set[tuple[int, int, str]] = set()
    whole_trace_names: list[str] = []
    for label in work.labels.values():
        name = label_name(taxonomy.mode(label.mode))
        character_range = _character_range(label.target, spans, places)
        if character_range is None:
            whole_trace_names.append(name)
        else:
            ranges.add((*character_range, name))
            if label.id in work.merged:
                merged_ranges.add((*character_range, name))
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    return {
        "text": text,
        "label": [list(named_range) for named_range in sorted(ranges)],
        "cats": sorted(set(whole_trace_names)),
        "absent": _mode_names(work, taxonomy, VerdictValue.ABSENT),
        "unsure": _mode_names(work, taxonomy, VerdictValue.UNSURE),
        "trace_id": work.trace_id,
        "annotator": work.annotator,
        "taxonomy": taxonomy.ref,
        "finished": work.finished_at is not None,
        **({"merged": list(map(list, sorted(merged_ranges)))} if merged_ranges else {}),
        **{name: value for name, value in facts.items() if value is not None},
    }


def _whole_text(spans: Sequence[TextSpan]) -> tuple[str, list[tuple[int, int, int]]]:
    """Return the trace as one text, and per span the offsets of heading, text and end."""
    pieces: list[str] = []
    places = []
    length = 0
    for span in spans:
        heading = one_line(span.author) + "\n"
        start = length + len(heading)
        places.append((length, start, start + len(span.text)))
        pieces += [heading, span.text, "\n\n"]
        length = start + len(span.text) + 2
    return "".join(pieces), places


def _character_range(
    target: Target, spans: Sequence[TextSpan], places: Sequence[tuple[int, int, int]]
) -> tuple[int, int] | None:
    """Return the start and end of a target in the text of the whole trace.

    ``places`` holds the start of the heading, and the start and end of the text, of each span.
    Returns None for the whole trace and for missing spans. Doccano accepts no empty range, so the
    range of a span without text is its heading.
    """
    index_by_key = {span.key: index for index, span in enumerate(spans)}
    if target.first not in index_by_key or target.last not in index_by_key:
        return None
    first, last = sorted((index_by_key[target.first], index_by_key[target.last]))
    heading, start, _ = places[first]
    if target.quote:
        text = spans[first].text
        position = target.char_start
        if position is None or not text.startswith(target.quote, position):
            position = text.find(target.quote)
        if position >= 0:
            return start + position, start + position + len(target.quote)
    _, _, end = places[last]
    return (start, end) if start < end else (heading, start - 1)


def _mode_names(work: TraceWork, taxonomy: Taxonomy, value: VerdictValue) -> list[str]:
    """Return the names of the modes without a label that have a verdict."""
    verdicts = work.verdicts_without_label(taxonomy)
    return [
        label_name(taxonomy.mode(slug)) for slug, verdict in verdicts.items() if verdict is value
    ]
