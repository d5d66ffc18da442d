"""Overlaps of the targets of labels, the targets that cover them, and items.

Targets hold span keys, which say nothing about reading order. An ``Order`` does: it gives a span's
index by its key, and None where it does not know, as for traces that are not on this machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from mast_tui.gold.model import Decision
from mast_tui.labels import Label, Target, TraceWork

Order = Callable[[str], int | None]

_Pointed = TypeVar("_Pointed")


def no_order(_key: str) -> int | None:
    """Return the order of a trace that is not at hand: no place is known."""
    return None


def no_orders(_trace_id: str) -> Order:
    """Return the orders of traces of which none is at hand."""
    return no_order


def place_name(target: Target) -> str:
    """Return a short name of a target for ids, the same for equal targets."""
    if target.first is None:
        return "*"
    if target.quote is not None:
        if target.char_start is not None:
            return f"{target.first}[{target.char_start}:{target.char_end}]"
        return f"{target.first}[{target.quote!r}]"
    return target.first if target.first == target.last else f"{target.first}..{target.last}"


def overlap(a: Target, b: Target, order: Order = no_order) -> bool:
    """Return whether two targets have a part in common.

    The whole trace names no place, so it overlaps only itself. Quotes in one span overlap where
    their characters do; one whose place in the span is not known overlaps all that is there.
    Where the order of the spans is not known, only targets in the same span can overlap, and
    equal ones do.

    Args:
        a: A target.
        b: Another target.
        order: Returns the index of a span by its key, None if it is not known.
    """
    if a == b:
        return True
    if a.is_whole or b.is_whole:
        return False
    if _span(a) is not None and _span(a) == _span(b):
        quotes = _characters(a), _characters(b)
        if quotes[0] is None or quotes[1] is None:
            return True
        return max(quotes[0][0], quotes[1][0]) < min(quotes[0][1], quotes[1][1])
    ends = _ends(a, order), _ends(b, order)
    if ends[0] is None or ends[1] is None:
        return False
    return max(ends[0][0], ends[1][0]) <= min(ends[0][1], ends[1][1])


def cover(targets: Sequence[Target], order: Order = no_order) -> Target:
    """Return the smallest target that holds all of these, which must hang together by ``overlap``.

    Quotes in one span give the quote from the first start to the last end; a quote and anything
    wider give spans. Raises ``ValueError`` for none, or for targets that nothing is known to cover.

    Args:
        targets: The targets.
        order: Returns the index of a span by its key, None if it is not known.
    """
    first = targets[0] if targets else None
    if first is None:
        raise ValueError("no targets to cover")
    if all(target == first for target in targets):
        return first
    spans = {_span(target) for target in targets}
    if len(spans) == 1 and None not in spans:
        return _covering_quote(targets) or Target(first.first, first.first)
    ranges = []
    for target in targets:
        ends = _ends(target, order)
        if ends is None or target.first is None or target.last is None:
            raise ValueError(f"nothing is known to cover {place_name(target)} and the others")
        backwards = order(target.first) != ends[0]
        keys = (target.last, target.first) if backwards else (target.first, target.last)
        ranges.append((ends, keys))
    start = min(ranges, key=lambda r: r[0][0])[1][0]
    end = max(ranges, key=lambda r: r[0][1])[1][1]
    return Target(start, end)


def in_reading_order(
    items: Iterable[_Pointed], target_of: Callable[[_Pointed], Target], order: Order = no_order
) -> list[_Pointed]:
    """Return objects sorted by target: the whole trace, known places, then unknown places.

    Args:
        items: The objects to sort.
        target_of: Returns the target of an object.
        order: Returns the index of a span by its key, None if it is not known.
    """

    def rank(item: _Pointed) -> tuple[int, int, int, int]:
        target = target_of(item)
        if target.is_whole:
            return (0, 0, 0, 0)
        ends = _ends(target, order)
        if ends is None:
            return (2, 0, 0, 0)
        return (1, ends[0], target.char_start or 0, ends[1])

    return sorted(items, key=rank)


@dataclass(frozen=True, slots=True)
class Item:
    """Labels of one mode whose targets overlap: one thing, marked by one annotator or more.

    ``target`` covers them all.
    """

    mode: str
    labels: tuple[Label, ...]
    target: Target

    @property
    def id(self) -> str:
        """A name that stays while the labels stay where they are."""
        return item_id(self.mode, self.target)

    @property
    def annotators(self) -> tuple[str, ...]:
        """The annotators who marked it."""
        return tuple(dict.fromkeys(label.annotator for label in self.labels))

    @property
    def targets(self) -> tuple[Target, ...]:
        """The different targets in it."""
        return tuple(dict.fromkeys(label.target for label in self.labels))


def joins_separate_places(item: Item, order: Order = no_order) -> bool:
    """Return whether an annotator marked places in an item that do not touch each other.

    They are several failures to that annotator, which only another's wider place joins.

    Args:
        item: Labels of one mode that overlap, directly or through others.
        order: The order of the trace's spans.
    """
    labels_by_annotator = defaultdict(list)
    for label in item.labels:
        labels_by_annotator[label.annotator].append(label)
    return any(len(items_of_mode(labels, order)) > 1 for labels in labels_by_annotator.values())


def item_id(mode: str, target: Target) -> str:
    """Return the name of the item of a mode that this target covers.

    Args:
        mode: The mode's slug.
        target: The target.
    """
    return f"{mode}@{place_name(target)}"


def items_of_mode(labels: Iterable[Label], order: Order = no_order) -> tuple[Item, ...]:
    """Return the labels of one mode in groups that overlap, in reading order.

    Args:
        labels: The labels of one mode.
        order: Returns the index of a span by its key, None if it is not known.
    """
    groups: list[list[Label]] = []
    for label in labels:
        touching = [g for g in groups if any(overlap(label.target, o.target, order) for o in g)]
        groups = [g for g in groups if g not in touching]
        groups.append([*(other for group in touching for other in group), label])
    items = [
        Item(group[0].mode, tuple(group), cover([label.target for label in group], order))
        for group in groups
    ]
    return tuple(in_reading_order(items, lambda item: item.target, order))


def _span(target: Target) -> str | None:
    """Return the key of a target's only span; None for a range and the whole trace."""
    return target.first if target.first == target.last else None


def _characters(target: Target) -> tuple[int, int] | None:
    if target.quote is None or target.char_start is None or target.char_end is None:
        return None
    return target.char_start, target.char_end


def _ends(target: Target, order: Order) -> tuple[int, int] | None:
    """Return the indices of a target's first and last span, None where either is not known."""
    if target.first is None or target.last is None:
        return None
    first = order(target.first)
    last = order(target.last)
    if first is None or last is None:
        return None
    return min(first, last), max(first, last)


def _covering_quote(targets: Sequence[Target]) -> Target | None:
    """Return the quote that joins quotes of one span; None if they do not fit together."""
    quotes = []
    for target in targets:
        bounds = _characters(target)
        if bounds is None or target.quote is None or len(target.quote) != bounds[1] - bounds[0]:
            return None
        quotes.append((bounds, target.quote))
    quotes.sort()
    (start, end), text = quotes[0]
    for (next_start, next_end), quote in quotes[1:]:
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
        for label in side.labels.values():
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
                *(
                    label_of_mode.target
                    for label_of_mode in labels[mode]
                    if label_of_mode.annotator != label.annotator
                ),
                *decided[mode],
            )
        )
    )


def _needs_order(target: Target, other: Target) -> bool:
    return target != other and (target.first != target.last or other.first != other.last)


def _is_known(order: Order, *targets: Target) -> bool:
    keys = {key for target in targets for key in (target.first, target.last) if key is not None}
    return all(order(key) is not None for key in keys)
