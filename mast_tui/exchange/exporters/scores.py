"""Labels as scores of traces and spans, for the tools in which the traces were recorded.

A verdict on a mode is a score of the trace, a place where the mode shows one of its span. Nothing
is sent from here: ``langfuse``, ``phoenix``, ``langsmith`` and ``inspect-scores`` write what the
API of each takes.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mast_tui.exchange.csv_long import LongWork
from mast_tui.exchange.exporters.native_ids import NativeOf, NativeTrace, Tool
from mast_tui.exchange.import_batch import label_id, lasting_id
from mast_tui.labels import AnnotatorKind, Label, VerdictValue
from mast_tui.taxonomy.model import Mode

GOLD: Final = "gold"


@dataclass(frozen=True, slots=True)
class Score:
    """What one annotator says of one mode in a trace, or of one place where it shows.

    ``id`` is the same at every export. ``span`` is the tool's id of the span, None for the trace.
    ``labels`` are those that it stands for: that of the place, or all of the whole trace. ``at``
    is ISO 8601 in UTC, or empty where nobody noted when.
    """

    id: str
    trace: NativeTrace
    span: str | None
    annotator: str
    kind: AnnotatorKind
    mode: Mode
    name: str
    value: VerdictValue
    taxonomy: str
    labels: Sequence[Label]
    at: str
    merged: frozenset[str] = frozenset()

    @property
    def comment(self) -> str:
        """What was noted with the labels, one a line."""
        return "\n".join(label.note for label in self.labels if label.note)

    @property
    def facts(self) -> dict[str, Any]:
        """What the tools have no field for; of one label also its place and what it says."""
        return {
            "taxonomy": self.taxonomy,
            "mode": self.mode.code,
            "mode_name": self.mode.name,
            "annotator": self.annotator,
            "annotator_kind": self.kind.value,
            **(self.label_facts(self.labels[0]) if len(self.labels) == 1 else {}),
        }

    def label_facts(self, label: Label) -> dict[str, Any]:
        """Return a label's place and what else was said with it, without unknown values."""
        target = label.target
        facts = {
            "span_first": target.first,
            "span_last": target.last,
            "quote": target.quote,
            "char_start": target.char_start,
            "char_end": target.char_end,
            "severity": label.severity and label.severity.value,
            "confidence": label.confidence,
            "origin": label.origin.value,
            "saw_suggestions": label.saw_suggestions,
            "merged": True if label.id in self.merged else None,
        }
        return {name: value for name, value in facts.items() if value is not None}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What has no id of the tool's: traces, and of others the spans by trace and key."""

    traces: dict[str, None] = field(default_factory=dict)
    spans: dict[tuple[str, str], None] = field(default_factory=dict)


def scores_of(
    work: Iterable[LongWork],
    native_of: NativeOf,
    kinds: Mapping[str, AnnotatorKind],
    tools: Container[Tool],
) -> tuple[list[Score], LeftOut]:
    """The scores for one tool, by trace, annotator and mode, and what has no place in it.

    Args:
        work: What annotators say of traces.
        native_of: The traces as the tools know them.
        kinds: The kinds of annotators by their names; gold counts as people's.
        tools: Whose traces are meant.
    """
    scores: list[Score] = []
    left_out = LeftOut()
    for one in sorted(work, key=lambda w: (w.trace_id, w.annotator)):
        trace = native_of(one.trace_id)
        if trace is None or trace.tool not in tools:
            left_out.traces[one.trace_id] = None
            continue
        kind = kinds.get(one.annotator, AnnotatorKind.HUMAN)
        for score, key in _scores(one, trace, kind):
            if key is not None and score.span is None:
                left_out.spans[one.trace_id, key] = None
            else:
                scores.append(score)
    return scores, left_out


def _scores(
    work: LongWork, trace: NativeTrace, kind: AnnotatorKind
) -> Iterator[tuple[Score, str | None]]:
    """The scores of one annotator and trace, each with the key of its span."""
    for mode in work.taxonomy.modes:
        labels = [label for label in work.labels if label.mode == mode.slug]
        value = VerdictValue.PRESENT if labels else work.verdicts.get(mode.slug)
        if value is None:
            continue
        verdict = Score(
            id=lasting_id("score", trace.id, work.annotator, work.taxonomy.ref, mode.slug),
            trace=trace,
            span=None,
            annotator=work.annotator,
            kind=kind,
            mode=mode,
            name=f"{work.taxonomy.id}.{mode.slug}",
            value=value,
            taxonomy=work.taxonomy.ref,
            labels=[label for label in labels if label.target.is_whole],
            at=work.finished_at or "",
            merged=work.merged,
        )
        yield verdict, None
        for label in labels:
            key = label.target.first
            if key is not None:
                place = replace(
                    verdict,
                    id=_id(work, label),
                    span=trace.span(key),
                    labels=[label],
                    at=label.created_at,
                )
                yield place, key


def _id(work: LongWork, label: Label) -> str:
    """The id of a label's score; gold's own ids are numbers, which say nothing of the label."""
    if work.annotator == GOLD:
        place = label_id(GOLD, work.trace_id, work.taxonomy.ref, label.mode, label.target)
        return lasting_id("score", place)
    return lasting_id("score", label.id)
