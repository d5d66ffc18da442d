"""The items of traces to adjudicate, open, decided or agreed, and their texts on screen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from mast_tui.adjudication import (
    ConflictGroup,
    Dispute,
    JudgeAnswer,
    QueueEntry,
    TraceSides,
    conflict_groups,
    decided_words,
    dispute_id,
    disputes,
    first_place,
    letters,
    merged_sides,
    queue,
    take_on_as_study_says,
    targets_taken,
    verdict_conflict,
)
from mast_tui.errors import MastError
from mast_tui.gold import (
    ConflictKind,
    Decision,
    GoldTrace,
    GoldVerdict,
    Order,
    Resolution,
    SideAnswer,
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
from mast_tui.ui.adjudicate.lists import (
    ONE_SIDE,
    PLACES_DIFFER,
    QueueRow,
    RowState,
    SidePlace,
    SideView,
)
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.wording import IndexOf, joined, place_text

MOST_CODE_CHARS: Final = 8

MOST_NAMED_SIDES: Final = 2
"""The most sides that a decision names; of more it shows the number."""

MOST_RANGES: Final = 3
"""The most span ranges of a side that are named in one line."""

RowSubject = Dispute | GoldVerdict
"""The subject of a row of the queue: a dispute, or a verdict on which all sides agree."""


@dataclass(frozen=True, slots=True)
class SideNames:
    """The names of the sides on screen, or the letters that replace them.

    Attributes:
        letters: The letter of each name, in the order of the sides; empty for the usual order.
        hidden: Whether the letters replace the names.
    """

    letters: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False

    def display_name(self, name: str, limit: int | None = None) -> str:
        """Return the letter or name of a side, safe to display.

        Args:
            name: The name of the side.
            limit: The most characters of the name; None for all.
        """
        return self.letters.get(name, "?") if self.hidden else one_line(name, limit)

    def in_order(self, answers: Iterable[SideAnswer]) -> tuple[SideAnswer, ...]:
        """Return answers in the order in which their sides are numbered."""
        positions = {name: position for position, name in enumerate(self.letters)}
        return tuple(
            sorted(answers, key=lambda side: positions.get(side.annotator, len(positions)))
        )

    def listed(self, names: Iterable[str]) -> list[str]:
        """Return the letters or names of several sides, in their order."""
        sides = self.in_order(SideAnswer(name, None) for name in names)
        return [self.display_name(side.annotator) for side in sides]


@dataclass(frozen=True, slots=True)
class ItemView:
    """The contents of the panes for one item.

    Attributes:
        title: The mode, and the question or the state of the item.
        sides: The answers of the sides.
        target: The target to show first; None if there is none.
        note: The decision and its targets; empty for an open item.
    """

    title: str
    sides: tuple[SideView, ...]
    target: Target | None
    note: str = ""


@dataclass(frozen=True)
class TraceItems:
    """The items of a trace that two or more annotators have finished.

    ``order`` returns the index of a span by its key. Verdicts come before span ranges, both in the
    order of the taxonomy's modes; an item keeps its position when it is decided. ``letters``
    replace the names of the sides while ``names_hidden`` is set, and the sides are in their order.
    With ``keeps_letter_order`` that order stays while the names are shown, so that a key takes the
    same side. Rows and counts are those of the mode ``only_mode``, or of all modes if it is None.
    They are computed once, when they are first needed.
    """

    trace_id: str
    sides: Sequence[TraceWork]
    gold: GoldTrace
    decisions: Sequence[Decision]
    taxonomy: Taxonomy
    order: Order
    letters: Mapping[str, str] = field(default_factory=dict)
    names_hidden: bool = False
    keeps_letter_order: bool = False
    only_mode: str | None = None

    @property
    def names(self) -> SideNames:
        """The names or letters of the sides on screen."""
        uses_letters = self.names_hidden or self.keeps_letter_order
        return SideNames(self.letters if uses_letters else {}, hidden=self.names_hidden)

    def has_same_answers(self, other: TraceItems) -> bool:
        """Return whether the sides, the gold and the decisions equal those of other items."""
        return (
            list(self.sides) == list(other.sides)
            and self.gold == other.gold
            and list(self.decisions) == list(other.decisions)
        )

    def presence_key(self, item: str) -> str:
        """Return a key under which adjudicators of an item see each other.

        It is a hash over the ids of the labels, so that no one can compute it without seeing them.
        """
        labels = sorted(label.id for side in self.sides for label in side.labels.values())
        document = json.dumps([self.taxonomy.ref, self.trace_id, item, labels])
        return hashlib.sha256(document.encode()).hexdigest()

    @cached_property
    def rows(self) -> Sequence[QueueRow]:
        """The queue rows of the subjects: the disputes on the trace, and the agreed verdicts."""
        return [
            self._row_of_subject(subject)
            for subject in self._subjects.values()
            if self.only_mode is None or subject.mode == self.only_mode
        ]

    def find(self, subject_id: str) -> RowSubject | None:
        """Return the subject with an id, or None if there is none."""
        return self._subjects.get(subject_id)

    def dispute(self, subject_id: str) -> Dispute | None:
        """Return the dispute with an id, or None if there is none."""
        subject = self.find(subject_id)
        return subject if isinstance(subject, Dispute) else None

    def question(self, subject_id: str) -> ConflictGroup | None:
        """Return the conflicts that a decision in a row is about; None if there is no such row.

        The row of a decided dispute or an agreed verdict has conflicts too: the decision can be
        changed.
        """
        subject = self.find(subject_id)
        if isinstance(subject, GoldVerdict):
            return ConflictGroup((verdict_conflict(subject.mode, self.sides),))
        return None if subject is None else subject.in_question(self.sides, self.order)

    def is_open(self, subject_id: str) -> bool:
        """Return whether the subject with an id is an open dispute."""
        dispute = self.dispute(subject_id)
        return dispute is not None and dispute.is_open

    def subject_id_of(self, item: str) -> str:
        """Return the id of the row in which an item (a verdict or a span range) is decided.

        A decided item has the row of its dispute, an open one that of its group of conflicts. If
        there is no such row, return the id of the item.
        """
        decision = next((d for d in self.decisions if d.item == item), None)
        if decision is not None:
            return dispute_id(decision)
        groups = conflict_groups(self.gold.conflicts)
        open_group_ids = (group.id for group in groups if _has_item(group, item))
        return next(open_group_ids, item)

    def side_name(self, group: ConflictGroup, number: int) -> str | None:
        """Return the name of a side, or None if there is no side with the number.

        Args:
            group: The conflicts.
            number: The number of the side, from 1.
        """
        answers = self.names.in_order(group.said)
        return answers[number - 1].annotator if 1 <= number <= len(answers) else None

    @cached_property
    def open_count(self) -> int:
        """The number of open conflicts."""
        return sum(dispute.is_open for dispute in self._counted_disputes)

    @cached_property
    def decided_count(self) -> int:
        """The number of decided conflicts."""
        return sum(
            dispute.resolves_conflict and not dispute.is_open for dispute in self._counted_disputes
        )

    @cached_property
    def changed_count(self) -> int:
        """The number of decided conflicts of which a side has changed its answer since."""
        return sum(self.has_changed(dispute) for dispute in self._counted_disputes)

    @property
    def _counted_disputes(self) -> list[Dispute]:
        return [d for d in self.disputes if self.only_mode in (None, d.mode)]

    def has_changed(self, dispute: Dispute) -> bool:
        """Return whether a dispute is decided and a side has changed its answer since."""
        return dispute.has_changed(self.sides, self.order)

    def view(self, subject_id: str) -> ItemView | None:
        """Return the contents of the panes for a subject, or None if there is no such subject."""
        subject = self.find(subject_id)
        group = self.question(subject_id)  # the conflicts that the user is asked to decide
        if subject is None or group is None:
            return None
        title = " ".join(mode_code_and_name(self.taxonomy, subject.mode))
        if isinstance(subject, GoldVerdict):
            views = self._side_views(group, ())
            state = "only one side has answered" if is_by_one_side(subject) else "agreed"
            return ItemView(f"{title} · {state}", tuple(views), group.where)
        if subject.is_open:
            views = [*self._side_views(group, ()), *self._resolved_views(subject)]
            title += f" · {self._question_text(group)}"
            return ItemView(title, tuple(views), group.where)
        views = self._side_views(group, subject.decisions)
        deciders = dict.fromkeys(one_line(d.decided_by) for d in subject.decisions)
        decided = "decided" if subject.is_verdict else "places decided"
        title += f" · {decided} by {', '.join(deciders)}"
        if self.has_changed(subject):
            title += ", still right?"
        reasons = dict.fromkeys(d.reason for d in subject.decisions if d.reason)
        views += [
            SideView(number=None, name="reason:", verdict="", note=reason) for reason in reasons
        ]
        note = self._decision_text(subject.decisions)
        targets = targets_taken(subject.decisions)
        ordered_targets = in_reading_order(targets, lambda target: target, self.order)
        return ItemView(title, tuple(views), next(iter(ordered_targets), group.where), note)

    def _question_text(self, group: ConflictGroup) -> str:
        """Return the question that an open row asks."""
        if group.kind is ConflictKind.VERDICT:
            return "does it occur?"
        verb_and_indices = self._differing_ends(group)
        if verb_and_indices is not None:
            verb, _indices = verb_and_indices  # such as ``begin``, and the ends of the sides
            return f"where does it {verb}?"
        if len(group.conflicts) > 1 or group.where is None:
            return "where is it?"
        return f"is it at {place_text(group.where, self.order, quoted=False)}?"

    def _resolved_views(self, dispute: Dispute) -> list[SideView]:
        """Return the decided targets of a mode with open ones: resolved, dropped, and taken before.

        Those ``taken before`` are in question again, since a side has changed its answer.
        """
        if dispute.is_verdict:
            return []
        resolved_targets = [
            label.target
            for label in self.gold.labels
            if label.mode == dispute.mode and not label.changed
        ]
        changed_decisions = dispute.outdated_decisions(self.sides, self.order)
        dropping_decisions = [
            decision
            for decision in dispute.decisions
            if decision.value is not VerdictValue.PRESENT and decision not in changed_decisions
        ]
        dropped_targets = [
            target
            for decision in dropping_decisions
            for answer in decision.said
            for target in answer.targets
        ]
        targets_by_title = {
            "settled": resolved_targets,
            "dropped": [*dict.fromkeys(dropped_targets)],
            "taken before": targets_taken(changed_decisions),
        }
        return [
            SideView(
                number=None,
                name=title,
                verdict="",
                places=tuple(_side_place(target, (), self.order) for target in targets),
            )
            for title, targets in targets_by_title.items()
            if targets
        ]

    def _ranges_text(self, targets: Sequence[Target]) -> str:
        """Return the first span ranges of the targets in reading order: ``#3, #5-7 …``."""
        ordered_targets = in_reading_order(targets, lambda target: target, self.order)
        ranges = [place_text(target, self.order, quoted=False) for target in ordered_targets]
        ellipsis = " …" if len(ranges) > MOST_RANGES else ""
        return f"{', '.join(ranges[:MOST_RANGES])}{ellipsis}"

    def _side_views(self, group: ConflictGroup, decisions: Sequence[Decision]) -> list[SideView]:
        """Return the sides, numbered like their keys, with the targets that they marked.

        If a side's answer was different when the conflict was decided, its remark says so. Sides
        that answered then but have no answer now come last, without a number.
        """
        omit_verdict = group.kind is ConflictKind.PLACE
        earlier_answers = {answer.annotator: answer for answer in merged_sides(decisions)}
        has_earlier_answers = bool(earlier_answers)
        chosen_sides = _chosen_sides(decisions)
        views = []
        for number, side in enumerate(self.names.in_order(group.said), start=1):
            labels = [label for label in group.labels if label.annotator == side.annotator]
            remarks = ["✓ taken"] if side.annotator in chosen_sides else []
            if has_earlier_answers:
                earlier_answer = earlier_answers.pop(side.annotator, None)
                remarks += _changed_remarks(
                    earlier_answer, side, self.order, omit_verdict=omit_verdict
                )
            views.append(
                SideView(
                    number=number,
                    name=self.names.display_name(side.annotator, 32),
                    verdict=_verdict_text(side, group),
                    places=tuple(
                        _side_place(target, labels, self.order) for target in side.targets
                    ),
                    remark=" · ".join(remarks),
                    note=self._span_notes(side.annotator, group),
                )
            )
        for side in earlier_answers.values():
            name = self.names.display_name(side.annotator, 32)
            remark = f"! then {_answer_text(side, self.order, omit_verdict=omit_verdict)}"
            views.append(SideView(None, name, "open", remark=remark))
        return views

    def _span_notes(self, annotator: str, group: ConflictGroup) -> str:
        """Return a side's notes on the disputed spans: ``#7: it is another call``."""
        notes = next((side.notes for side in self.sides if side.annotator == annotator), {})
        ends = [
            (self.order(target.first or ""), self.order(target.last or ""))
            for answer in group.said
            for target in answer.targets
        ]
        disputed_ranges = [
            (first, last) for first, last in ends if first is not None and last is not None
        ]
        indexed_notes = [(self.order(key), note) for key, note in notes.items()]
        return " · ".join(
            f"#{index + 1}: {note}"
            for index, note in sorted((i, note) for i, note in indexed_notes if i is not None)
            if any(first <= index <= last for first, last in disputed_ranges)
        )

    @cached_property
    def disputes(self) -> Sequence[Dispute]:
        """The open and decided disputes of all modes."""
        return disputes(self.gold.conflicts, self.decisions)

    @cached_property
    def _subjects(self) -> Mapping[str, RowSubject]:
        """The disputes and the agreed verdicts by their ids, in the order of the rows."""
        disputed_modes = {dispute.mode for dispute in self.disputes}
        subjects: list[RowSubject] = [*self.disputes]
        subjects += [
            verdict
            for verdict in self.gold.verdicts
            if verdict.value is not None and verdict.mode not in disputed_modes
        ]
        subjects.sort(key=self._row_sort_key)
        return {_subject_id(subject): subject for subject in subjects}

    def _row_sort_key(self, subject: RowSubject) -> tuple[bool, int, bool, int, str]:
        """Return a sort key for the subjects of the rows.

        - Verdicts come before span ranges.
        - Modes are in the order of the taxonomy, unknown modes last.
        - The disputed ranges of a mode come before decisions on a single range.
        - Single ranges are in the order of their first span.
        """
        slugs = [mode.slug for mode in self.taxonomy.modes]
        mode_index = slugs.index(subject.mode) if subject.mode in slugs else len(slugs)
        subject_id = _subject_id(subject)
        is_range = subject_id != subject.mode  # the id of a verdict is its mode
        decision = _single_decision(subject)
        is_single = decision is not None
        span_range = None if decision is None else first_place(decision)
        first_index = None
        if span_range is not None and span_range.first:
            first_index = self.order(span_range.first)
        if first_index is None:
            first_index = -1
        return is_range, mode_index, is_single, first_index, subject_id

    def _row_of_subject(self, subject: RowSubject) -> QueueRow:
        """Return the queue row of a dispute or an agreed verdict."""
        names = self.names
        sign = ""
        if isinstance(subject, GoldVerdict):
            state = RowState.AGREED
            summary = subject.value.value if subject.value is not None else "open"
            sides_text = ""
            if is_by_one_side(subject):
                sign = ONE_SIDE
                sides_with_verdict = (name for name, value in subject.sides.items() if value)
                summary += f" (only {names.display_name(next(sides_with_verdict))})"
        elif subject.is_open:
            state = RowState.OPEN
            sign = "" if subject.is_verdict else PLACES_DIFFER
            group = subject.in_question(self.sides, self.order)
            summary = self._difference_text(group)
            sides_text = self._answers_text(group.said, omit_verdict=not subject.is_verdict)
        else:
            state = RowState.CHANGED if self.has_changed(subject) else RowState.DECIDED
            summary = self._outcome_in_row(subject)
            earlier_answers = merged_sides(subject.decisions)
            sides_text = self._answers_text(earlier_answers, omit_verdict=not subject.is_verdict)
        code, name = mode_code_and_name(self.taxonomy, subject.mode)
        return QueueRow(
            trace_id=self.trace_id,
            item=_subject_id(subject),
            state=state,
            code=code,
            name=name,
            summary=summary,
            sides=sides_text,
            sign=sign,
        )

    def _outcome_in_row(self, dispute: Dispute) -> str:
        """Return the decision in the short form of the list: ``absent``, ``at #3, as ann``."""
        targets = targets_taken(dispute.decisions)
        if dispute.is_verdict or not targets:
            return outcome(dispute.decisions, self.names)
        return f"at {self._ranges_text(targets)}{source_text(dispute.decisions, self.names)}"

    def _difference_text(self, group: ConflictGroup) -> str:
        """Return how the sides of open conflicts differ.

        Examples are ``present / absent``, ``only ann marks #3``, ``ann ends at #3, bob at #5`` and
        ``at #3 / #9``.
        """
        if group.kind is ConflictKind.VERDICT:
            values = {answer.value for answer in group.said}
            return " / ".join(value.value for value in VerdictValue if value in values)
        marking_sides = [side for side in group.said if side.targets]
        if len(marking_sides) == 1:
            (side,) = marking_sides
            name = self.names.display_name(side.annotator, 16)
            return f"only {name} marks {self._ranges_text(side.targets)}"
        answers = self.names.in_order(group.said)
        differing_ends = self._differing_ends(group)
        if differing_ends is not None:
            verb, indices = differing_ends
            names = [self.names.display_name(answer.annotator, 16) for answer in answers]
            names[0] += f" {verb}s"
            parts = zip(names, indices, strict=True)
            return ", ".join(f"{name} at #{index + 1}" for name, index in parts)
        distinct_ranges = dict.fromkeys(
            self._ranges_text(side.targets) if side.targets else "none" for side in answers
        )
        return f"at {' / '.join(distinct_ranges)}"

    def _differing_ends(self, group: ConflictGroup) -> tuple[str, Sequence[int]] | None:
        """Return the end at which the places of the sides differ, if they differ at one end only.

        The result is ``end`` or ``begin``, and the index of this end in the place of each side. It
        is None if the places differ in another way, or if a side does not mark just one place.
        """
        answers = self.names.in_order(group.said)
        targets = [answer.targets[0] for answer in answers if len(answer.targets) == 1]
        if len(targets) != len(answers) or any(target.char_start is not None for target in targets):
            return None
        firsts = [self.order(target.first or "") for target in targets]
        lasts = [self.order(target.last or "") for target in targets]
        known_firsts = [index for index in firsts if index is not None]
        known_lasts = [index for index in lasts if index is not None]
        if len(known_firsts) + len(known_lasts) < 2 * len(targets):  # an end is not known
            return None
        if max(known_firsts) > min(known_lasts):  # no span is in all places
            return None
        if len(set(known_firsts)) == 1:
            return "end", known_lasts
        if len(set(known_lasts)) == 1:
            return "begin", known_firsts
        return None

    def _answers_text(self, answers: Iterable[SideAnswer], *, omit_verdict: bool) -> str:
        """Return each side's answer: ``ann present · bob absent``, ``ann #3 · bob none``."""
        return " · ".join(
            f"{self.names.display_name(side.annotator, 16)} "
            f"{self._short_answer(side, omit_verdict=omit_verdict)}"
            for side in self.names.in_order(answers)
        )

    def _short_answer(self, side: SideAnswer, *, omit_verdict: bool) -> str:
        """Return the verdict of a side; with ``omit_verdict`` its span ranges instead."""
        if omit_verdict:
            return self._ranges_text(side.targets) if side.targets else "none"
        return side.value.value if side.value is not None else "open"

    def _decision_text(self, decisions: Sequence[Decision]) -> str:
        """Return the outcome and its span ranges."""
        parts = [outcome(decisions, self.names)]
        targets = targets_taken(decisions)
        if targets:
            parts.append(self._ranges_text(targets))
        return " · ".join(parts)


def is_by_one_side(verdict: GoldVerdict) -> bool:
    """Return whether only one side has given a verdict."""
    return verdict.source is Resolution.SINGLE and any(verdict.sides.values())


def _subject_id(subject: RowSubject) -> str:
    """Return the id of a subject's row in the queue: of the dispute, or of the agreed mode."""
    return subject.id if isinstance(subject, Dispute) else subject.mode


def _single_decision(subject: RowSubject) -> Decision | None:
    """Return the decision if a row consists of a decision on one item, or None."""
    if isinstance(subject, GoldVerdict) or len(subject.decisions) != 1:
        return None
    return subject.decisions[0] if subject.decisions[0].item == subject.id else None


def _has_item(group: ConflictGroup, item: str) -> bool:
    return any(conflict.id == item for conflict in group.conflicts)


def _chosen_sides(decisions: Sequence[Decision]) -> set[str]:
    """Return the names of the sides (annotators) whose answer the adjudicator took.

    If the adjudicator took a span range, the sides of the ranges that were dropped do not count.
    """
    without_dropped_ranges = [
        decision
        for decision in decisions
        if decision.is_verdict or decision.value is VerdictValue.PRESENT
    ]
    return {name for decision in without_dropped_ranges or decisions for name in decision.sides}


def mode_code_and_name(taxonomy: Taxonomy, slug: str) -> tuple[str, str]:
    """Return the code and name of a mode; for an unknown mode ``?`` and the slug.

    Args:
        taxonomy: The taxonomy.
        slug: The slug of the mode.
    """
    mode = next((mode for mode in taxonomy.modes if mode.slug == slug), None)
    if mode is None:
        return "?", one_line(slug)
    return one_line(mode.code, MOST_CODE_CHARS), one_line(mode.name)


def outcome(decisions: Sequence[Decision], names: SideNames) -> str:
    """Return a short text of the decision of a row.

    Args:
        decisions: The decision on a verdict, or the decisions on the span ranges of a mode.
        names: The names of the sides on screen.

    Returns:
        ``absent``, ``present, as ann``, ``place taken, as ann``, ``2 of 3 places taken, moved``.
    """
    return f"{decided_words(decisions)}{source_text(decisions, names)}"


def source_text(decisions: Sequence[Decision], names: SideNames) -> str:
    """Return the end of a text about a decision, which names the sides whose answer it adopts.

    Args:
        decisions: The decision on a verdict, or the decisions on the span ranges of a mode.
        names: The names of the sides on screen.

    Returns:
        ``, as ann``, ``, as ann and bob`` or ``, as 3 sides``; ``, moved`` if the adjudicator moved
        a range that a side marked; empty if it is the adjudicator's own answer.
    """
    sides = _chosen_sides(decisions)
    if not sides:
        return ""
    marked = [target for decision in decisions for side in decision.said for target in side.targets]
    firsts = {target.first for target in marked}
    lasts = {target.last for target in marked}
    # A joined range is not moved: its first and last span are those of ranges that sides marked.
    if any(
        taken.first not in firsts or taken.last not in lasts for taken in targets_taken(decisions)
    ):
        return ", moved"
    if len(sides) > MOST_NAMED_SIDES:
        return f", as {len(sides)} sides"
    return f", as {joined(names.listed(sorted(sides)))}"


# The sides of an item


def _changed_remarks(
    earlier: SideAnswer | None, side: SideAnswer, index_of: IndexOf, *, omit_verdict: bool
) -> list[str]:
    """Return a remark with a side's answer at the time of the decision, or [] if that was the same.

    ``earlier`` is None if the side had no answer then. With ``omit_verdict`` only the places of
    the answers are compared and shown, as in a conflict about places.
    """
    if earlier is None:
        return ["! answered later"]
    same_value = omit_verdict or earlier.value == side.value
    if same_value and set(earlier.targets) == set(side.targets):
        return []
    return [f"! then {_answer_text(earlier, index_of, omit_verdict=omit_verdict)}"]


def _answer_text(side: SideAnswer, index_of: IndexOf, *, omit_verdict: bool) -> str:
    """Return the verdict of a side and its first span ranges.

    With ``omit_verdict`` the text is ``marked`` or ``no place`` instead of the verdict.
    """
    if omit_verdict:
        text = "marked" if side.targets else "no place"
    else:
        text = side.value.value if side.value is not None else "open"
    ranges = [place_text(target, index_of, quoted=False) for target in side.targets[:2]]
    ellipsis = " …" if len(side.targets) > len(ranges) else ""
    return f"{text} {', '.join(ranges)}{ellipsis}" if ranges else text


def judge_views(answers: Sequence[JudgeAnswer], index_of: IndexOf) -> list[SideView]:
    """Return the answers of judges and agents as sides without a number, which no key chooses.

    Args:
        answers: The answers of the judges and agents on a mode.
        index_of: Returns the index of a span by its key.
    """
    return [
        SideView(
            number=None,
            name=answer.judge.removeprefix(JUDGE_PREFIX),
            verdict=_judge_verdict(answer),
            places=tuple(_side_place(label.target, [label], index_of) for label in answer.labels),
            remark=annotator_kind(answer.judge).value,
            is_judge=True,
        )
        for answer in answers
    ]


def _judge_verdict(answer: JudgeAnswer) -> str:
    if answer.labels and annotator_kind(answer.judge) is AnnotatorKind.JUDGE:
        return "suggests it"
    return answer.value.value if answer.value is not None else "cannot tell"


def _verdict_text(side: SideAnswer, group: ConflictGroup) -> str:
    """Return the verdict of a side; an empty text if it marked some of the disputed ranges."""
    if group.kind is ConflictKind.VERDICT:
        return side.value.value if side.value is not None else "open"
    if side.targets:
        return ""
    several = len(group.conflicts) > 1
    return "marked none of these places" if several else "did not mark this place"


def _side_place(target: Target, labels: Sequence[Label], index_of: IndexOf) -> SidePlace:
    """Return a target for the panel of the sides, with the note and facts of its label, if any."""
    label = next((label for label in labels if label.target == target), None)
    facts = []
    if label is not None:
        if label.severity is not None:
            facts.append(label.severity.value)
        if label.confidence is not None:
            facts.append(f"sure {label.confidence:.0%}")
        if label.saw_suggestions:
            facts.append("saw suggestions")
    return SidePlace(
        target,
        place_text(target, index_of, quoted=False),
        quote=target.quote or "",
        note=label.note if label is not None else "",
        extra=" · ".join(facts),
    )


# The queue


@dataclass(frozen=True, slots=True)
class QueueContents:
    """The queue of an adjudicator, read from the workspace.

    Attributes:
        annotator: The adjudicator.
        entries: The traces in the order of the queue.
        items: The items of each trace that the adjudicator may see, by trace id.
        finished: The number of finished traces, by annotator.
        loader: Reads the traces; None if the queue was not read.
        study: The protocol; None if there is none.
        problem: The reason why nothing could be read; None if the queue was read.
        unordered: The number of labels whose position is unknown. Because of them a conflict may be
            shown where there is none.
    """

    annotator: str = ""
    entries: tuple[QueueEntry, ...] = ()
    items: Mapping[str, TraceItems] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    loader: TraceLoader | None = None
    study: Study | None = None
    problem: str | None = None
    unordered: int = 0

    @property
    def may_retest(self) -> bool:
        """True if the study may ask the annotator to label finished traces again (retests).

        Messages about hidden labels then have one wording for all traces, so that they do not
        reveal which traces are retests.
        """
        study = self.study
        return study is not None and study.retests > 0 and self.annotator in study.annotators


def read_queue(opened: OpenWorkspace, traces: Sequence[Trace]) -> QueueContents:
    """Read the whole queue. This is slow if many traces have to be read: call it in a worker.

    First the workspace records that the adjudicator adjudicates the traces that the study assigns
    to them. While the server is away, the queue is read from the local copy.

    Args:
        opened: The open workspace.
        traces: The traces that are open in the app.

    Returns:
        The queue, or its ``problem`` if it could not be read.
    """
    workspace = opened.workspace
    try:
        with workspace.reading_local_copy():
            contents = _read_contents(opened, traces)
            if not workspace.away:
                workspace.read_ahead(everybody=True)
    except MastError as error:
        return QueueContents(problem=str(error))
    return contents


def _read_contents(opened: OpenWorkspace, traces: Sequence[Trace]) -> QueueContents:
    """Read the entries of the queue, and the items of each trace that may be seen.

    Before that, begin to adjudicate the traces that the study assigns to this adjudicator.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    annotator = opened.annotator
    loader = TraceLoader(workspace, traces, opened.masks)
    study = workspace.study(taxonomy.ref)
    take_on_as_study_says(workspace, taxonomy, annotator)
    entries = queue(workspace, taxonomy, annotator, order_of=loader.orders)
    items = {
        entry.trace_id: TraceItems(
            trace_id=entry.trace_id,
            sides=entry.trace_sides.sides,
            gold=entry.gold,
            decisions=entry.trace_sides.decisions,
            taxonomy=taxonomy,
            order=loader.known_order(entry.trace_id),
            letters=letters_of(entry.trace_sides, study),
        )
        for entry in entries
        if entry.trace_sides is not None and entry.gold is not None
    }
    finished_counts = {
        progress.name: progress.finished for progress in status(workspace, taxonomy).annotators
    }
    unordered_count = sum(
        len(entry.trace_sides.labels_of_unknown_order(taxonomy, loader.orders(entry.trace_id)))
        for entry in entries
        if entry.trace_sides is not None
    )
    return QueueContents(
        annotator=annotator,
        entries=entries,
        items=items,
        finished=finished_counts,
        loader=loader,
        study=study,
        unordered=unordered_count,
    )


def letters_of(trace_work: TraceSides, study: Study | None) -> Mapping[str, str]:
    """Return the letters that replace the names of sides while names are hidden, by name.

    A side has a letter if it has answers, or had some when a conflict was decided.

    Args:
        trace_work: The sides and decisions of the trace.
        study: The study, whose seed orders the letters; None for seed 0.
    """
    names = {side.annotator for side in trace_work.sides}
    names |= {side.annotator for decision in trace_work.decisions for side in decision.said}
    return letters(trace_work.trace_id, names, study.seed if study is not None else 0)
