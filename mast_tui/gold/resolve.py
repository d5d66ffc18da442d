"""Gold of one trace: what its annotators say together, and what an adjudicator decided.

Verdict and place are settled apart.

**Verdicts.** Per mode, the verdicts of all sides that have one: equal ones are ``unanimous``, a
lone one ``single``. Open is not a verdict, so it disagrees with nobody. Different ones are a
conflict and stay ``unresolved`` until a decision makes them ``adjudicated``; on request more
than half of the given verdicts settle it as ``majority``, to present or absent, never to unsure.
A decision outweighs everything else.

**Places.** Only where the settled verdict is present, from the labels of the sides that say so.
Overlapping targets are one item (``items_of_mode``), and what matters is which of the sides that
named any place share it:

- one side alone named places: they are its own, ``single``;
- all of them share the item: ``unanimous``, with the target that all have, or else the one that
  covers them all (``merged``); where ``boundaries`` are asked for, a conflict instead;
- one of them marked places in it that do not touch each other, so that only another's wider place
  joins them: a conflict, as nobody knows whether it is one failure or several;
- some of them do not share it: a conflict, on request settled by ``majority``. It is not taken
  over as one side's own: the other read the same trace, named other places and not this one.

A label on the whole trace names no place. It neither merges with a span nor contradicts one, and
a side with nothing else is not asked about places. A decision on the verdict brings its own
places; a decision on a place holds for that item, or adds one that nobody marked.

Only what is settled stands in the gold labels; the rest is in ``GoldTrace.conflicts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mast_tui.gold.model import (
    Conflict,
    ConflictKind,
    Decision,
    GoldLabel,
    GoldTrace,
    GoldVerdict,
    Resolution,
    Said,
)
from mast_tui.gold.overlaps import (
    Item,
    Order,
    in_reading_order,
    items_of_mode,
    joins_separate_places,
    no_order,
    overlap,
)
from mast_tui.labels import Label, Target, TraceWork, VerdictValue


def gold_of_trace(
    sides: Sequence[TraceWork],
    decisions: Sequence[Decision],
    modes: Sequence[str],
    order: Order = no_order,
    *,
    majority: bool = False,
    boundaries: bool = False,
) -> GoldTrace:
    """Return the gold of one trace under one taxonomy.

    ``sides`` are the annotators who finished it, each once; ``decisions`` those in force, oldest
    first, of which the last on an item holds; ``modes`` the slugs of the taxonomy, in its order:
    what the sides say of others is left out. ``order`` gives a span's index by its key, None where
    it is not known: then only equal targets, or targets in the same span, are one item. Raises
    ``ValueError`` where an annotator is there twice.

    Args:
        sides: The work of the annotators who finished the trace.
        decisions: The decisions in force.
        modes: The slugs of the taxonomy.
        order: Returns the index of a span by its key, None if it is not known.
        majority: Whether a majority resolves a verdict.
        boundaries: Whether overlapping places with different ends are a conflict.
    """
    names = [side.annotator for side in sides]
    if len(set(names)) < len(names):
        raise ValueError(f"an annotator stands twice among the sides: {', '.join(names)}")
    rules = _Rules(order, majority, boundaries)
    settled = [_resolve(mode, sides, _in_force(mode, decisions), rules) for mode in modes]
    conflicts = [conflict for gold in settled for conflict in gold.conflicts]
    return GoldTrace(
        verdicts=tuple(verdict for gold in settled for verdict in gold.verdicts),
        labels=tuple(label for gold in settled for label in gold.labels),
        conflicts=tuple(sorted(conflicts, key=lambda c: c.kind is ConflictKind.PLACE)),
    )


def words_on(mode: str, sides: Sequence[TraceWork]) -> tuple[Said, ...]:
    """Return the answer of every side with a verdict on a mode.

    Args:
        mode: The mode's slug.
        sides: The work of the annotators who finished the trace.
    """
    return tuple(
        Said(side.annotator, value, _targets(_labels(mode, [side])))
        for side in sides
        if (value := side.verdict(mode)) is not None
    )


def words_at(
    mode: str, target: Target, sides: Sequence[TraceWork], order: Order = no_order
) -> tuple[Said, ...]:
    """Return the marks of the sides in those items of a mode that a target touches.

    Args:
        mode: The mode's slug.
        target: The target.
        sides: The work of the annotators who finished the trace.
        order: Returns the index of a span by its key, None if it is not known.
    """
    touched = [
        label
        for item in items_of_mode(_labels(mode, sides), order)
        if overlap(item.target, target, order)
        for label in item.labels
    ]
    names = dict.fromkeys(label.annotator for label in touched)
    return tuple(
        Said(name, VerdictValue.PRESENT, _targets(x for x in touched if x.annotator == name))
        for name in names
    )


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules for resolving the answers of sides."""

    order: Order
    majority: bool
    boundaries: bool


def _in_force(mode: str, decisions: Sequence[Decision]) -> tuple[Decision, ...]:
    """Return the decisions on a mode that hold, oldest first: of several on one item the last."""
    last: dict[str, Decision] = {}
    for decision in decisions:
        if decision.mode == mode:
            last.pop(decision.item, None)
            last[decision.item] = decision
    return tuple(last.values())


def _resolve(
    mode: str, sides: Sequence[TraceWork], decisions: tuple[Decision, ...], rules: _Rules
) -> GoldTrace:
    """Gold of one mode: one verdict, its labels, what is left to decide."""
    decided = next((d for d in decisions if d.is_verdict), None)
    verdict = _verdict(mode, sides, decided, rules)
    if verdict.value is VerdictValue.PRESENT:
        labels, open_places = _places(mode, sides, decisions, rules)
        return GoldTrace((verdict,), labels, open_places)
    answers = words_on(mode, sides)
    if verdict.source is not Resolution.UNRESOLVED or not answers:
        return GoldTrace((verdict,), (), ())
    items = items_of_mode(_labels(mode, sides), rules.order)
    conflict = Conflict(
        id=mode,
        kind=ConflictKind.VERDICT,
        mode=mode,
        said=answers,
        labels=tuple(label for item in items for label in item.labels),
        where=items[0].target if items else None,
    )
    return GoldTrace((verdict,), (), (conflict,))


def _verdict(
    mode: str, sides: Sequence[TraceWork], decided: Decision | None, rules: _Rules
) -> GoldVerdict:
    answers = words_on(mode, sides)
    values = [s.value for s in answers if s.value is not None]
    every = {side.annotator: side.verdict(mode) for side in sides}
    seen = any(side.saw_judge(mode) for side in sides if every[side.annotator] is not None)
    if decided is not None:
        return GoldVerdict(
            mode,
            decided.value,
            Resolution.ADJUDICATED,
            every,
            judge_seen=seen or decided.judge_seen,
            decided_by=decided.decided_by,
            decided_at=decided.decided_at,
            reason=decided.reason,
            changed=comparable_verdicts(decided.said) != comparable_verdicts(answers),
        )
    value, source = _common_value(values, rules.majority)
    return GoldVerdict(mode, value, source, every, judge_seen=seen)


def _common_value(
    values: Sequence[VerdictValue], majority: bool
) -> tuple[VerdictValue | None, Resolution]:
    if len(values) == 1:
        return values[0], Resolution.SINGLE
    if values and all(value is values[0] for value in values):
        return values[0], Resolution.UNANIMOUS
    for value in (VerdictValue.PRESENT, VerdictValue.ABSENT):
        if majority and 2 * values.count(value) > len(values):
            return value, Resolution.MAJORITY
    return None, Resolution.UNRESOLVED


def _places(
    mode: str, sides: Sequence[TraceWork], decisions: tuple[Decision, ...], rules: _Rules
) -> tuple[tuple[GoldLabel, ...], tuple[Conflict, ...]]:
    """Labels and open conflicts of a mode whose verdict is present."""
    marks = _labels(mode, sides)
    on_items = tuple(d for d in decisions if not d.is_verdict)
    decided = next((d for d in decisions if d.is_verdict), None)
    if decided is None:
        items = items_of_mode(marks, rules.order)
    else:
        items = tuple(_item_at(mode, target, marks, rules.order) for target in decided.targets)
        on_items = _decisions_with(decided, decisions, rules.order)
    claims, left = _claims(items, on_items, rules.order)
    labels: list[GoldLabel] = []
    open_places: list[Conflict] = []
    for decision, claimed in claims:
        labels += _by_decision(decision, claimed, sides, rules.order)
    placing = {label.annotator for label in marks if not label.target.is_whole}
    for item in left:
        if decided is not None:
            agreeing = [label for label in item.labels if label.annotator in decided.sides]
            labels.append(_gold_label(mode, item.target, agreeing, sides, decided))
            continue
        peers = set(item.annotators) if item.target.is_whole else placing
        source = _common_place(item, peers, rules)
        if source is Resolution.UNRESOLVED:
            open_places.append(_place_conflict(item, sides, peers))
        elif source is not None:
            labels += _accepted_labels(item, source, sides)
    in_order = in_reading_order(labels, lambda label: label.target, rules.order)
    return tuple(in_order), tuple(open_places)


def _decisions_with(
    decided: Decision, decisions: Sequence[Decision], order: Order
) -> tuple[Decision, ...]:
    """Return the decisions on items that hold beside a decision on the verdict.

    Later ones all do; of the earlier ones those that name a place which it leaves alone.
    """
    since = decisions.index(decided)
    earlier = [
        d
        for d in decisions[:since]
        if not any(overlap(t, u, order) for t in d.targets for u in decided.targets)
        and d.value is VerdictValue.PRESENT
    ]
    return (*earlier, *decisions[since + 1 :])


def _claims(
    items: Sequence[Item], decisions: Sequence[Decision], order: Order
) -> tuple[list[tuple[Decision, list[Item]]], list[Item]]:
    """Return the items that each decision is about, and the items that no decision is about.

    An item keeps the decision that names it. Where its labels have moved since, the decision goes
    with what overlaps the places that it was about, the latest decision first.
    """
    left = {item.id: item for item in items}
    claimed = {d.item: [left.pop(d.item)] if d.item in left else [] for d in decisions}
    for decision in reversed(decisions):
        if claimed[decision.item]:
            continue
        about = [*decision.targets, *(t for answer in decision.said for t in answer.targets)]
        moved = [
            item
            for item in left.values()
            if any(overlap(item.target, target, order) for target in about)
        ]
        claimed[decision.item] = moved
        for item in moved:
            del left[item.id]
    return [(d, claimed[d.item]) for d in decisions], list(left.values())


def _by_decision(
    decision: Decision, claimed: Sequence[Item], sides: Sequence[TraceWork], order: Order
) -> list[GoldLabel]:
    if decision.value is not VerdictValue.PRESENT:
        return []
    marks = [label for item in claimed for label in item.labels]
    changed = comparable_places(decision.said) != {
        (name, frozenset(label.target for label in marks if label.annotator == name))
        for name in {label.annotator for label in marks}
    }
    # Of the whole mode: a place of the adjudicator's own may touch what other items are about.
    agreeing = [x for x in _labels(decision.mode, sides) if x.annotator in decision.sides]
    return [
        _gold_label(
            decision.mode,
            target,
            [label for label in agreeing if overlap(label.target, target, order)],
            sides,
            decision,
            changed,
        )
        for target in decision.targets
    ]


def _common_place(item: Item, peers: set[str], rules: _Rules) -> Resolution | None:
    """Return the source of an item that all who could mark it share; None if it is voted down."""
    marked = len(item.annotators)
    if len(peers) == 1:
        return Resolution.SINGLE
    if rules.boundaries and marked > 1 and len(item.targets) > 1:
        return Resolution.UNRESOLVED
    if joins_separate_places(item, rules.order):
        return Resolution.UNRESOLVED
    if marked == len(peers):
        return Resolution.UNANIMOUS
    if rules.majority and 2 * marked != len(peers):
        return Resolution.MAJORITY if 2 * marked > len(peers) else None
    return Resolution.UNRESOLVED


def _accepted_labels(item: Item, source: Resolution, sides: Sequence[TraceWork]) -> list[GoldLabel]:
    """Return an item's labels as gold: one target for several sides, a side's own as they stand."""
    if len(item.annotators) == 1:
        return [
            _gold_label(item.mode, t, [x for x in item.labels if x.target == t], sides, source)
            for t in item.targets
        ]
    label = _gold_label(item.mode, item.target, item.labels, sides, source)
    return [replace(label, merged=len(item.targets) > 1)]


def _place_conflict(item: Item, sides: Sequence[TraceWork], peers: set[str]) -> Conflict:
    answers = tuple(
        Said(
            side.annotator,
            VerdictValue.PRESENT,
            _targets(label for label in item.labels if label.annotator == side.annotator),
        )
        for side in sides
        if side.annotator in peers
    )
    return Conflict(item.id, ConflictKind.PLACE, item.mode, answers, item.labels, item.target)


def _gold_label(
    mode: str,
    target: Target,
    labels: Sequence[Label],
    sides: Sequence[TraceWork],
    origin: Resolution | Decision,
    changed: bool = False,
) -> GoldLabel:
    decision = origin if isinstance(origin, Decision) else None
    names = tuple(dict.fromkeys(label.annotator for label in labels))
    graded = {label.annotator: label.severity for label in labels if label.severity is not None}
    severity = next(iter(graded.values())) if len(set(graded.values())) == 1 else None
    seen = any(side.saw_judge(mode) for side in sides if side.annotator in names)
    return GoldLabel(
        mode,
        target,
        Resolution.ADJUDICATED if isinstance(origin, Decision) else origin,
        labels=tuple(label.id for label in labels),
        annotators=names,
        notes=tuple((label.annotator, label.note) for label in labels if label.note),
        severity=severity,
        severity_source=None if severity is None else _severity_source(len(graded), len(names)),
        judge_seen=seen or (decision is not None and decision.judge_seen),
        decided_by=decision.decided_by if decision else None,
        decided_at=decision.decided_at if decision else None,
        reason=decision.reason if decision else "",
        changed=changed,
    )


def _severity_source(graded: int, annotators: int) -> Resolution:
    """Return how far a severity is shared: by all annotators of a label, by several, or by one."""
    if graded == 1:
        return Resolution.SINGLE
    return Resolution.UNANIMOUS if graded == annotators else Resolution.MAJORITY


def _item_at(mode: str, target: Target, marks: Sequence[Label], order: Order) -> Item:
    """Return a decided place as an item, with the labels that it touches."""
    return Item(mode, tuple(m for m in marks if overlap(m.target, target, order)), target)


def _labels(mode: str, sides: Sequence[TraceWork]) -> list[Label]:
    return [label for side in sides for label in side.labels_of(mode)]


def _targets(labels: Iterable[Label]) -> tuple[Target, ...]:
    return tuple(dict.fromkeys(label.target for label in labels))


def comparable_verdicts(
    answers: Iterable[Said],
) -> set[tuple[str, VerdictValue | None, frozenset[Target]]]:
    """Return comparable values of the answers on a mode."""
    return {(s.annotator, s.value, frozenset(s.targets)) for s in answers}


def comparable_places(answers: Iterable[Said]) -> set[tuple[str, frozenset[Target]]]:
    """Return comparable values of the answers on a place."""
    return {(s.annotator, frozenset(s.targets)) for s in answers if s.targets}
