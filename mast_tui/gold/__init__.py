"""Gold labels: pure, from what the annotators said and what an adjudicator decided."""

from mast_tui.gold.model import (
    Conflict,
    ConflictKind,
    Decision,
    GoldLabel,
    GoldTrace,
    GoldVerdict,
    Guideline,
    Said,
    Side,
    Source,
)
from mast_tui.gold.overlaps import Item, Order, item_id, items_of_mode, no_order, no_orders
from mast_tui.gold.settle import gold_of_trace, words_at, words_on
from mast_tui.gold.sources import (
    GoldKind,
    GoldMixJson,
    gold_mix,
    gold_words,
    is_gold,
    only_settled,
)

__all__ = [
    "Conflict",
    "ConflictKind",
    "Decision",
    "GoldKind",
    "GoldLabel",
    "GoldMixJson",
    "GoldTrace",
    "GoldVerdict",
    "Guideline",
    "Item",
    "Order",
    "Said",
    "Side",
    "Source",
    "gold_mix",
    "gold_of_trace",
    "gold_words",
    "is_gold",
    "item_id",
    "items_of_mode",
    "no_order",
    "no_orders",
    "only_settled",
    "words_at",
    "words_on",
]
