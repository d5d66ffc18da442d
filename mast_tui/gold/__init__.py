"""Gold labels, computed from annotators' answers and adjudicators' decisions."""

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
    SideAnswer,
)
from mast_tui.gold.overlaps import Order, no_order, no_orders
from mast_tui.gold.resolve import answers_on, gold_of_trace

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
    "SideAnswer",
    "answers_on",
    "gold_of_trace",
    "no_order",
    "no_orders",
]
