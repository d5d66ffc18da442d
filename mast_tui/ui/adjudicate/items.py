"""The items of one trace in adjudication: what is open, decided or agreed, in a lasting order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mast_tui.gold import (
    Conflict,
    ConflictKind,
    Decision,
    GoldTrace,
    GoldVerdict,
    Order,
    Said,
    Side,
    words_on,
)
from mast_tui.labels import Label, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.adjudicate.conflict_list import QueueRow
from mast_tui.ui.adjudicate.names import Names, outcome
from mast_tui.ui.adjudicate.rows import (
    ItemView,
    agreed_row,
    conflict_row,
    decision_row,
    mode_words,
    reason_view,
    side_views,
)
from mast_tui.ui.place_words import place_words

Thing = Conflict | Decision | GoldVerdict


@dataclass(frozen=True, slots=True)
class TraceItems:
    """What two or more people said of a trace, and what came of it.

    ``order`` gives a span's index by its key. Verdicts stand before places, both in the order of
    the taxonomy's modes, and an item stays where it is when it is decided. ``letters`` stand for
    the sides' names while these are ``hidden``.
    """

    trace_id: str
    sides: Sequence[Side]
    gold: GoldTrace
    decisions: Sequence[Decision]
    taxonomy: Taxonomy
    order: Order
    letters: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False

    @property
    def names(self) -> Names:
        """What the sides go by now."""
        return Names(self.letters if self.hidden else {})

    def rows(self, *, agreed: bool = False, mode: str | None = None) -> list[QueueRow]:
        """A row per item, of one mode where it is named; agreed ones where they are asked for."""
        return [
            self._row(thing)
            for thing in self._things()
            if (mode is None or thing.mode == mode)
            and (agreed or not isinstance(thing, GoldVerdict))
        ]

    def conflict(self, item: str) -> Conflict | None:
        """The item as a conflict to decide: open, or decided and agreed ones asked anew."""
        thing = self.find(item)
        if thing is None or isinstance(thing, Conflict):
            return thing
        labels = tuple(self._labels(thing.mode))
        if isinstance(thing, Decision) and not thing.is_verdict:
            return Conflict(
                item, ConflictKind.PLACE, thing.mode, self._said_now(thing), labels,
                self._first_place(thing),
            )  # fmt: skip
        said = words_on(thing.mode, self.sides)
        where = next((target for one in said for target in one.targets), None)
        return Conflict(item, ConflictKind.VERDICT, thing.mode, said, labels, where)

    def side(self, conflict: Conflict, number: int) -> str | None:
        """The name of the side with this number; None where there are not so many."""
        said = self.names.in_order(conflict.said)
        return said[number - 1].annotator if 1 <= number <= len(said) else None

    def decision(self, item: str) -> Decision | None:
        """The decision on this item that stands."""
        found = self.find(item)
        return found if isinstance(found, Decision) else None

    def agreed(self, item: str) -> GoldVerdict | None:
        """The verdict on which nobody differs, where this item is one."""
        found = self.find(item)
        return found if isinstance(found, GoldVerdict) else None

    def left(self, mode: str | None = None) -> int:
        """How many conflicts are open, of one mode where it is named."""
        return sum(mode is None or conflict.mode == mode for conflict in self.gold.conflicts)

    def decided(self, mode: str | None = None) -> int:
        """How many conflicts are decided, of one mode where it is named."""
        from mast_tui.adjudication import settles_conflict

        return sum(
            settles_conflict(decision)
            for decision in self.decisions
            if mode is None or decision.mode == mode
        )

    def changed(self, mode: str | None = None) -> int:
        """How many decisions have sides that said something else since."""
        return sum(
            self.has_changed(decision)
            for decision in self.decisions
            if mode is None or decision.mode == mode
        )

    def view(self, item: str) -> ItemView | None:
        """What the panes show of an item; None where there is no such item."""
        thing, conflict = self.find(item), self.conflict(item)
        if thing is None or conflict is None:
            return None
        code, name = mode_words(self.taxonomy, thing.mode)
        title = f"{code} {name}"
        places = conflict.kind is ConflictKind.PLACE
        if not isinstance(thing, Conflict):
            title += " · decided" if isinstance(thing, Decision) else " · agreed"
            if isinstance(thing, Decision) and self.has_changed(thing):
                title += ", a side has changed since"
        elif not places:
            title += " · does it show?"
        elif conflict.where is not None:
            title += f" · is it at {place_words(conflict.where, self.order, quoted=False)}?"
        decision = thing if isinstance(thing, Decision) else None
        views = side_views(
            conflict.said,
            conflict.labels,
            self.order,
            self.names,
            places_only=places,
            taken=decision.sides if decision else (),
            then=decision.said if decision else (),
        )
        where, note = conflict.where, ""
        if decision is not None:
            where = self._first_place(decision)
            note = self._decision_words(decision)
            if decision.reason:
                views.append(reason_view(decision.reason))
        return ItemView(title, tuple(views), where, note)

    def find(self, item: str) -> Thing | None:
        """The item as it stands: open, decided or agreed."""
        return next((thing for thing in self._things() if _id_of(thing) == item), None)

    def _things(self) -> list[Thing]:
        decided = {decision.item for decision in self.decisions}
        conflicted = {conflict.mode for conflict in self.gold.conflicts} | {
            decision.mode for decision in self.decisions
        }
        things: list[Thing] = [c for c in self.gold.conflicts if c.id not in decided]
        things += self.decisions
        things += [
            verdict
            for verdict in self.gold.verdicts
            if verdict.value is not None and verdict.mode not in conflicted
        ]
        return sorted(things, key=self._rank)

    def _rank(self, thing: Thing) -> tuple[bool, int, int, str]:
        slugs = [mode.slug for mode in self.taxonomy.modes]
        place = slugs.index(thing.mode) if thing.mode in slugs else len(slugs)
        if isinstance(thing, Conflict):
            where = thing.where if thing.kind is ConflictKind.PLACE else None
        elif isinstance(thing, Decision):
            where = None if thing.is_verdict else self._first_place(thing)
        else:
            where = None
        index = self.order(where.first) if where is not None and where.first else None
        item = _id_of(thing)
        return item != thing.mode, place, -1 if index is None else index, item

    def _row(self, thing: Thing) -> QueueRow:
        trace_id, taxonomy, names = self.trace_id, self.taxonomy, self.names
        if isinstance(thing, Conflict):
            return conflict_row(thing, trace_id, taxonomy, names)
        if isinstance(thing, Decision):
            changed = self.has_changed(thing)
            return decision_row(thing, trace_id, taxonomy, names, changed=changed)
        return agreed_row(thing, trace_id, taxonomy, names)

    def has_changed(self, decision: Decision) -> bool:
        """Whether a side has said something else since the decision."""
        from mast_tui.adjudication import has_changed

        return has_changed(decision, self.sides, self.order)

    def _labels(self, mode: str) -> list[Label]:
        return [label for side in self.sides for label in side.labels if label.mode == mode]

    def _said_now(self, decision: Decision) -> tuple[Said, ...]:
        """What the sides of a decision on a place mark there now."""
        from mast_tui.adjudication import said_now

        return said_now(decision, self.sides, self.order)

    @staticmethod
    def _about(decision: Decision) -> list[Target]:
        return [*decision.targets, *(t for said in decision.said for t in said.targets)]

    def _first_place(self, decision: Decision) -> Target | None:
        return next(iter(self._about(decision)), None)

    def _decision_words(self, decision: Decision) -> str:
        words = f"{outcome(decision, self.names)} · {one_line(decision.decided_by)}"
        if decision.value is VerdictValue.PRESENT and decision.targets:
            words += f" · {place_words(decision.targets[0], self.order, quoted=False)}"
            if len(decision.targets) > 1:
                words += f" and {len(decision.targets) - 1} more"
        return words


def _id_of(thing: Thing) -> str:
    """By what a row of the queue knows the thing again."""
    if isinstance(thing, Conflict):
        return thing.id
    return thing.item if isinstance(thing, Decision) else thing.mode
