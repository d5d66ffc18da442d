"""``label-studio``: tasks with annotations and predictions, and the labelling configuration.

One task per trace; its spans are the paragraphs of a dialogue. A label of spans or words is a
region of ``ParagraphLabels``; labels of the whole trace and the verdicts absent and unsure are
choices. What Label Studio has no field for goes along in the task's ``meta``, which it gives back
as it is, so that an import tells what was changed there from what was not.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from mast_tui.exchange.csv_long import LongWork
from mast_tui.exchange.exporters.trace_texts import SpanText, TextsOf
from mast_tui.exchange.label_studio_places import region_of
from mast_tui.labels import AnnotatorKind, Label, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.codec import LABEL
from mast_tui.workspace.records import TraceRecord

Values = dict[str, Any]

META: Final = "mast_tui"
"""The name under which everything of ours stands in ``meta``."""

VERSION: Final = 1
TRACE: Final = "trace"
MODES: Final = "modes"
WHOLE: Final = "whole_trace"
ABSENT: Final = "absent"
UNSURE: Final = "unsure"
CONFIG_MARK: Final = f'<Choices name="{WHOLE}" toName="{TRACE}" '
"""What stands near the beginning of every labelling configuration."""
NO_TEXT: Final = "(the text of this span is not at hand)"

_CHOICES: Final = (
    (WHOLE, "Shows in the trace as a whole"),
    (ABSENT, "Does not show"),
    (UNSURE, "Unsure"),
)
# Label Studio's own numbers go through JavaScript, which counts exactly up to 2 ** 53 only.
_ID_BITS: Final = 52


def label_name(mode: Mode) -> str:
    """What a mode is called in Label Studio: ``1.3 Step repetition``."""
    return one_line(f"{mode.code} {mode.name}")


def label_config(taxonomy: Taxonomy) -> str:
    """The labelling configuration (XML) of a project that takes the tasks."""
    lines = ["<View>"]
    for name, title in _CHOICES:
        lines.append(f"  <Header value={quoteattr(title)} size={quoteattr('6')}/>")
        lines.append(
            f'  <Choices name="{name}" toName="{TRACE}" choice="multiple" layout="select">'
        )
        lines += [
            f"    <Choice value={quoteattr(label_name(mode))}/>" for mode in taxonomy.all_modes
        ]
        lines.append("  </Choices>")
    lines.append(f'  <ParagraphLabels name="{MODES}" toName="{TRACE}" choice="single">')
    lines += [f"    <Label value={quoteattr(label_name(mode))}/>" for mode in taxonomy.all_modes]
    lines.append("  </ParagraphLabels>")
    lines.append(
        f'  <Paragraphs name="{TRACE}" value="$spans" layout="dialogue" nameKey="author" '
        'textKey="text" savetextresult="no"/>'
    )
    return "\n".join([*lines, "</View>", ""])


def label_studio_tasks(
    work: Iterable[LongWork],
    records: Mapping[str, TraceRecord],
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> list[Values]:
    """The tasks, by trace id; all the work is under one taxonomy.

    Whoever has no kind, as gold, is an imported annotator to a workspace that reads the tasks.

    Of a trace that is not at hand only the spans with labels are there, without their text.
    """
    by_trace: dict[str, list[LongWork]] = defaultdict(list)
    for one in work:
        by_trace[one.trace_id].append(one)
    return [
        _task(records.get(trace_id, TraceRecord(trace_id)), by_trace[trace_id], kinds, texts)
        for trace_id in sorted(by_trace)
    ]


def _task(
    record: TraceRecord,
    work: Sequence[LongWork],
    kinds: Mapping[str, AnnotatorKind],
    texts: TextsOf,
) -> Values:
    spans = texts(record.trace_id)
    at_hand = spans is not None
    if spans is None:
        spans = _named_spans(work)
    annotations: list[Values] = []
    predictions: list[Values] = []
    kept: Values = {}
    for one in sorted(work, key=lambda w: w.annotator):
        kind = kinds.get(one.annotator, AnnotatorKind.IMPORTED)
        name = _number_of(one)
        results, details = _results(one, spans, name)
        kept[name] = {
            "annotator": one.annotator,
            "kind": kind.value,
            "labels": details,
            "verdicts": {mode: value.value for mode, value in one.not_present.items()},
        }
        if one.notes:
            kept[name]["span_notes"] = dict(sorted(one.notes.items()))
        if one.finished_at is not None:
            kept[name]["finished_at"] = one.finished_at
        if kind is AnnotatorKind.JUDGE:
            predictions.append(_prediction(one, results))
        else:
            annotations.append(
                {
                    "id": int(name),
                    "result": results,
                    "was_cancelled": False,
                    "ground_truth": one.annotator == "gold",
                }
            )
    facts = {"system": record.system, "model": record.model, "benchmark": record.benchmark}
    data = {"trace_id": record.trace_id, **{k: v for k, v in facts.items() if v is not None}}
    paragraphs = [{"key": s.key, "author": one_line(s.author), "text": s.text} for s in spans]
    ours = {"version": VERSION, "taxonomy": work[0].taxonomy.ref, "texts": at_hand, "by": kept}
    return {
        "data": data | {"spans": paragraphs},
        "meta": {META: ours},
        "annotations": annotations,
        "predictions": predictions,
    }


def _named_spans(work: Sequence[LongWork]) -> tuple[SpanText, ...]:
    """The spans that labels name, in no order that would mean anything, without their text."""
    keys = {
        key
        for one in work
        for label in one.labels
        for key in (label.target.first, label.target.last)
        if key is not None
    }
    return tuple(SpanText(key, key, NO_TEXT) for key in sorted(keys))


def _number_of(work: LongWork) -> str:
    """The lasting number of somebody's work on a trace."""
    name = "\n".join((work.annotator, work.trace_id, work.taxonomy.ref))
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return str(int.from_bytes(digest[:8]) >> (64 - _ID_BITS))


def _results(
    work: LongWork, spans: Sequence[SpanText], number: str
) -> tuple[list[Values], list[Values]]:
    """The results, and beside them each label as it is here with the region it became."""
    modes = {mode.slug: mode for mode in work.taxonomy.all_modes}
    results: list[Values] = []
    details: list[Values] = []
    chosen: dict[str, list[str]] = {name: [] for name, _ in _CHOICES}
    for label in sorted(work.labels, key=lambda x: (list(modes).index(x.mode), x.id)):
        name = label_name(modes[label.mode])
        place = region_of(label.target, spans)
        detail: Values = {"label": LABEL.write(label)}
        if label.id in work.merged:
            detail["merged"] = True
        if place is None:
            if name not in chosen[WHOLE]:
                chosen[WHOLE].append(name)
            details.append(detail)
            continue
        region = _region(label, place, name, number)
        detail |= {"region": region["id"], "value": place | {"name": name}}
        results.append(region)
        details.append(detail)
    for slug, value in work.not_present.items():
        chosen[ABSENT if value is VerdictValue.ABSENT else UNSURE].append(label_name(modes[slug]))
    for name, values in chosen.items():
        if values:
            results.append(_choice(name, values, number))
    return results, details


def _region(label: Label, place: Values, name: str, number: str) -> Values:
    digest = hashlib.sha256(f"{number}\n{label.id}".encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "id": digest[:12],
        "from_name": MODES,
        "to_name": TRACE,
        "type": "paragraphlabels",
        "value": place | {"paragraphlabels": [name]},
        "meta": {META: number, **({"text": [label.note]} if label.note else {})},
    }


def _choice(name: str, values: Sequence[str], number: str) -> Values:
    return {
        "id": f"{name}-{number}",
        "from_name": name,
        "to_name": TRACE,
        "type": "choices",
        "value": {"choices": list(values)},
        "meta": {META: number},
    }


def _prediction(work: LongWork, results: list[Values]) -> Values:
    scores = [label.confidence for label in work.labels if label.confidence is not None]
    prediction: Values = {"model_version": work.annotator, "result": results}
    return prediction | ({"score": max(scores)} if scores else {})
