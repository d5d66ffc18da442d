"""``doccano``: one line of JSON per annotator and trace, as its sequence labelling imports it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mast_tui.exchange.csv_long import LongWork
from mast_tui.exchange.label_studio import label_name
from mast_tui.exchange.trace_files import TextsOf, TextSpan
from mast_tui.labels import Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.workspace.records import TraceRecord

Values = dict[str, Any]


def doccano_lines(
    work: Iterable[LongWork], records: Mapping[str, TraceRecord], texts: TextsOf
) -> tuple[list[str], list[str]]:
    """The lines, each with its line break, and the ids of the traces that are not at hand.

    Of those there is no text to mark, so their work is left out. ``label`` holds
    ``[start, end, name]`` in code points of ``text``; labels of the whole trace stand in
    ``cats``, and what doccano has no field for it keeps beside the text.
    """
    lines: list[str] = []
    missing: list[str] = []
    known: tuple[str, tuple[TextSpan, ...] | None] | None = None
    for one in sorted(work, key=lambda w: (w.trace_id, w.annotator)):
        if known is None or known[0] != one.trace_id:
            known = one.trace_id, texts(one.trace_id)
        spans = known[1]
        if spans is None:
            missing.append(one.trace_id)
            continue
        record = records.get(one.trace_id, TraceRecord(one.trace_id))
        lines.append(json.dumps(_values(one, spans, record), ensure_ascii=False) + "\n")
    return lines, list(dict.fromkeys(missing))


def _values(work: LongWork, spans: Sequence[TextSpan], record: TraceRecord) -> Values:
    text, places = _whole_text(spans)
    marked: set[tuple[int, int, str]] = set()
    merged: set[tuple[int, int, str]] = set()
    whole: list[str] = []
    for label in work.labels:
        name = label_name(work.taxonomy.mode(label.mode))
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
        "label": [list(one) for one in sorted(marked)],
        "cats": sorted(set(whole)),
        "absent": _modes(work, VerdictValue.ABSENT),
        "unsure": _modes(work, VerdictValue.UNSURE),
        "trace_id": work.trace_id,
        "annotator": work.annotator,
        "taxonomy": work.taxonomy.ref,
        "finished": work.finished_at is not None,
        **({"merged": [list(one) for one in sorted(merged)]} if merged else {}),
        **{name: value for name, value in facts.items() if value is not None},
    }


def _whole_text(spans: Sequence[TextSpan]) -> tuple[str, list[tuple[int, int, int]]]:
    """The trace as one text; per span where its heading, its own text, and that text's end are."""
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
        at = target.char_start
        if at is None or spans[first].text[at : at + len(target.quote)] != target.quote:
            at = spans[first].text.find(target.quote)
        if at >= 0:
            return start + at, start + at + len(target.quote)
    end = places[last][2]
    return (start, end) if start < end else (heading, start - 1)


def _modes(work: LongWork, value: VerdictValue) -> list[str]:
    said = work.not_present.items()
    return [label_name(work.taxonomy.mode(slug)) for slug, own in said if own is value]
