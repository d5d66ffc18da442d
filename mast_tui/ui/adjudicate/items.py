"""What there is to adjudicate: traces with their items, open, decided or agreed, in words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mast_tui.adjudication import (
    ConflictGroup,
    Dispute,
    JudgeWord,
    QueueEntry,
    TraceWords,
    agreed_conflict,
    conflict_groups,
    decided_words,
    disputes,
    first_place,
    letters,
    merged_sides,
    queue,
    row_id,
    take_on_as_study_says,
    targets_taken,
)
from mast_tui.errors import MastError
from mast_tui.gold import (
    ConflictKind,
    Decision,
    GoldTrace,
    GoldVerdict,
    Order,
    Said,
    Source,
)
from mast_tui.gold.overlaps import in_reading_order
from mast_tui.labels import (
    JUDGE_PREFIX,
    AnnotatorKind,
    Label,
    Target,
    TraceWork,
    VerdictValue,
    annotator_kind,
)
from mast_tui.safe_text import one_line
from mast_tui.session import status
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.ui.adjudicate.conflict_list import QueueRow, RowState
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.widgets.sides_panel import SidePlace, SideView
from mast_tui.ui.wording import IndexOf, place_words

MOST_CODE_CHARS: Final = 8

MOST_PLACES: Final = 3
"""Places of a side that are named in one line."""

RowSubject = Dispute | GoldVerdict
"""What a row of the queue is about: something disputed, or a verdict on which all agree."""


@dataclass(frozen=True, slots=True)
class SideNames:
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
    sides: Sequence[TraceWork]
    gold: GoldTrace
    decisions: Sequence[Decision]
    taxonomy: Taxonomy
    order: Order
    letters: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False

    @property
    def names(self) -> SideNames:
        """What the sides go by now."""
        return SideNames(self.letters if self.hidden else {})

    def says_what(self, other: TraceItems) -> bool:
        """Whether the same was said and decided as the other one has."""
        mine = list(self.sides), self.gold, list(self.decisions)
        return mine == (list(other.sides), other.gold, list(other.decisions))

    def place(self, item: str) -> str:
        """Name an item for others who decide it, and for nobody who sees no labels here."""
        labels = sorted(label.id for side in self.sides for label in side.labels.values())
        said = json.dumps([self.taxonomy.ref, self.trace_id, item, labels])
        return hashlib.sha256(said.encode()).hexdigest()

    def rows(self, *, agreed: bool = False, mode: str | None = None) -> list[QueueRow]:
        """Return the rows, of one mode where it is named; agreed ones where they are asked for."""
        return [
            self._row(subject)
            for subject in self._subjects()
            if (mode is None or subject.mode == mode)
            and (agreed or not isinstance(subject, GoldVerdict))
        ]

    def find(self, row: str) -> RowSubject | None:
        """Return what a row is about: open, decided or agreed."""
        return next((one for one in self._subjects() if _id_of(one) == row), None)

    def dispute(self, row: str) -> Dispute | None:
        """Return what a row is about where the sides differ, or something was decided."""
        found = self.find(row)
        return found if isinstance(found, Dispute) else None

    def question(self, row: str) -> ConflictGroup | None:
        """Return what a key decides: what is open, or decided and agreed things asked anew."""
        found = self.find(row)
        if isinstance(found, GoldVerdict):
            return ConflictGroup((agreed_conflict(found.mode, self.sides),))
        return None if found is None else found.in_question(self.sides, self.order)

    def is_open(self, row: str) -> bool:
        """Whether something is left to decide in a row."""
        dispute = self.dispute(row)
        return dispute is not None and dispute.is_open

    def agreed(self, row: str) -> GoldVerdict | None:
        """Return the verdict on which all agree, where a row is about one."""
        found = self.find(row)
        return found if isinstance(found, GoldVerdict) else None

    def row_of(self, item: str) -> str:
        """Return the row in which the decision on an item stands; the item if none stands."""
        decision = next((one for one in self.decisions if one.item == item), None)
        if decision is not None:
            return row_id(decision)
        open_here = (g.id for g in conflict_groups(self.gold.conflicts) if _has_item(g, item))
        return next(open_here, item)

    def side(self, group: ConflictGroup, number: int) -> str | None:
        """The name of the side with this number; None where there are not so many."""
        said = self.names.in_order(group.said)
        return said[number - 1].annotator if 1 <= number <= len(said) else None

    def left(self, mode: str | None = None) -> int:
        """How many conflicts are open, of one mode where it is named."""
        groups = conflict_groups(self.gold.conflicts)
        return sum(mode is None or group.mode == mode for group in groups)

    def decided(self, mode: str | None = None) -> int:
        """How many conflicts are decided, of one mode where it is named."""
        disputed = self.disputes(mode)
        return sum(one.resolves_conflict and not one.is_open for one in disputed)

    def changed(self, mode: str | None = None) -> int:
        """How many decided conflicts have sides that said something else since."""
        return sum(self.has_changed(dispute) for dispute in self.disputes(mode))

    def has_changed(self, dispute: Dispute) -> bool:
        """Whether all is decided, and a side has said something else since."""
        return dispute.has_changed(self.sides, self.order)

    def view(self, row: str) -> ItemView | None:
        """What the panes show of a row; None where there is no such row."""
        found, group = self.find(row), self.question(row)
        if found is None or group is None:
            return None
        title = " ".join(mode_words(self.taxonomy, found.mode))
        if isinstance(found, GoldVerdict):
            views = self._side_views(group, ())
            return ItemView(f"{title} · agreed", tuple(views), group.where)
        if found.is_open:
            views = [*self._side_views(group, ()), *self._settled_views(found)]
            title += f" · {self._question_words(group)}"
            return ItemView(title, tuple(views), group.where)
        views = self._side_views(group, found.decisions)
        title += " · decided"
        if self.has_changed(found):
            title += ", a side has changed since"
        reasons = dict.fromkeys(one.reason for one in found.decisions if one.reason)
        views += [SideView(None, "why", "", note=reason) for reason in reasons]
        note = self._decision_words(found.decisions)
        taken = targets_taken(found.decisions)
        in_order = in_reading_order(taken, lambda target: target, self.order)
        return ItemView(title, tuple(views), next(iter(in_order), group.where), note)

    def _question_words(self, group: ConflictGroup) -> str:
        """The question that an open row asks."""
        if group.kind is ConflictKind.VERDICT:
            return "does it show?"
        if len(group.conflicts) > 1 or group.where is None:
            return "where is it?"
        return f"is it at {place_words(group.where, self.order, quoted=False)}?"

    def _settled_views(self, dispute: Dispute) -> list[SideView]:
        """Where a mode shows beyond doubt while other places are open, and what was dropped.

        What was taken before a side changed is in question again.
        """
        if dispute.is_verdict:
            return []
        settled = [
            label.target
            for label in self.gold.labels
            if label.mode == dispute.mode and not label.changed
        ]
        changed = dispute.changed(self.sides, self.order)
        dropped = [
            target
            for one in dispute.decisions
            if one.value is not VerdictValue.PRESENT and one not in changed
            for said in one.said
            for target in said.targets
        ]
        return [
            SideView(None, name, "", tuple(_place(target, (), self.order) for target in targets))
            for name, targets in (
                ("settled", settled),
                ("dropped", [*dict.fromkeys(dropped)]),
                ("taken before", targets_taken(changed)),
            )
            if targets
        ]

    def _places_words(self, targets: Sequence[Target]) -> str:
        in_order = in_reading_order(targets, lambda target: target, self.order)
        places = [place_words(target, self.order, quoted=False) for target in in_order]
        more = " …" if len(places) > MOST_PLACES else ""
        return f"{', '.join(places[:MOST_PLACES])}{more}"

    def _side_views(self, group: ConflictGroup, decisions: Sequence[Decision]) -> list[SideView]:
        """The sides, numbered as their keys, with the places that they marked.

        Where a side had said something else when it was decided, that is told.
        """
        places_only = group.kind is ConflictKind.PLACE
        before = {said.annotator: said for said in merged_sides(decisions)}
        recorded = bool(before)
        taken = _sides_taken(decisions)
        views = []
        for number, side in enumerate(self.names.in_order(group.said), start=1):
            own = [label for label in group.labels if label.annotator == side.annotator]
            remarks = ["✓ taken"] if side.annotator in taken else []
            if recorded:
                then = before.pop(side.annotator, None)
                remarks += _changed_words(then, side, self.order, places_only)
            views.append(
                SideView(
                    number=number,
                    name=self.names.of(side.annotator, 32),
                    verdict=_verdict_words(side, group),
                    places=tuple(_place(target, own, self.order) for target in side.targets),
                    remark=" · ".join(remarks),
                )
            )
        for side in before.values():
            name = self.names.of(side.annotator, 32)
            remark = f"! then {_said_words(side, self.order, places_only)}"
            views.append(SideView(None, name, "open", remark=remark))
        return views

    def disputes(self, mode: str | None = None) -> list[Dispute]:
        """Return what the sides differ on or was decided, of one mode where it is named."""
        found = disputes(self.gold.conflicts, self.decisions)
        return [one for one in found if mode is None or one.mode == mode]

    def _subjects(self) -> list[RowSubject]:
        disputed = self.disputes()
        modes = {dispute.mode for dispute in disputed}
        subjects: list[RowSubject] = [*disputed]
        subjects += [
            verdict
            for verdict in self.gold.verdicts
            if verdict.value is not None and verdict.mode not in modes
        ]
        return sorted(subjects, key=self._rank)

    def _rank(self, subject: RowSubject) -> tuple[bool, int, bool, int, str]:
        """Verdicts first; of the places of a mode the disputed ones, then single ones by place."""
        slugs = [mode.slug for mode in self.taxonomy.modes]
        mode = slugs.index(subject.mode) if subject.mode in slugs else len(slugs)
        row = _id_of(subject)
        decision = _single_decision(subject)
        where = None if decision is None else first_place(decision)
        index = self.order(where.first) if where is not None and where.first else None
        is_single = decision is not None
        return row != subject.mode, mode, is_single, -1 if index is None else index, row

    def _row(self, subject: RowSubject) -> QueueRow:
        names = self.names
        if isinstance(subject, GoldVerdict):
            state = RowState.AGREED
            what = subject.value.value if subject.value is not None else "open"
            sides = [name for name, said in subject.sides.items() if said is not None]
            only = subject.source is Source.SINGLE and sides
            who = f"only {names.of(sides[0])}" if only else ""
        elif subject.is_open:
            state = RowState.OPEN
            group = subject.in_question(self.sides, self.order)
            what = self._difference(group)
            who = self._who(group.said, places_only=not subject.is_verdict)
        else:
            state = RowState.CHANGED if self.has_changed(subject) else RowState.DECIDED
            what = self._outcome_in_row(subject)
            said = merged_sides(subject.decisions)
            who = self._who(said, places_only=not subject.is_verdict)
        code, name = mode_words(self.taxonomy, subject.mode)
        return QueueRow(
            trace_id=self.trace_id,
            item=_id_of(subject),
            state=state,
            code=code,
            name=name,
            what=what,
            who=who,
        )

    def _outcome_in_row(self, dispute: Dispute) -> str:
        """What was decided, short enough for the list: ``absent``, ``at #3, as ann``."""
        words = outcome(dispute.decisions, self.names)
        targets = targets_taken(dispute.decisions)
        if len(dispute.decisions) == 1 or not targets:
            return words
        _, comma, by = words.partition(", as ")
        return f"at {self._places_words(targets)}{comma}{by}"

    def _difference(self, group: ConflictGroup) -> str:
        """What the sides differ on: ``present / absent``, ``place: only ann``, ``at #3 / #9``."""
        if group.kind is ConflictKind.VERDICT:
            values = {said.value for said in group.said}
            return " / ".join(value.value for value in VerdictValue if value in values)
        if len(group.conflicts) == 1:
            marked = [said for said in group.said if said.targets]
            if len(marked) == 1:
                return f"place: only {self.names.of(marked[0].annotator)}"
        by_side = dict.fromkeys(
            self._places_words(side.targets) if side.targets else "none"
            for side in self.names.in_order(group.said)
        )
        return f"at {' / '.join(by_side)}"

    def _who(self, said: Iterable[Said], *, places_only: bool) -> str:
        """The sides with what each says: ``ann present · bob absent``, ``ann #3 · bob none``."""
        return " · ".join(
            f"{self.names.of(side.annotator, 16)} {self._short_words(side, places_only)}"
            for side in self.names.in_order(said)
        )

    def _short_words(self, side: Said, places_only: bool) -> str:
        if places_only:
            return self._places_words(side.targets) if side.targets else "none"
        return side.value.value if side.value is not None else "open"

    def _decision_words(self, decisions: Sequence[Decision]) -> str:
        deciders = dict.fromkeys(one_line(decision.decided_by) for decision in decisions)
        words = f"{outcome(decisions, self.names)} · {', '.join(deciders)}"
        targets = targets_taken(decisions)
        return f"{words} · {self._places_words(targets)}" if targets else words


def _id_of(subject: RowSubject) -> str:
    """The name by which a row of the queue knows its subject again."""
    return subject.id if isinstance(subject, Dispute) else subject.mode


def _single_decision(subject: RowSubject) -> Decision | None:
    """The decision on one item that is a row of its own."""
    if isinstance(subject, GoldVerdict) or len(subject.decisions) != 1:
        return None
    return subject.decisions[0] if subject.decisions[0].item == subject.id else None


def _has_item(group: ConflictGroup, item: str) -> bool:
    return any(conflict.id == item for conflict in group.conflicts)


def _sides_taken(decisions: Sequence[Decision]) -> set[str]:
    """The sides whose word was taken: of places those that marked one which was taken, if any."""
    taken = [one for one in decisions if one.is_verdict or one.value is VerdictValue.PRESENT]
    return {name for decision in taken or decisions for name in decision.sides}


def mode_words(taxonomy: Taxonomy, slug: str) -> tuple[str, str]:
    """Code and name of a mode; a slug that is not known stands for itself."""
    mode = next((mode for mode in taxonomy.modes if mode.slug == slug), None)
    if mode is None:
        return "?", one_line(slug)
    return one_line(mode.code, MOST_CODE_CHARS), one_line(mode.name)


def outcome(decisions: Sequence[Decision], names: SideNames) -> str:
    """Return in a few words what was decided in a row.

    Args:
        decisions: The decision on a verdict, or those on the places of a mode.
        names: What the sides go by.

    Returns:
        ``absent``, ``present, as ann``, ``place taken, as ann``, ``2 of 3 places taken, as all``.
    """
    words = decided_words(decisions)
    sides = _sides_taken(decisions)
    if len(sides) == 1:
        return f"{words}, as {names.of(next(iter(sides)))}"
    return f"{words}, as all" if sides else words


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
    value = side.value.value if side.value is not None else "open"
    words = ("marked" if side.targets else "no place") if places_only else value
    places = [place_words(target, index_of, quoted=False) for target in side.targets[:2]]
    more = " …" if len(side.targets) > 2 else ""
    return f"{words} {', '.join(places)}{more}" if places else words


def judge_views(words: Sequence[JudgeWord], index_of: IndexOf) -> list[SideView]:
    """Return a side for the answer of each judge and agent; no key takes it."""
    return [
        SideView(
            number=None,
            name=word.judge.removeprefix(JUDGE_PREFIX),
            verdict=_judge_verdict(word),
            places=tuple(_place(label.target, [label], index_of) for label in word.labels),
            remark=annotator_kind(word.judge).value,
            is_judge=True,
        )
        for word in words
    ]


def _judge_verdict(word: JudgeWord) -> str:
    if word.labels and annotator_kind(word.judge) is AnnotatorKind.JUDGE:
        return "suggests it"
    return word.value.value if word.value is not None else "cannot tell"


def _verdict_words(side: Said, group: ConflictGroup) -> str:
    """A side's verdict. Of a side that marked places these say enough."""
    if group.kind is ConflictKind.VERDICT:
        return side.value.value if side.value is not None else "open"
    if side.targets:
        return ""
    several = len(group.conflicts) > 1
    return "marked none of these places" if several else "did not mark this place"


def _place(target: Target, labels: Sequence[Label], index_of: IndexOf) -> SidePlace:
    label = next((label for label in labels if label.target == target), None)
    extra = []
    if label is not None:
        if label.severity is not None:
            extra.append(label.severity.value)
        if label.confidence is not None:
            extra.append(f"sure {label.confidence:.0%}")
        if label.saw_suggestions:
            extra.append("saw suggestions")
    return SidePlace(
        target,
        place_words(target, index_of, quoted=False),
        quote=target.quote or "",
        note=label.note if label is not None else "",
        extra=" · ".join(extra),
    )


# The queue


@dataclass(frozen=True, slots=True)
class QueueContents:
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


def read_cases(opened: OpenWorkspace, traces: Sequence[Trace]) -> QueueContents:
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
        return QueueContents(problem=str(error))
    return cases


def _read_cases(opened: OpenWorkspace, traces: Sequence[Trace]) -> QueueContents:
    workspace, taxonomy, annotator = opened.workspace, opened.taxonomy, opened.annotator
    at_hand = TraceLoader(workspace, traces)
    study = workspace.study(taxonomy.ref)
    take_on_as_study_says(workspace, taxonomy, annotator)
    entries = queue(workspace, taxonomy, annotator, order_of=at_hand.orders)
    items = {
        entry.trace_id: TraceItems(
            trace_id=entry.trace_id,
            sides=entry.words.sides,
            gold=entry.gold,
            decisions=entry.words.decisions,
            taxonomy=taxonomy,
            order=at_hand.known_order(entry.trace_id),
            letters=letters_of(entry.words, study),
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
    return QueueContents(
        annotator=annotator,
        entries=entries,
        items=items,
        finished=finished,
        at_hand=at_hand,
        study=study,
        unordered=unordered,
    )


def letters_of(said: TraceWords, study: Study | None) -> Mapping[str, str]:
    """The letters that stand for all who have a word on a trace, or had one in a decision."""
    names = {side.annotator for side in said.sides}
    names |= {side.annotator for decision in said.decisions for side in decision.said}
    return letters(said.trace_id, names, study.seed if study is not None else 0)
