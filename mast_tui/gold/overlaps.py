"""The overlaps of labels' targets, the targets that cover several targets, and items.

Targets have span keys, which do not show the reading order. An ``Order`` is a function from a
span's key to its index, or to None if the index is unknown, as for traces that are not on this
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from msgspec import Struct

from mast_tui.gold.model import Decision
from mast_tui.grouping import values_by_key
from mast_tui.labels import Label, Target, TraceWork

Order = Callable[[str], int | None]

_Pointed = TypeVar("_Pointed")


def no_order(_key: str) -> int | None:
    """Return None, as every index is unknown."""
    return None


def no_orders(_trace_id: str) -> Order:
    """Return ``no_order`` for every trace."""
    return no_order


def place_name(target: Target) -> str:
    """Return a short name of a target for ids and messages; equal targets have equal names."""
    if target.first is None:  # the whole trace
        return "*"
    if target.quote is not None:
        if target.char_start is not None:
            return f"{target.first}[{target.char_start}:{target.char_end}]"
        return f"{target.first}[{target.quote!r}]"
    return target.first if target.first == target.last else f"{target.first}..{target.last}"


def overlap(a: Target, b: Target, order: Order = no_order) -> bool:
    """Return whether two targets have a part in common.

    - The whole trace overlaps only itself.
    - Quotes in one span overlap if their characters do. A quote with unknown characters overlaps
      every target in the span.
    - Other targets overlap if they share a span. With an unknown order of spans, only equal targets
      overlap.

    Args:
        a: A target.
        b: Another target.
        order: Returns the index of a span by its key; None if unknown.
    """
    if a == b:
        return True
    if a.is_whole or b.is_whole:
        return False
    if _single_span(a) is not None and _single_span(a) == _single_span(b):
        a_characters = _character_range(a)
        b_characters = _character_range(b)
        return a_characters is None or b_characters is None or _meet(a_characters, b_characters)
    a_spans = index_range(a, order)
    b_spans = index_range(b, order)
    return a_spans is not None and b_spans is not None and _meet(a_spans, b_spans)


def _meet(a: range, b: range) -> bool:
    """Return whether two ranges have a number in common."""
    return max(a.start, b.start) < min(a.stop, b.stop)


def cover(targets: Sequence[Target], order: Order = no_order) -> Target:
    """Return the smallest target that covers targets, which must be connected by overlaps.

    For quotes in one span it is a quote, or the whole span if their texts cannot be joined. For
    other targets it is a range of spans.

    Args:
        targets: The targets.
        order: Returns the index of a span by its key; None if unknown.

    Raises:
        ValueError: There are no targets, or the order of their spans is unknown.
    """
    if not targets:
        raise ValueError("no targets to cover")
    first = targets[0]
    if all(target == first for target in targets):
        return first
    spans = {_single_span(target) for target in targets}
    if len(spans) == 1 and None not in spans:
        covering_quote = _covering_quote(targets)
        return Target(first.first, first.first) if covering_quote is None else covering_quote
    key_by_index: dict[int, str] = {}
    for target in targets:
        for key in (target.first, target.last):
            index = None if key is None else order(key)
            if key is None or index is None:
                raise ValueError(
                    f"the order of {place_name(target)} and the other places is unknown"
                )
            key_by_index.setdefault(index, key)
    return Target(key_by_index[min(key_by_index)], key_by_index[max(key_by_index)])


def in_reading_order(
    items: Iterable[_Pointed], target_of: Callable[[_Pointed], Target], order: Order = no_order
) -> list[_Pointed]:
    """Sort objects by target: the whole trace, places with a known order, then others.

    Args:
        items: The objects to sort.
        target_of: Returns the target of an object.
        order: Returns the index of a span by its key; None if unknown.
    """

    def rank(item: _Pointed) -> tuple[int, int, int, int]:
        """Return the sort key of an object."""
        target = target_of(item)
        if target.is_whole:
            return (0, 0, 0, 0)
        indices = index_range(target, order)
        if indices is None:
            return (2, 0, 0, 0)
        return (1, indices.start, target.char_start or 0, indices.stop)

    return sorted(items, key=rank)


class Item(Struct, frozen=True):
    """A group of overlapping labels of one mode; ``target`` covers the targets of all labels."""

    mode: str
    labels: tuple[Label, ...]
    target: Target

    @property
    def id(self) -> str:
        """The id of the item, made from its mode and target."""
        return item_id(self.mode, self.target)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators of the labels."""
        return tuple(dict.fromkeys(label.annotator for label in self.labels))

    @property
    def targets(self) -> tuple[Target, ...]:
        """The different targets of the labels."""
        return tuple(dict.fromkeys(label.target for label in self.labels))


def joins_separate_places(item: Item, order: Order = no_order) -> bool:
    """Return whether one annotator marked separate places that another's wider place connects.

    For that annotator the places are several failures.

    Args:
        item: An item.
        order: Returns the index of a span by its key; None if unknown.
    """
    labels_by_annotator = values_by_key((label.annotator, label) for label in item.labels)
    return any(len(items_of_mode(labels, order)) > 1 for labels in labels_by_annotator.values())


def item_id(mode: str, target: Target) -> str:
    """Return the id of a mode's item at a target.

    Args:
        mode: The mode's slug.
        target: The target.
    """
    return f"{mode}@{place_name(target)}"


def items_of_mode(labels: Iterable[Label], order: Order = no_order) -> tuple[Item, ...]:
    """Group the labels of one mode by overlaps, in reading order.

    Labels that overlap only through other labels are in the same item.

    Args:
        labels: The labels of one mode.
        order: Returns the index of a span by its key; None if unknown.
    """
    groups: list[list[Label]] = []
    for label in labels:
        joined_group: list[Label] = []
        other_groups: list[list[Label]] = []
        for group in groups:
            if any(overlap(label.target, member.target, order) for member in group):
                joined_group += group
            else:
                other_groups.append(group)
        groups = [*other_groups, [*joined_group, label]]
    items = [
        Item(group[0].mode, tuple(group), cover([label.target for label in group], order))
        for group in groups
    ]
    return tuple(in_reading_order(items, lambda item: item.target, order))


def _single_span(target: Target) -> str | None:
    """Return the key of a target's only span; None for a range and the whole trace."""
    return target.first if target.first == target.last else None


def _character_range(target: Target) -> range | None:
    if target.quote is None or target.char_start is None or target.char_end is None:
        return None
    return range(target.char_start, target.char_end)


def index_range(target: Target, order: Order) -> range | None:
    """Return the indices of a target's spans; None for the whole trace or an unknown index.

    Args:
        target: The target.
        order: Returns the index of a span by its key; None if unknown.
    """
    if target.first is None or target.last is None:
        return None
    first = order(target.first)
    last = order(target.last)
    if first is None or last is None:
        return None
    return range(min(first, last), max(first, last) + 1)


def _covering_quote(targets: Sequence[Target]) -> Target | None:
    """Join the overlapping or adjacent quotes of one span to one quote.

    None if a quote or its range is missing, or if there is a gap between quotes.
    """
    quotes: list[tuple[int, int, str]] = []
    for target in targets:
        character_range = _character_range(target)
        if character_range is None or target.quote is None:
            return None
        start = character_range.start
        end = character_range.stop
        if len(target.quote) != end - start:
            return None
        quotes.append((start, end, target.quote))
    quotes.sort()
    start, end, text = quotes[0]
    for next_start, next_end, quote in quotes[1:]:
        if next_start > end:
            return None
        if next_end > end:
            text += quote[end - next_start :]
            end = next_end
    key = targets[0].first
    return Target(key, key, text, start, end)


def unordered_labels(
    sides: Sequence[TraceWork], decisions: Sequence[Decision], modes: Collection[str], order: Order
) -> tuple[Label, ...]:
    """Return the labels on spans with an unknown order that matters for the gold.

    The order matters if a range of spans may overlap another annotator's or a decision's place of
    the same mode. Two single spans overlap only if they are equal.

    Args:
        sides: The work of the annotators who finished the trace.
        decisions: The decisions in force.
        modes: The slugs of the taxonomy.
        order: Returns the index of a span by its key; None if unknown.
    """
    labels_by_mode = values_by_key(
        (label.mode, label)
        for side in sides
        for label in side.labels.values()
        if not label.target.is_whole
    )
    decided_targets = values_by_key(
        (decision.mode, target)
        for decision in decisions
        for target in decision.targets
        if not target.is_whole
    )

    def is_unordered(label: Label) -> bool:
        """Return whether an unknown order leaves open if the label overlaps another place."""
        side_targets = (
            other.target
            for other in labels_by_mode[label.mode]
            if other.annotator != label.annotator
        )
        return any(
            _needs_order(label.target, target) and not _has_known_order(order, label.target, target)
            for target in (*side_targets, *decided_targets.get(label.mode, ()))
        )

    return tuple(
        label for mode in modes for label in labels_by_mode.get(mode, ()) if is_unordered(label)
    )


def _needs_order(target: Target, other: Target) -> bool:
    return target != other and (target.first != target.last or other.first != other.last)


def _has_known_order(order: Order, *targets: Target) -> bool:
    keys = {key for target in targets for key in (target.first, target.last) if key is not None}
    return all(order(key) is not None for key in keys)
