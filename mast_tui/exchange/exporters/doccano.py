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
    """Return the lines, each with its line break, and the ids of the traces without their file.

    Those have no text to mark, so their work is left out. ``label`` holds ``[start, end, name]`` in
    code points of ``text``; labels of the whole trace are in ``cats``. Doccano keeps the fields
    that it does not know.

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
            values = _values(work, taxonomy, spans, record)
            lines.append(json.dumps(values, ensure_ascii=False) + "\n")
    return lines, missing


def _values(
    work: TraceWork, taxonomy: Taxonomy, spans: Sequence[TextSpan], record: TraceRecord
) -> Values:
    text, places = _whole_text(spans)
    marked: set[tuple[int, int, str]] = set()
    merged: set[tuple[int, int, str]] = set()
    whole: list[str] = []
    for label in work.labels.values():
        name = label_name(taxonomy.mode(label.mode))
        offsets = _offsets(label.target, spans, places)
        if offsets is None:
            whole.append(name)
        else:
            marked.add((*offsets, name))
            if label.id in work.merged:
                merged.add((*offsets, name))
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    return {
        "text": text,
        "label": [list(offsets_and_name) for offsets_and_name in sorted(marked)],
        "cats": sorted(set(whole)),
        "absent": _modes(work, taxonomy, VerdictValue.ABSENT),
        "unsure": _modes(work, taxonomy, VerdictValue.UNSURE),
        "trace_id": work.trace_id,
        "annotator": work.annotator,
        "taxonomy": taxonomy.ref,
        "finished": work.finished_at is not None,
        **(
            {"merged": [list(offsets_and_name) for offsets_and_name in sorted(merged)]}
            if merged
            else {}
        ),
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


def _offsets(
    target: Target, spans: Sequence[TextSpan], places: Sequence[tuple[int, int, int]]
) -> tuple[int, int] | None:
    """Start and end in the whole text; None for the whole trace and for spans that are not there.

    Doccano takes no empty mark: that of a span without text is its heading.
    """
    keys = {span.key: number for number, span in enumerate(spans)}
    if target.first not in keys or target.last not in keys:
        return None
    first, last = sorted((keys[target.first], keys[target.last]))
    heading, start, end = places[first]
    if target.quote:
        position = target.char_start
        if (
            position is None
            or spans[first].text[position : position + len(target.quote)] != target.quote
        ):
            position = spans[first].text.find(target.quote)
        if position >= 0:
            return start + position, start + position + len(target.quote)
    end = places[last][2]
    return (start, end) if start < end else (heading, start - 1)


def _modes(work: TraceWork, taxonomy: Taxonomy, value: VerdictValue) -> list[str]:
    """Return the names of the modes without a label that have a verdict."""
    verdicts = work.verdicts_without_label(taxonomy)
    return [
        label_name(taxonomy.mode(slug)) for slug, verdict in verdicts.items() if verdict is value
    ]
