"""Where annotators differ, and what an adjudicator decides about it."""

from mast_tui.adjudication.errors import AdjudicationError
from mast_tui.adjudication.queue import (
    Access,
    QueueEntry,
    access_with,
    conflicts_by_trace,
    queue,
    take_on,
)
from mast_tui.adjudication.trace import Adjudication
from mast_tui.adjudication.words import OrderOf, TraceWords, orders_from_files, words_by_trace

__all__ = [
    "Access",
    "Adjudication",
    "AdjudicationError",
    "OrderOf",
    "QueueEntry",
    "TraceWords",
    "access_with",
    "conflicts_by_trace",
    "orders_from_files",
    "queue",
    "take_on",
    "words_by_trace",
]
