"""Strategies for traces and an annotator's labels on them."""

from __future__ import annotations

from hypothesis import strategies as st

from mast_tui.exchange.import_batch import label_id
from mast_tui.exchange.trace_files import TextSpan
from mast_tui.labels import (
    WHOLE_TRACE,
    Label,
    Origin,
    Severity,
    Target,
    TraceWork,
    VerdictValue,
    label_origin,
)
from mast_tui.taxonomy.loader import load_mast

MAST = load_mast()
SLUGS = [mode.slug for mode in MAST.modes]

PIECES = st.sampled_from(
    ["a", "b c", "👩‍🚒", "🚀", "שלום", "مرحبا", "\n", " ", "<b>&", "é", "\U00020000"]
)
TEXT = st.lists(PIECES, min_size=1, max_size=8).map("".join)


@st.composite
def traces(draw: st.DrawFn) -> tuple[TextSpan, ...]:
    """Draw a trace of one to four spans, with emoji and right-to-left text."""
    texts = draw(st.lists(TEXT, min_size=1, max_size=4))
    return tuple(TextSpan(f"k{i}", text, f"#{i + 1} agent") for i, text in enumerate(texts))


@st.composite
def targets(draw: st.DrawFn, spans: tuple[TextSpan, ...]) -> Target:
    """Draw the whole trace, a range of spans, or a quote; they may overlap."""
    kind = draw(st.sampled_from(["whole", "range", "quote"]))
    first = draw(st.integers(0, len(spans) - 1))
    span = spans[first]
    if kind == "whole":
        return WHOLE_TRACE
    if kind == "range" or len(span.text) < 2:
        return Target(span.key, spans[draw(st.integers(first, len(spans) - 1))].key)
    start = draw(st.integers(0, len(span.text) - 1))
    end = draw(st.integers(start + 1, len(span.text)))
    return Target(span.key, span.key, span.text[start:end], start, end)


@st.composite
def works(draw: st.DrawFn, spans: tuple[TextSpan, ...], annotator: str = "alice") -> TraceWork:
    """Draw one annotator's work on the trace ``t``, with several labels of a mode at times."""
    labels: dict[str, Label] = {}
    for _ in range(draw(st.integers(0, 5))):
        mode = draw(st.sampled_from(SLUGS))
        target = draw(targets(spans))
        name = label_id(annotator, "t", MAST.ref, mode, target)
        labels[name] = Label(
            id=name,
            annotator=annotator,
            trace_id="t",
            taxonomy=MAST.ref,
            mode=mode,
            target=target,
            note=draw(st.sampled_from(["", "why: 🚀 שלום", "two\nlines"])),
            confidence=draw(st.none() | st.sampled_from([0.0, 0.25, 1.0])),
            severity=draw(st.none() | st.sampled_from(Severity)),
            origin=label_origin(annotator, draw(st.sampled_from(Origin))),
            saw_suggestions=draw(st.booleans()),
            created_at=draw(st.sampled_from(["", "2026-05-04T10:20:30Z"])),
        )
    marked = {label.mode for label in labels.values()}
    values = draw(
        st.dictionaries(
            st.sampled_from(SLUGS), st.sampled_from([VerdictValue.ABSENT, VerdictValue.UNSURE])
        )
    )
    return TraceWork(
        annotator,
        "t",
        MAST.ref,
        labels=labels,
        verdicts={mode: value for mode, value in values.items() if mode not in marked},
        finished_at=draw(st.sampled_from([None, "", "2026-05-04T10:20:30Z"])),
    )
