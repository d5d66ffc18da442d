"""The cases of traces to adjudicate, and their texts on screen."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Final

from mast_tui.adjudication import (
    AdjudicationCase,
    ConflictGroup,
    JudgeAnswer,
    QueueEntry,
    TraceSides,
    case_id,
    cases_of,
    conflict_groups,
    decided_words,
    first_place,
    letters,
    merged_sides,
    queue,
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
    Resolution,
    SideAnswer,
)
from mast_tui.gold.overlaps import in_reading_order, index_range
from mast_tui.labels import (
    CONFIDENCES,
    JUDGE_PREFIX,
    Label,
    Target,
    TraceWork,
    VerdictValue,
    annotator_kind,
    is_judge,
)
from mast_tui.safe_text import one_line
from mast_tui.session import outside_work_text, status
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
from mast_tui.ui.wording import IndexOf, joined_names, place_text, places_text

MOST_CODE_CHARS: Final = 8

MOST_NAMED_SIDES: Final = 2
"""The most sides that a decision names. Of more sides it shows the number."""

MOST_RANGES: Final = 3
"""The most span ranges of a side named in one line."""


@dataclass(frozen=True, slots=True)
class SideNames:
    """The names of the sides on screen, or the letters in their place.

    Attributes:
        letters: The letter of each name, in the order of the sides; empty for the usual order.
        hidden: Whether to show the letters instead of the names.
    """

    letters: Mapping[str, str] = field(default_factory=dict)
    hidden: bool = False

    def display_name(self, name: str, limit: int | None = None) -> str:
        """Return the letter or name of a side, safe to display.

        Args:
            name: The name of the side.
            limit: The most characters; None for all.
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
class CaseView:
    """The contents of the panes for one case.

    Attributes:
        title: The mode, and the question or the state of the case.
        sides: The answers of the sides.
        target: The target to show first, or None.
        note: The text on the decision and its targets; empty for an open case.
    """

    title: str
    sides: tuple[SideView, ...]
    target: Target | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class DifferingEnd:
    """The end (first or last span) that differs between the places of the sides.

    Attributes:
        verb: ``begin`` or ``end``.
        indices: The index of this end in the place of each side.
    """

    verb: str
    indices: Sequence[int]


@dataclass(frozen=True)
class TraceCases:
    """The cases of a trace that two or more annotators have finished.

    Verdicts come before span ranges, both in the order of the taxonomy's modes. A decided case
    keeps its position. Cases and counts are computed once, when first needed.

    Some attributes need an explanation:

    - ``order`` returns the index of a span by its key.
    - ``letters`` replace the names of the sides while ``names_hidden`` is set.
    - ``keeps_letter_order`` keeps the order of the letters while names are shown, so that a key
      takes the same side.
    - ``only_mode`` limits rows and counts to one mode.
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

    def has_same_answers(self, other: TraceCases) -> bool:
        """Return whether sides, gold and decisions equal those of other cases."""
        return (
            list(self.sides) == list(other.sides)
            and self.gold == other.gold
            and list(self.decisions) == list(other.decisions)
        )

    def presence_key(self, case_id: str) -> str:
        """Return a key under which adjudicators of a case see each other.

        It is a hash over the ids of the labels, which only those who may see them can compute.
        """
        labels = sorted(label.id for side in self.sides for label in side.labels.values())
        document = json.dumps([self.taxonomy.ref, self.trace_id, case_id, labels])
        return hashlib.sha256(document.encode()).hexdigest()

    @cached_property
    def disputed(self) -> Sequence[AdjudicationCase]:
        """The open and decided cases of all modes."""
        return cases_of(self.gold.conflicts, self.decisions)

    @cached_property
    def _cases(self) -> Mapping[str, AdjudicationCase]:
        """All cases by id, in the order of the rows."""
        disputed_modes = {case.mode for case in self.disputed}
        agreed = [
            AdjudicationCase(verdict.mode, verdict.mode, is_verdict=True, agreed=verdict)
            for verdict in self.gold.verdicts
            if verdict.value is not None and verdict.mode not in disputed_modes
        ]
        return {case.id: case for case in sorted((*self.disputed, *agreed), key=self._sort_key)}

    def _sort_key(self, case: AdjudicationCase) -> tuple[bool, int, bool, int, str]:
        """Return a sort key for the rows of the cases.

        - Verdicts come before span ranges.
        - Modes are in the order of the taxonomy, unknown modes last.
        - The disputed ranges of a mode come before decisions on a single range.
        - Single ranges are in the order of their first span.
        """
        slugs = [mode.slug for mode in self.taxonomy.modes]
        mode_index = slugs.index(case.mode) if case.mode in slugs else len(slugs)
        decision = case.decisions[0] if len(case.decisions) == 1 else None
        is_single = decision is not None and decision.item == case.id
        target = first_place(decision) if decision is not None and is_single else None
        first_index = self.order(target.first) if target is not None and target.first else None
        if first_index is None:
            first_index = -1
        return not case.is_verdict, mode_index, is_single, first_index, case.id

    def find(self, case_id: str | None) -> AdjudicationCase | None:
        """Return the case with an id, or None."""
        return None if case_id is None else self._cases.get(case_id)

    def case_id_of(self, item: str) -> str:
        """Return the id of the case in which an item is decided.

        An item is a verdict or a span range. Without such a case, return the id of the item.
        """
        decision = next((d for d in self.decisions if d.item == item), None)
        if decision is not None:
            return case_id(decision)
        group_ids = (
            group.id
            for group in conflict_groups(self.gold.conflicts)
            if any(conflict.id == item for conflict in group.conflicts)
        )
        return next(group_ids, item)

    def question(self, case: AdjudicationCase) -> ConflictGroup:
        """Return the conflicts for the next decision on a case."""
        return case.in_question(self.sides, self.order)

    def has_changed(self, case: AdjudicationCase) -> bool:
        """Return whether a side has changed its answer since a case was decided."""
        return case.has_changed(self.sides, self.order)

    def side_name(self, group: ConflictGroup, number: int) -> str | None:
        """Return the name of the side with a number, or None.

        Args:
            group: The conflicts.
            number: The number of the side, from 1.
        """
        answers = self.names.in_order(group.answers)
        return answers[number - 1].annotator if 1 <= number <= len(answers) else None

    @property
    def _counted_cases(self) -> list[AdjudicationCase]:
        return [case for case in self.disputed if self.only_mode in (None, case.mode)]

    @cached_property
    def open_count(self) -> int:
        """The number of open conflicts."""
        return sum(case.is_open for case in self._counted_cases)

    @cached_property
    def decided_count(self) -> int:
        """The number of decided conflicts."""
        return sum(case.resolves_conflict and not case.is_open for case in self._counted_cases)

    @cached_property
    def changed_count(self) -> int:
        """The number of decided conflicts with a changed answer."""
        return sum(self.has_changed(case) for case in self._counted_cases)

    def view(self, case: AdjudicationCase) -> CaseView:
        if case.agreed is not None:
            return self._agreed_view(case, case.agreed)
        return self._open_view(case) if case.is_open else self._decided_view(case)

    def _mode_title(self, case: AdjudicationCase) -> str:
        return " ".join(mode_code_and_name(self.taxonomy, case.mode))

    def _agreed_view(self, case: AdjudicationCase, verdict: GoldVerdict) -> CaseView:
        group = self.question(case)
        state = "only one side has answered" if is_by_one_side(verdict) else "agreed"
        views = self._side_views(group, ())
        return CaseView(f"{self._mode_title(case)} · {state}", tuple(views), group.first_place)

    def _open_view(self, case: AdjudicationCase) -> CaseView:
        """Return the contents of the panes for an open case, with its question and decided
        places.
        """
        group = self.question(case)
        title = f"{self._mode_title(case)} · {self._question_text(group)}"
        views = (*self._side_views(group, ()), *self._resolved_views(case))
        return CaseView(title, views, group.first_place)

    def _decided_view(self, case: AdjudicationCase) -> CaseView:
        """Return the contents of the panes for a decided case, with its decision and reasons."""
        group = self.question(case)
        deciders = dict.fromkeys(one_line(decision.decided_by) for decision in case.decisions)
        verb = "decided" if case.is_verdict else "places decided"
        question = "still right? " if self.has_changed(case) else ""
        title = f"{self._mode_title(case)} · {question}{verb} by {', '.join(deciders)}"
        reasons = dict.fromkeys(decision.reason for decision in case.decisions if decision.reason)
        reason_views = [
            SideView(number=None, name="reason:", verdict="", note=reason) for reason in reasons
        ]
        targets = in_reading_order(targets_taken(case.decisions), lambda target: target, self.order)
        return CaseView(
            title,
            (
                *self._side_views(group, case.decisions),
                *self._resolved_views(case),
                *reason_views,
            ),
            target=targets[0] if targets else group.first_place,
            note=self._decision_text(case.decisions),
        )

    def _question_text(self, group: ConflictGroup) -> str:
        """Return the question in the title of an open case."""
        if group.kind is ConflictKind.VERDICT:
            return "does it occur?"
        differing_end = self._differing_end(group)
        if differing_end is not None:
            return f"where does it {differing_end.verb}?"
        if len(group.conflicts) > 1 or group.first_place is None:
            return "where is it?"
        return f"is it at {place_text(group.first_place, self.order, quoted=False)}?"

    def _resolved_views(self, case: AdjudicationCase) -> list[SideView]:
        """Return the gold, dropped and formerly taken places of a mode; none for a verdict.

        The places ``taken before`` are disputed again, because a side has changed its answer.
        """
        if case.is_verdict:
            return []
        outdated = case.outdated_decisions(self.sides, self.order)
        valid = [decision for decision in case.decisions if decision not in outdated]
        targets_by_title = {
            "gold so far": [
                label.target
                for label in self.gold.labels
                if label.mode == case.mode and not label.changed
            ],
            "dropped": _targets_dropped(valid),
            "taken before": targets_taken(outdated),
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
        return places_text(ordered_targets, self.order, MOST_RANGES)

    def _side_views(self, group: ConflictGroup, decisions: Sequence[Decision]) -> list[SideView]:
        """Return the sides with their keys' numbers and their marked targets.

        A remark shows an answer that has changed since the decision. Sides without an answer now
        come last, without a number.
        """
        omit_verdict = group.kind is ConflictKind.PLACE
        earlier_answers = {answer.annotator: answer for answer in merged_sides(decisions)}
        chosen_sides = _chosen_sides(decisions)
        answers = self.names.in_order(group.answers)
        who_saw = {side.annotator for side in self.sides if side.saw_judge(group.mode)}
        views = []
        for number, answer in enumerate(answers, start=1):
            remarks = ["saw suggestions"] if answer.annotator in who_saw else []
            remarks += ["✓ taken"] if answer.annotator in chosen_sides else []
            if earlier_answers:
                earlier_answer = earlier_answers.get(answer.annotator)
                remarks += _changed_remarks(
                    earlier_answer, answer, self.order, omit_verdict=omit_verdict
                )
            views.append(self._side_view(number, answer, group, " · ".join(remarks)))
        current_names = {answer.annotator for answer in answers}
        for name, answer in earlier_answers.items():
            if name not in current_names:
                remark = f"! before: {_answer_text(answer, self.order, omit_verdict=omit_verdict)}"
                views.append(
                    SideView(None, self.names.display_name(name, 32), "open", remark=remark)
                )
        return views

    def _side_view(
        self, number: int, answer: SideAnswer, group: ConflictGroup, remark: str
    ) -> SideView:
        """Return a side with its present answer, and its notes on the disputed spans."""
        labels = [label for label in group.labels if label.annotator == answer.annotator]
        return SideView(
            number,
            self.names.display_name(answer.annotator, 32),
            _verdict_text(answer, group),
            places=tuple(_side_place(target, labels, self.order) for target in answer.targets),
            remark=remark,
            note=self._span_notes(answer.annotator, group),
        )

    def _span_notes(self, annotator: str, group: ConflictGroup) -> str:
        """Return a side's notes on the disputed spans: ``#7: it is another call``."""
        notes = next((side.notes for side in self.sides if side.annotator == annotator), {})
        ranges = [
            index_range(target, self.order) for answer in group.answers for target in answer.targets
        ]
        indexed_notes = [(self.order(key), note) for key, note in notes.items()]
        return " · ".join(
            f"#{index + 1}: {note}"
            for index, note in sorted((i, note) for i, note in indexed_notes if i is not None)
            if any(indices is not None and index in indices for indices in ranges)
        )

    @cached_property
    def rows(self) -> Sequence[QueueRow]:
        """The rows of the cases in the queue."""
        return [
            self._row_of(case)
            for case in self._cases.values()
            if self.only_mode in (None, case.mode)
        ]

    def _row_of(self, case: AdjudicationCase) -> QueueRow:
        new_row = partial(self._new_row, case)
        if case.agreed is not None:
            sign = ONE_SIDE if is_by_one_side(case.agreed) else ""
            return new_row(RowState.AGREED, self._agreed_text(case.agreed), sign=sign)
        if case.is_open:
            group = self.question(case)
            answers_text = self._answers_text(group.answers, omit_verdict=not case.is_verdict)
            sign = "" if case.is_verdict else PLACES_DIFFER
            return new_row(RowState.OPEN, self._difference_text(group), answers_text, sign=sign)
        state = RowState.CHANGED if self.has_changed(case) else RowState.DECIDED
        earlier_answers = merged_sides(case.decisions)
        answers_text = self._answers_text(earlier_answers, omit_verdict=not case.is_verdict)
        return new_row(state, self._outcome_in_row(case), answers_text)

    def _new_row(
        self,
        case: AdjudicationCase,
        state: RowState,
        summary: str,
        sides: str = "",
        *,
        sign: str = "",
    ) -> QueueRow:
        code, name = mode_code_and_name(self.taxonomy, case.mode)
        return QueueRow(
            trace_id=self.trace_id,
            case_id=case.id,
            state=state,
            code=code,
            name=name,
            summary=summary,
            sides=sides,
            sign=sign,
        )

    def _agreed_text(self, verdict: GoldVerdict) -> str:
        """Return an agreed verdict: ``absent``, or ``present (only ann)`` from one side."""
        text = _value_text(verdict.value)
        if is_by_one_side(verdict):
            names = (name for name, value in verdict.sides.items() if value)
            text += f" (only {self.names.display_name(next(names))})"
        return text

    def _outcome_in_row(self, case: AdjudicationCase) -> str:
        """Return the decision in short form: ``absent``, ``at #3, as ann``."""
        targets = targets_taken(case.decisions)
        if case.is_verdict or not targets:
            return outcome(case.decisions, self.names)
        return f"at {self._ranges_text(targets)}{source_text(case.decisions, self.names)}"

    def _difference_text(self, group: ConflictGroup) -> str:
        """Return how the sides of open conflicts differ.

        Examples are ``present / absent``, ``only ann: #3``, ``ann ends at #3, bob at #5`` and
        ``at #3 / #9``.
        """
        if group.kind is ConflictKind.VERDICT:
            values = dict.fromkeys(answer.value for answer in self.names.in_order(group.answers))
            return " / ".join(value.value for value in values if value)
        marking_sides = [side for side in group.answers if side.targets]
        if len(marking_sides) == 1:
            (side,) = marking_sides
            name = self.names.display_name(side.annotator, 16)
            return f"only {name}: {self._ranges_text(side.targets)}"
        answers = self.names.in_order(group.answers)
        differing_end = self._differing_end(group)
        if differing_end is not None:
            names = [self.names.display_name(answer.annotator, 16) for answer in answers]
            names[0] += f" {differing_end.verb}s"
            parts = zip(names, differing_end.indices, strict=True)
            return ", ".join(f"{name} at #{index + 1}" for name, index in parts)
        distinct_ranges = dict.fromkeys(
            self._ranges_text(side.targets) if side.targets else "none" for side in answers
        )
        return f"at {' / '.join(distinct_ranges)}"

    def _differing_end(self, group: ConflictGroup) -> DifferingEnd | None:
        """Return the only end at which the places of the sides differ, or None.

        Return None also if a side marks a quote, a place of unknown order, or several places.
        """
        answers = self.names.in_order(group.answers)
        ranges = [
            index_range(answer.targets[0], self.order)
            for answer in answers
            if len(answer.targets) == 1 and answer.targets[0].char_start is None
        ]
        known_ranges = [indices for indices in ranges if indices is not None]
        if len(known_ranges) < len(answers):
            return None
        firsts = [indices.start for indices in known_ranges]
        lasts = [indices.stop - 1 for indices in known_ranges]
        if max(firsts) > min(lasts):  # no span is in all places
            return None
        if len(set(firsts)) == 1:
            return DifferingEnd("end", lasts)
        if len(set(lasts)) == 1:
            return DifferingEnd("begin", firsts)
        return None

    def _answers_text(self, answers: Iterable[SideAnswer], *, omit_verdict: bool) -> str:
        """Return the answers of the sides: ``ann present · bob absent``, ``ann #3 · bob none``."""
        return " · ".join(
            f"{self.names.display_name(side.annotator, 16)} "
            f"{self._short_answer(side, omit_verdict=omit_verdict)}"
            for side in self.names.in_order(answers)
        )

    def _short_answer(self, side: SideAnswer, *, omit_verdict: bool) -> str:
        """Return the verdict of a side; with ``omit_verdict`` its places instead."""
        if omit_verdict:
            return self._ranges_text(side.targets) if side.targets else "none"
        return _value_text(side.value)

    def _decision_text(self, decisions: Sequence[Decision]) -> str:
        """Return the outcome of decisions with the places taken."""
        parts = [outcome(decisions, self.names)]
        targets = targets_taken(decisions)
        if targets:
            parts.append(self._ranges_text(targets))
        return " · ".join(parts)


def is_by_one_side(verdict: GoldVerdict) -> bool:
    """Return whether a verdict comes from one side only."""
    return verdict.source is Resolution.SINGLE and any(verdict.sides.values())


def _value_text(value: VerdictValue | None) -> str:
    return "open" if value is None else value.value


def _targets_dropped(decisions: Iterable[Decision]) -> list[Target]:
    dropping = (decision for decision in decisions if decision.value is not VerdictValue.PRESENT)
    answers = (answer for decision in dropping for answer in decision.answers)
    return list(dict.fromkeys(target for answer in answers for target in answer.targets))


def _chosen_sides(decisions: Sequence[Decision]) -> set[str]:
    """Return the names of the sides with the answer that the adjudicator took.

    If a span range was taken, the sides of dropped ranges do not count.
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
    """Return a short text of the decisions of a row.

    Args:
        decisions: The decision on a verdict, or the decisions on the span ranges of a mode.
        names: The names of the sides on screen.

    Returns:
        ``absent``, ``present, as ann``, ``place taken, as ann``, ``2 of 3 places taken, moved``.
    """
    return f"{decided_words(decisions)}{source_text(decisions, names)}"


def source_text(decisions: Sequence[Decision], names: SideNames) -> str:
    """Return the end of a text about a decision: the sides with the adopted answer.

    Args:
        decisions: The decision on a verdict, or the decisions on the span ranges of a mode.
        names: The names of the sides on screen.

    Returns:
        ``, as ann``, ``, as ann and bob`` or ``, as 3 sides``; ``, moved`` if the adjudicator moved
        a range; empty for the adjudicator's own answer.
    """
    sides = _chosen_sides(decisions)
    if not sides:
        return ""
    marked = [
        target for decision in decisions for side in decision.answers for target in side.targets
    ]
    firsts = {target.first for target in marked}
    lasts = {target.last for target in marked}
    # A joined range is not moved, because sides marked its first and its last span.
    if any(
        taken.first not in firsts or taken.last not in lasts for taken in targets_taken(decisions)
    ):
        return ", moved"
    if len(sides) > MOST_NAMED_SIDES:
        return f", as {len(sides)} sides"
    return f", as {joined_names(names.listed(sorted(sides)))}"


def _changed_remarks(
    earlier: SideAnswer | None, side: SideAnswer, index_of: IndexOf, *, omit_verdict: bool
) -> list[str]:
    """Return a remark on a side's answer at the time of the decision, if that has changed.

    ``earlier`` is None if there was no answer then. With ``omit_verdict`` only places are compared
    and shown.
    """
    if earlier is None:
        return ["! answered later"]
    if (omit_verdict or earlier.value == side.value) and set(earlier.targets) == set(side.targets):
        return []
    return [f"! before: {_answer_text(earlier, index_of, omit_verdict=omit_verdict)}"]


def _answer_text(side: SideAnswer, index_of: IndexOf, *, omit_verdict: bool) -> str:
    """Return the verdict of a side and its first span ranges.

    With ``omit_verdict``, ``marked`` or ``no place`` replaces the verdict.
    """
    text = _value_text(side.value)
    if omit_verdict:
        text = "marked" if side.targets else "no place"
    return f"{text} {places_text(side.targets, index_of, most=2)}".rstrip()


def judge_views(answers: Sequence[JudgeAnswer], index_of: IndexOf) -> list[SideView]:
    """Return the answers of judges and agents as sides without a number.

    No key chooses them.

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
    if answer.labels and is_judge(answer.judge):
        return "suggests it"
    return answer.value.value if answer.value is not None else "cannot tell"


def _verdict_text(side: SideAnswer, group: ConflictGroup) -> str:
    """Return the verdict of a side; empty if the side marked disputed ranges."""
    if group.kind is ConflictKind.VERDICT:
        return _value_text(side.value)
    if side.targets:
        return ""
    return "marked none of these places" if len(group.conflicts) > 1 else "did not mark this place"


def _side_place(target: Target, labels: Sequence[Label], index_of: IndexOf) -> SidePlace:
    """Return a target for the panel of the sides, with the note and facts of its label."""
    label = next((label for label in labels if label.target == target), None)
    facts = []
    if label is not None:
        if label.severity is not None:
            facts.append(label.severity.value)
        if label.confidence is not None:
            facts.append(CONFIDENCES.get(label.confidence, f"sure {label.confidence:.0%}"))
    return SidePlace(
        target,
        place_text(target, index_of, quoted=False),
        quote=target.quote or "",
        note=label.note if label is not None else "",
        extra=" · ".join(facts),
    )


@dataclass(frozen=True, slots=True)
class QueueContents:
    """The queue of an adjudicator, as read from the workspace.

    Attributes:
        annotator: The adjudicator.
        entries: The traces in the order of the queue.
        cases: The cases of each trace that the adjudicator may see, by trace id.
        finished: The number of finished traces, by annotator.
        outside_text: Sentences on finished traces that do not count in the study; empty for none.
        loader: The loader of the traces; None if the queue was not read.
        study: The protocol, or None.
        problem: The error; None if the queue was read.
        unordered: The number of labels with an unknown position. They may cause false conflicts.
    """

    annotator: str = ""
    entries: tuple[QueueEntry, ...] = ()
    cases: Mapping[str, TraceCases] = field(default_factory=dict)
    finished: Mapping[str, int] = field(default_factory=dict)
    outside_text: str = ""
    loader: TraceLoader | None = None
    study: Study | None = None
    problem: str | None = None
    unordered: int = 0

    @property
    def may_retest(self) -> bool:
        """True if the study may ask the annotator to label finished traces again (retests).

        If so, messages about hidden labels have one wording, which does not reveal the retests.
        """
        study = self.study
        return study is not None and study.retests > 0 and self.annotator in study.annotators


def read_queue(opened: OpenWorkspace, traces: Sequence[Trace]) -> QueueContents:
    """Read the whole queue. This may be slow, so call it in a worker.

    The workspace records first that the adjudicator takes on the traces that the study assigns.
    While the server is away, the local copy is read.

    Args:
        opened: The open workspace.
        traces: The open traces of the app.

    Returns:
        The queue, or an object with the ``problem``.
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
    """Read the entries of the queue, and the cases of each visible trace.

    First begin to adjudicate the traces that the study assigns.
    """
    workspace = opened.workspace
    taxonomy = opened.taxonomy
    annotator = opened.annotator
    loader = TraceLoader(workspace, traces, opened.masks)
    study = workspace.study(taxonomy.ref)
    take_on_as_study_says(workspace, taxonomy, annotator)
    cases = {}
    unordered_count = 0
    entries = queue(workspace, taxonomy, annotator, order_of=loader.orders)
    for entry in entries:
        trace_sides = entry.trace_sides
        if trace_sides is None or entry.gold is None:
            continue
        cases[entry.trace_id] = TraceCases(
            trace_id=entry.trace_id,
            sides=trace_sides.sides,
            gold=entry.gold,
            decisions=trace_sides.decisions,
            taxonomy=taxonomy,
            order=loader.known_order(entry.trace_id),
            letters=letters_of(trace_sides, study),
        )
        order = loader.orders(entry.trace_id)
        unordered_count += len(trace_sides.labels_of_unknown_order(taxonomy, order))
    return QueueContents(
        annotator=annotator,
        entries=entries,
        cases=cases,
        finished={row.name: row.finished for row in status(workspace, taxonomy).annotators},
        outside_text=outside_work_text(workspace, study),
        loader=loader,
        study=study,
        unordered=unordered_count,
    )


def letters_of(trace_sides: TraceSides, study: Study | None) -> Mapping[str, str]:
    """Return the letters for the sides while names are hidden, by name.

    A side has a letter if it has an answer, or had one when a conflict was decided.

    Args:
        trace_sides: The sides and decisions of the trace.
        study: The study, whose seed decides the order; None for seed 0.
    """
    names = {side.annotator for side in trace_sides.sides}
    names |= {side.annotator for decision in trace_sides.decisions for side in decision.answers}
    return letters(trace_sides.trace_id, names, study.seed if study is not None else 0)
