"""Where annotators differ, and what an adjudicator decides about it."""

from mast_tui.adjudication.errors import AdjudicationError
from mast_tui.adjudication.guidelines import (
    Case,
    GuidelineBook,
    ModePage,
    guidelines_document,
    mode_page,
)
from mast_tui.adjudication.queue import (
    Access,
    QueueEntry,
    conflicts_by_trace,
    disagreement,
    has_changed,
    outcome_words,
    queue,
    said_now,
    settles_conflict,
    take_on,
    take_on_as_study_says,
    trace_disagreement,
)
from mast_tui.adjudication.sides import TraceWords, letters, words_by_trace
from mast_tui.adjudication.trace import Adjudication, JudgeWord
from mast_tui.adjudication.trace_files import (
    OrderOf,
    SpanOrders,
    keep_missing_indices,
    traces_from_files,
)

__all__ = [
    "Access",
    "Adjudication",
    "AdjudicationError",
    "Case",
    "GuidelineBook",
    "JudgeWord",
    "ModePage",
    "OrderOf",
    "QueueEntry",
    "SpanOrders",
    "TraceWords",
    "conflicts_by_trace",
    "disagreement",
    "guidelines_document",
    "has_changed",
    "keep_missing_indices",
    "letters",
    "mode_page",
    "outcome_words",
    "queue",
    "said_now",
    "settles_conflict",
    "take_on",
    "take_on_as_study_says",
    "trace_disagreement",
    "traces_from_files",
    "words_by_trace",
]
