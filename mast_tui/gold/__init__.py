"""Gold labels: pure, from what the annotators said and what an adjudicator decided."""

from mast_tui.gold.model import (
    Conflict,
    ConflictKind,
    Decision,
    GoldKind,
    GoldLabel,
    GoldTrace,
    GoldVerdict,
    Guideline,
    Resolution,
    Said,
)
from mast_tui.gold.overlaps import Order, no_order, no_orders
from mast_tui.gold.resolve import gold_of_trace, words_on

__all__ = [
    "Conflict",
    "ConflictKind",
    "Decision",
    "GoldKind",
    "GoldLabel",
    "GoldTrace",
    "GoldVerdict",
    "Guideline",
    "Order",
    "Resolution",
    "Said",
    "gold_of_trace",
    "no_order",
    "no_orders",
    "words_on",
]
