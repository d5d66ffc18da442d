"""What there is to adjudicate: traces with their items, open, decided or agreed, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.adjudication import (
    JudgeWord,
    QueueEntry,
    TraceWords,
    has_changed,
    letters,
    outcome_words,
    queue,
    said_now,
    settles_conflict,
    take_on_as_study_says,
)
from mast_tui.errors import MastError
from mast_tui.gold import (
    Conflict,
    ConflictKind,
    Decision,
    GoldTrace,
    GoldVerdict,
    Order,
    Said,
    Side,
    Source,
    words_on,
)
from mast_tui.labels import JUDGE_PREFIX, Label, Target, VerdictValue
from mast_tui.safe_text import one_line
from mast_tui.session import status
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.adjudicate.conflict_list import QueueRow, RowState
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.widgets.sides_panel import Place, SideView
from mast_tui.ui.wording import IndexOf, place_words

MOST_SIDES: Final = 9
"""Sides that a digit can take."""

MOST_CODE_CHARS: Final = 8

Thing = Conflict | Decision | GoldVerdict


@dataclass(frozen=True, slots=True)
class Names:
    """What each side goes by. With ``letters`` nobody else's name is told, and nothing else.

    ``letters`` are by name, in their order.
    """

    letters: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, limit: int | None = None) -> str:
        """A side's letter or name, fit for display."""
        return self.letters.get(name, "?") if self.letters else one_line(name, limit)

    def in_order(self, said: Iterable[Said]) -> tuple[Said, ...]:
        """The sides in the order in which they are numbered: that of the letters, if any."""
        places = {name: place for place, name in enumerate(self.letters)}
        return tuple(sorted(said, key=lambda side: places.get(side.annotator, len(places))))

    def joined(self, names: Iterable[str]) -> list[str]:
        """Several sides as they are called, in their order."""
        sides = self.in_order(Said(name, None) for name in names)
        return [self.of(side.annotator) for side in sides]


@dataclass(frozen=True, slots=True)
class ItemView:
    """One item of the queue with all that its panes show.

    ``where`` is the place to look at first; ``note`` says how it was settled.
    """

    title: str
    sides: tuple[SideView, ...]
    where: Target | None
    note: str = ""


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

    def says_what(self, other: TraceItems) -> bool:
        """Whether the same was said and decided as the other one has."""
        mine = list(self.sides), self.gold, list(self.decisions)
        return mine == (list(other.sides), other.gold, list(other.decisions))

    def place(self, item: str) -> str:
        """Name an item for others who decide it, and for nobody who sees no labels here."""
        labels = sorted(label.id for side in self.sides for label in side.labels)
        said = json.dumps([self.taxonomy.ref, self.trace_id, item, labels])
        return hashlib.sha256(said.encode()).hexdigest()

    def rows(self, *, agreed: bool = False, mode: str | None = None) -> list[QueueRow]:
        """A row per item, of one mode where it is named; agreed ones where they are asked for."""
        return [
            self._row(thing)
            for thing in self._things()
            if (mode is None or thing.mode == mode)
            and (agreed or not isinstance(thing, GoldVerdict))
        ]

    def find(self, item: str) -> Thing | None:
        """The item as it stands: open, decided or agreed."""
        return next((thing for thing in self._things() if _id_of(thing) == item), None)

    def conflict(self, item: str) -> Conflict | None:
        """The item as a conflict to decide: open, or decided and agreed ones asked anew."""
        thing = self.find(item)
        if thing is None or isinstance(thing, Conflict):
            return thing
        labels = tuple(
            label for side in self.sides for label in side.labels if label.mode == thing.mode
        )
        if isinstance(thing, Decision) and not thing.is_verdict:
            said = said_now(thing, self.sides, self.order)
            where = _first_place(thing)
            return Conflict(item, ConflictKind.PLACE, thing.mode, said, labels, where)
        said = words_on(thing.mode, self.sides)
        where = next((target for one in said for target in one.targets), None)
        return Conflict(item, ConflictKind.VERDICT, thing.mode, said, labels, where)

    def decision(self, item: str) -> Decision | None:
        """The decision on this item that stands."""
        found = self.find(item)
        return found if isinstance(found, Decision) else None

    def agreed(self, item: str) -> GoldVerdict | None:
        """The verdict on which nobody differs, where this item is one."""
        found = self.find(item)
        return found if isinstance(found, GoldVerdict) else None

    def side(self, conflict: Conflict, number: int) -> str | None:
        """The name of the side with this number; None where there are not so many."""
        said = self.names.in_order(conflict.said)
        return said[number - 1].annotator if 1 <= number <= len(said) else None

    def left(self, mode: str | None = None) -> int:
        """How many conflicts are open, of one mode where it is named."""
        return sum(mode is None or conflict.mode == mode for conflict in self.gold.conflicts)

    def decided(self, mode: str | None = None) -> int:
        """How many conflicts are decided, of one mode where it is named."""
        return sum(settles_conflict(one) for one in self._decisions_on(mode))

    def changed(self, mode: str | None = None) -> int:
        """How many decisions have sides that said something else since."""
        return sum(self.has_changed(one) for one in self._decisions_on(mode))

    def has_changed(self, decision: Decision) -> bool:
        """Whether a side has said something else since the decision."""
        return has_changed(decision, self.sides, self.order)

    def view(self, item: str) -> ItemView | None:
        """What the panes show of an item; None where there is no such item."""
        thing, conflict = self.find(item), self.conflict(item)
        if thing is None or conflict is None:
            return None
        places_only = conflict.kind is ConflictKind.PLACE
        decision = thing if isinstance(thing, Decision) else None
        views = self._side_views(conflict, decision)
        title = " ".join(mode_words(self.taxonomy, thing.mode))
        if decision is not None:
            title += " · decided"
            if self.has_changed(decision):
                title += ", a side has changed since"
            if decision.reason:
                views.append(SideView(None, "why", "", note=decision.reason))
            note = self._decision_words(decision)
            return ItemView(title, tuple(views), _first_place(decision), note)
        if isinstance(thing, GoldVerdict):
            title += " · agreed"
        elif not places_only:
            title += " · does it show?"
        elif conflict.where is not None:
            title += f" · is it at {place_words(conflict.where, self.order, quoted=False)}?"
        return ItemView(title, tuple(views), conflict.where)

    def _side_views(self, conflict: Conflict, decision: Decision | None) -> list[SideView]:
        """The sides, numbered as their keys, with the places that they marked.

        Where a side had said something else when the item was decided, that is told.
        """
        places_only = conflict.kind is ConflictKind.PLACE
        before = {said.annotator: said for said in decision.said} if decision else {}
        views = []
        for number, side in enumerate(self.names.in_order(conflict.said), start=1):
            own = [label for label in conflict.labels if label.annotator == side.annotator]
            remarks = ["✓ taken"] if decision and side.annotator in decision.sides else []
            if decision and decision.said:
                then = before.pop(side.annotator, None)
                remarks += _changed_words(then, side, self.order, places_only)
            views.append(
                SideView(
                    number if number <= MOST_SIDES else None,
                    self.names.of(side.annotator, 32),
                    _verdict_words(side, places_only),
                    tuple(_place(target, own, self.order) for target in side.targets),
                    " · ".join(remarks),
                )
            )
        for side in before.values():
            name = self.names.of(side.annotator, 32)
            remark = f"! then {_said_words(side, self.order, places_only)}"
            views.append(SideView(None, name, "open", remark=remark))
        return views

    def _decisions_on(self, mode: str | None) -> list[Decision]:
        return [one for one in self.decisions if mode is None or one.mode == mode]

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
        where = None
        if isinstance(thing, Conflict) and thing.kind is ConflictKind.PLACE:
            where = thing.where
        elif isinstance(thing, Decision) and not thing.is_verdict:
            where = _first_place(thing)
        index = self.order(where.first) if where is not None and where.first else None
        item = _id_of(thing)
        return item != thing.mode, place, -1 if index is None else index, item

    def _row(self, thing: Thing) -> QueueRow:
        names = self.names
        if isinstance(thing, Conflict):
            state = RowState.OPEN
            what, who = _difference(thing, names), _who(thing.said, names)
        elif isinstance(thing, Decision):
            state = RowState.CHANGED if self.has_changed(thing) else RowState.DECIDED
            what, who = _outcome(thing, names), _who(thing.said, names)
        else:
            state = RowState.AGREED
            what = thing.value.value if thing.value is not None else "open"
            sides = [name for name, said in thing.sides.items() if said is not None]
            only = thing.source is Source.SINGLE and sides
            who = f"only {names.of(sides[0])}" if only else ""
        code, name = mode_words(self.taxonomy, thing.mode)
        return QueueRow(self.trace_id, _id_of(thing), state, code, name, what, who)

    def _decision_words(self, decision: Decision) -> str:
        words = f"{_outcome(decision, self.names)} · {one_line(decision.decided_by)}"
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


def _first_place(decision: Decision) -> Target | None:
    """Where it was decided to be, else where a side had marked it."""
    said = (target for one in decision.said for target in one.targets)
    return next(iter((*decision.targets, *said)), None)


def mode_words(taxonomy: Taxonomy, slug: str) -> tuple[str, str]:
    """Code and name of a mode; a slug that is not known stands for itself."""
    mode = next((mode for mode in taxonomy.modes if mode.slug == slug), None)
    if mode is None:
        return "?", one_line(slug)
    return one_line(mode.code, MOST_CODE_CHARS), one_line(mode.name)


def _difference(conflict: Conflict, names: Names) -> str:
    """What the sides differ on: ``present / absent``, ``place: only ann``, ``place differs``."""
    if conflict.kind is ConflictKind.PLACE:
        marked = [said for said in conflict.said if said.targets]
        only = names.of(marked[0].annotator) if len(marked) == 1 else None
        return f"place: only {only}" if only is not None else "place differs"
    values = {said.value for said in conflict.said}
    return " / ".join(value.value for value in VerdictValue if value in values)


def _outcome(decision: Decision, names: Names) -> str:
    """A decision in a few words: ``absent``, ``present, as ann``, ``place taken, as ann``."""
    words = outcome_words(decision.value, is_verdict=decision.is_verdict)
    if len(decision.sides) == 1:
        return f"{words}, as {names.of(decision.sides[0])}"
    return f"{words}, as all" if len(decision.sides) > 1 else words


def _who(said: Iterable[Said], names: Names) -> str:
    """The sides with what each says: ``ann present · bob absent``."""
    return " · ".join(
        f"{names.of(side.annotator, 16)} {side.value.value if side.value else 'open'}"
        for side in names.in_order(said)
    )


# The sides of an item


def _changed_words(
    then: Said | None, side: Said, index_of: IndexOf, places_only: bool
) -> list[str]:
    """What a side had said when it was decided, where that was something else."""
    if then is None:
        return ["! since then"]
    same_value = places_only or then.value == side.value
    if same_value and set(then.targets) == set(side.targets):
        return []
    return [f"! then {_said_words(then, index_of, places_only)}"]


def _said_words(side: Said, index_of: IndexOf, places_only: bool) -> str:
    words = _verdict_words(side, places_only)
    places = [place_words(target, index_of, quoted=False) for target in side.targets[:2]]
    more = " …" if len(side.targets) > 2 else ""
    return f"{words} {', '.join(places)}{more}" if places else words


def judge_views(words: Sequence[JudgeWord], index_of: IndexOf) -> list[SideView]:
    """What judges say, per judge; no key takes their word."""
    return [
        SideView(
            None,
            word.judge.removeprefix(JUDGE_PREFIX),
            _judge_verdict(word),
            tuple(_place(label.target, [label], index_of) for label in word.labels),
            "judge",
        )
        for word in words
    ]


def _judge_verdict(word: JudgeWord) -> str:
    if word.labels:
        return "suggests it"
    return word.value.value if word.value is not None else "cannot tell"


def _verdict_words(side: Said, places_only: bool) -> str:
    if places_only:
        return "marked" if side.targets else "did not mark this place"
    return side.value.value if side.value is not None else "open"


def _place(target: Target, labels: Sequence[Label], index_of: IndexOf) -> Place:
    label = next((label for label in labels if label.target == target), None)
    extra = []
    if label is not None:
        if label.severity is not None:
            extra.append(label.severity.value)
        if label.confidence is not None:
            extra.append(f"sure {label.confidence:.0%}")
        if label.saw_suggestions:
            extra.append("saw suggestions")
    return Place(
        target,
        place_words(target, index_of, quoted=False),
        quote=target.quote or "",
        note=label.note if label is not None else "",
        extra=" · ".join(extra),
    )


# The queue


@dataclass(frozen=True, slots=True)
class Cases:
    """The queue, the items of each trace that one may see, and who has finished how many traces.

    ``entries`` are in the order of the queue. ``at_hand`` finds the traces themselves; ``study`` is
    the protocol, if any; ``problem`` is why nothing could be read. ``unordered`` counts the labels
    of which it is not known whether they overlap others, so that some conflicts may be none.
    """

    annotator: str = ""
    entries: tuple[QueueEntry, ...] = ()
    items: Mapping[str, TraceItems] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    at_hand: TraceLoader | None = None
    study: Study | None = None
    problem: str | None = None
    unordered: int = 0

    @property
    def may_come_back(self) -> bool:
        """Whether finished traces may come back to this person to be labelled once more.

        Then all that is hidden is told in the same words, lest they give away which these are.
        """
        study = self.study
        return study is not None and study.retests > 0 and self.annotator in study.annotators


def read_cases(opened: OpenWorkspace, traces: Sequence[Trace]) -> Cases:
    """Read the whole queue; ``traces`` are those open in the app.

    What the study gives to this adjudicator is taken on first. Slow where many traces have to be
    read, so for workers only. While a server is away it is what was read the last time.
    """
    workspace = opened.workspace
    try:
        with workspace.as_known():
            cases = _read_cases(opened, traces)
            if not workspace.away:
                workspace.read_ahead(everybody=True)
    except MastError as error:
        return Cases(problem=str(error))
    return cases


def _read_cases(opened: OpenWorkspace, traces: Sequence[Trace]) -> Cases:
    workspace, taxonomy, annotator = opened.workspace, opened.taxonomy, opened.annotator
    at_hand = TraceLoader(workspace, traces)
    study = workspace.study(taxonomy.ref)
    take_on_as_study_says(workspace, taxonomy, annotator)
    entries = queue(workspace, taxonomy, annotator, order_of=at_hand.orders)
    items = {
        entry.trace_id: TraceItems(
            entry.trace_id,
            entry.words.sides,
            entry.gold,
            entry.words.decisions,
            taxonomy,
            at_hand.known_order(entry.trace_id),
            letters_of(entry.words, study),
        )
        for entry in entries
        if entry.words is not None and entry.gold is not None
    }
    finished = {one.name: one.finished for one in status(workspace, taxonomy).annotators}
    unordered = sum(
        len(entry.words.unordered(taxonomy, at_hand.orders(entry.trace_id)))
        for entry in entries
        if entry.words is not None
    )
    return Cases(annotator, entries, items, finished, at_hand, study, unordered=unordered)


def letters_of(said: TraceWords, study: Study | None) -> Mapping[str, str]:
    """The letters that stand for all who have a word on a trace, or had one in a decision."""
    names = {side.annotator for side in said.sides}
    names |= {side.annotator for decision in said.decisions for side in decision.said}
    return letters(said.trace_id, names, study.seed if study is not None else 0)
