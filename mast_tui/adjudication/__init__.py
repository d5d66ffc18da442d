"""Conflicts between annotators, and the decisions of adjudicators."""

from mast_tui.adjudication.conflict_groups import (
    Choices,
    ConflictGroup,
    Dispute,
    agreed_conflict,
    conflict_groups,
    disputes,
    first_place,
    merged_sides,
    row_id,
)
from mast_tui.adjudication.decisions import (
    current_answers,
    decided_words,
    has_changed,
    resolves_conflict,
    targets_taken,
)
from mast_tui.adjudication.guidelines import (
    GuidelineBook,
    GuidelineCase,
    ModePage,
    guidelines_document,
    mode_page,
)
from mast_tui.adjudication.queue import (
    Access,
    QueueEntry,
    conflicts_by_trace,
    disagreement,
    queue,
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
    scores_from_files,
    traces_from_files,
)
from mast_tui.errors import AdjudicationError

__all__ = [
    "Access",
    "Adjudication",
    "AdjudicationError",
    "Choices",
    "ConflictGroup",
    "Dispute",
    "GuidelineBook",
    "GuidelineCase",
    "JudgeWord",
    "ModePage",
    "OrderOf",
    "QueueEntry",
    "SpanOrders",
    "TraceWords",
    "agreed_conflict",
    "conflict_groups",
    "conflicts_by_trace",
    "current_answers",
    "decided_words",
    "disagreement",
    "disputes",
    "first_place",
    "guidelines_document",
    "has_changed",
    "keep_missing_indices",
    "letters",
    "merged_sides",
    "mode_page",
    "queue",
    "resolves_conflict",
    "row_id",
    "scores_from_files",
    "take_on",
    "take_on_as_study_says",
    "targets_taken",
    "trace_disagreement",
    "traces_from_files",
    "words_by_trace",
]
