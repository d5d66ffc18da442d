"""The labels of which it is not known whether they overlap others, as an index is missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from mast_tui.gold.model import Decision, Side
from mast_tui.gold.overlaps import Order
from mast_tui.labels import Label, Target


def unordered_labels(
    sides: Sequence[Side], decisions: Sequence[Decision], modes: Collection[str], order: Order
) -> tuple[Label, ...]:
    """Return the labels on spans whose order matters for the gold and is not known.

    The order of a label matters where another side, or a decision, has another place of the same
    mode, and one of both is a range of spans. Two single spans overlap only if they are the same.

    Args:
        sides: The annotators who finished the trace.
        decisions: The decisions in force.
        modes: The slugs of the taxonomy.
        order: Gives the index of a span by its key, None where it is not known.
    """
    labels: dict[str, list[Label]] = defaultdict(list)
    for side in sides:
        for label in side.labels:
            if not label.target.is_whole:
                labels[label.mode].append(label)
    decided: dict[str, set[Target]] = defaultdict(set)
    for decision in decisions:
        decided[decision.mode].update(t for t in decision.targets if not t.is_whole)
    return tuple(
        label
        for mode in modes
        for label in labels.get(mode, ())
        if any(
            _needs_order(label.target, other) and not _is_known(order, label.target, other)
            for other in (
                *(one.target for one in labels[mode] if one.annotator != label.annotator),
                *decided[mode],
            )
        )
    )


def _needs_order(one: Target, other: Target) -> bool:
    return one != other and (one.first != one.last or other.first != other.last)


def _is_known(order: Order, *targets: Target) -> bool:
    keys = {key for target in targets for key in (target.first, target.last) if key is not None}
    return all(order(key) is not None for key in keys)
