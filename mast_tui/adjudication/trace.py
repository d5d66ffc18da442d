"""One adjudicator's decisions on one trace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from msgspec.structs import replace

from mast_tui.adjudication.conflicts import (
    ABSENT_CHOICE,
    Choice,
    choice_of_all_places,
    current_answers,
)
from mast_tui.adjudication.queue import Access, access_to, next_pass_number
from mast_tui.adjudication.sides import read_sides
from mast_tui.errors import AdjudicationError
from mast_tui.gold import Conflict, ConflictKind, Decision, Order, SideAnswer, answers_on, no_order
from mast_tui.gold.overlaps import item_id
from mast_tui.gold.resolve import answers_at
from mast_tui.grouping import values_by_key
from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Label,
    Pass,
    PassKind,
    Target,
    VerdictValue,
    is_judge,
)
from mast_tui.session.undo_history import UndoHistory
from mast_tui.session.visibility import has_revealed, record_reveal
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace.events.model import Event, NewEvent, now
from mast_tui.workspace.events.types import Decided, Fact, PassStarted, Revealed, span_keys
from mast_tui.workspace.queries import OfWork
from mast_tui.workspace.records import SpanIndex
from mast_tui.workspace.store import Workspace


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The answer of a judge or an agent on a mode.

    The verdict is None if the judge looked for the mode and left it open.
    """

    judge: str
    value: VerdictValue | None
    labels: tuple[Label, ...] = ()


_REFUSALS: Final = {
    Access.UNFINISHED: (
        "{adjudicator} has not finished {trace_id}: finish it first, then adjudicate"
    ),
    Access.HIDDEN: (
        "{adjudicator} has not labelled {trace_id}: finish it first, or take it on as adjudicator; "
        "then it can no longer be labelled independently"
    ),
    Access.AGAIN: (
        "{adjudicator} is to label {trace_id} again: do that first, or take it on as adjudicator, "
        "which cancels the retest"
    ),
}
"""The reason why a person may not adjudicate a trace, by the person's access to it."""

_JUDGE_PREFIX = "judge:"
"""The prefix, before a mode's slug, of the name of a reveal of judges' answers."""


class Adjudication:
    """The sides of one trace, its open conflicts, and the decisions on it.

    ``trace_sides`` has the sides and the decisions, ``gold`` the gold with the open conflicts. Each
    decision is one transaction and is on disk when the method returns. Methods raise
    ``AdjudicationError`` or ``WorkspaceError``; then nothing has changed.
    """

    def __init__(
        self,
        workspace: Workspace,
        taxonomy: Taxonomy,
        trace_id: str,
        adjudicator: str,
        *,
        order: Order = no_order,
    ) -> None:
        """Open a trace, and record that others' answers are shown.

        Raises:
            AdjudicationError: The adjudicator may not see others' answers.
        """
        self.workspace = workspace
        self.taxonomy = taxonomy
        self.trace_id = trace_id
        self.adjudicator = adjudicator
        self._order = order
        self._indexed_keys: set[str] = set()
        """The keys of the spans with an index that this object has stored."""
        study = workspace.study(taxonomy.ref)
        self._judge_first = study is not None and study.judge_first
        passes = self._own_passes()
        refusal = _REFUSALS.get(access_to(workspace, taxonomy, adjudicator, trace_id))
        if refusal is not None:
            raise AdjudicationError(refusal.format(adjudicator=adjudicator, trace_id=trace_id))
        if not has_revealed(passes):
            # Recording reads all finished traces, which is slow, so it is done only if needed.
            record_reveal(workspace, adjudicator, taxonomy.ref, [trace_id])
        self._saw_judge = any(own_pass.judge_seen for own_pass in passes)
        # The modes with judges' answers that were shown, now or earlier.
        self._judge_shown_on = frozenset(
            event.fact.what.removeprefix(_JUDGE_PREFIX)
            for event in self._own_events()
            if isinstance(event.fact, Revealed) and event.fact.what.startswith(_JUDGE_PREFIX)
        )
        self.refresh()

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The decisions in force, the earliest first."""
        return self.trace_sides.decisions

    def refresh(self) -> None:
        """Read the answers and decisions again, after changes by others."""
        self.trace_sides = read_sides(self.workspace, self.taxonomy, self.trace_id)
        self.gold = self.trace_sides.gold(self.taxonomy, self._order)

    def decide(self, conflict: Conflict, choice: Choice, *, reason: str = "") -> Decision:
        """Decide one conflict as it was on screen.

        Args:
            conflict: The conflict.
            choice: The answer.
            reason: The reason; may be empty.
        """
        return self.decide_together([(conflict, choice)], reason=reason)[0]

    def decide_together(
        self, choices: Iterable[tuple[Conflict, Choice]], *, reason: str = ""
    ) -> tuple[Decision, ...]:
        """Decide conflicts, with the answers that were on screen, in one step that undo reverts.

        All decisions have the same time. So if another adjudicator decides the same conflicts in a
        copy of the workspace, a merge keeps all decisions of only one of them.

        Args:
            choices: The conflicts with their choices.
            reason: The reason; may be empty.

        Returns:
            A decision for each conflict.
        """
        time = now()
        decisions = tuple(
            self._new_decision(
                conflict.mode, conflict.id, choice, conflict.answers, time=time, reason=reason
            )
            for conflict, choice in choices
        )
        self._append_decisions(decisions)
        return decisions

    def decide_another_mode(self, conflicts: Sequence[Conflict], mode: str) -> tuple[Decision, ...]:
        """Decide that the places of conflicts show another mode.

        The conflicts are decided as absent. The other mode becomes present at all their places.

        Args:
            conflicts: The conflicts.
            mode: The slug of the other mode.

        Returns:
            All decisions, those on the conflicts first.

        Raises:
            AdjudicationError: A conflict is about this mode, or the mode does not exist.
        """
        if any(mode == conflict.mode for conflict in conflicts):
            raise AdjudicationError("this is the mode in conflict; take a side, or both")
        time = now()
        places = tuple(dict.fromkeys(chain.from_iterable(map(self._places_of, conflicts))))
        absent = [
            self._new_decision(
                conflict.mode, conflict.id, ABSENT_CHOICE, conflict.answers, time=time
            )
            for conflict in conflicts
        ]
        decisions = (*absent, *self._added_places(mode, places, time))
        self._append_decisions(decisions)
        return decisions

    def _places_of(self, conflict: Conflict) -> tuple[Target, ...]:
        """Return all labelled places of a conflict; the whole trace without any."""
        if conflict.kind is ConflictKind.VERDICT:
            choice = choice_of_all_places(conflict, self._order)
            if choice is not None and choice.targets:
                return choice.targets
        return (conflict.first_place or WHOLE_TRACE,)

    def undo(self) -> tuple[str, ...]:
        """Undo the adjudicator's last step on the trace; return its items."""
        return self._undo_or_redo(back=True)

    def redo(self) -> tuple[str, ...]:
        """Redo the step that was undone last; return its items."""
        return self._undo_or_redo(back=False)

    def _undo_or_redo(self, *, back: bool) -> tuple[str, ...]:
        """Undo the last step (``back``) or redo the last undone one; return its items.

        An item is the mode or place of a decision.
        """
        history = self._undo_history()
        action = history.last_done if back else history.last_undone
        if action is None:
            return ()
        if back:
            self._append_facts(action.undoing_facts(), undoes=action.id)
        else:
            self._append_facts(action.facts, redoes=action.id)
        return tuple(dict.fromkeys(fact.item for fact in action.facts if isinstance(fact, Decided)))

    def confirm(self, *items: str) -> tuple[Decision, ...]:
        """Make decisions on items (modes or places) again, on the sides' current answers."""
        time = now()
        decisions = tuple(
            self._renewed_decision(self._decision_in_force(item), time) for item in items
        )
        self._append_decisions(decisions)
        return decisions

    def _renewed_decision(self, decision: Decision, time: str) -> Decision:
        """Return the same decision by this adjudicator on the current answers."""
        return replace(
            decision,
            answers=current_answers(decision, self.trace_sides.sides, self._order),
            decided_by=self.adjudicator,
            decided_at=time,
            judge_seen=decision.judge_seen or self._sees_judge(decision.mode),
        )

    def explain(self, items: Iterable[str], reason: str) -> bool:
        """Set the reason of this adjudicator's decisions on items; an empty text removes it.

        A first reason directly after the decisions becomes part of their step for undo.

        Args:
            items: The ids of the decided modes or places.
            reason: The reason; may be empty.

        Returns:
            Whether the reason is a step of its own for undo.

        Raises:
            AdjudicationError: An item is undecided, or decided by another adjudicator.
        """
        facts = []
        for item in items:
            current = self._own_decision(item)
            if current is None or current != self._decision_in_force(item):
                author = self._decision_in_force(item).decided_by
                raise AdjudicationError(
                    f"{author} decided this; decide it yourself to give a reason"
                )
            if current.reason != reason.strip():
                facts.append(Decided(item, current, replace(current, reason=reason.strip())))
        if not facts:
            return False
        action = self._action_of([fact.before for fact in facts])
        self._append_facts(facts, action=action)
        return action is None

    def judge_shown(self, mode: str) -> bool:
        """Return whether judges' answers on a mode were shown to this adjudicator."""
        return mode in self._judge_shown_on

    def judge_answers(self, mode: str) -> tuple[JudgeAnswer, ...]:
        """Return the answers of judges and agents on a mode, and record that they were shown.

        There are none while the mode has an open conflict, unless the study shows judges first.
        Later decisions on the mode count as made after seeing a judge.
        """
        in_conflict = any(conflict.mode == mode for conflict in self.gold.conflicts)
        if in_conflict and not self._judge_first:
            return ()
        answers = (*self._judge_answers(mode), *self._agent_answers(mode))
        if answers and mode not in self._judge_shown_on:
            self._append_facts([Revealed(_JUDGE_PREFIX + mode)])
            self._judge_shown_on |= {mode}
        return answers

    def _judge_answers(self, mode: str) -> list[JudgeAnswer]:
        """Return the answers of all judges that looked for a mode or labelled it."""
        filters: OfWork = {"trace_id": self.trace_id, "taxonomy": self.taxonomy.ref}
        judges = {
            judgement.judge
            for judgement in self.workspace.judgements(**filters)
            if mode in judgement.looks_at
        }
        values = {
            verdict.annotator: verdict.value
            for verdict in self.workspace.verdicts(**filters)
            if verdict.mode == mode and verdict.annotator in judges
        }
        labels_by_judge = values_by_key(
            (label.annotator, label)
            for label in self.workspace.labels(**filters, pass_number=None)
            if label.mode == mode and is_judge(label.annotator)
        )
        return [
            JudgeAnswer(name, values.get(name), tuple(labels_by_judge.get(name, ())))
            for name in sorted(judges | labels_by_judge.keys())
        ]

    def _agent_answers(self, mode: str) -> tuple[JudgeAnswer, ...]:
        """Return the answers on a mode of all agents that have finished the trace."""
        agents = {
            info.name for info in self.workspace.annotators() if info.kind is AnnotatorKind.AGENT
        }
        if not agents:
            return ()
        trace_sides = read_sides(self.workspace, self.taxonomy, self.trace_id, annotators=agents)
        return tuple(
            JudgeAnswer(side.annotator, value, side.labels_of(mode))
            for side in trace_sides.sides
            if (value := side.verdict(mode)) is not None
        )

    def _new_decision(
        self,
        mode: str,
        item: str,
        choice: Choice,
        answers: tuple[SideAnswer, ...],
        *,
        time: str,
        reason: str = "",
    ) -> Decision:
        """Make a decision by this adjudicator.

        Raises:
            AdjudicationError: The mode is unknown.
        """
        self._check_mode(mode)
        return Decision(
            mode=mode,
            item=item,
            value=choice.value,
            targets=choice.targets,
            sides=choice.sides,
            answers=answers,
            decided_by=self.adjudicator,
            decided_at=time,
            judge_seen=self._sees_judge(mode),
            reason=reason,
        )

    def _added_places(self, mode: str, places: tuple[Target, ...], time: str) -> list[Decision]:
        """Return decisions that add places to a mode.

        If the mode is neither present nor in conflict, one decision makes it present at all places.
        Otherwise each place has a decision.
        """
        self._check_mode(mode)
        sides = self.trace_sides.sides
        is_present = self.gold.verdict(mode).value is VerdictValue.PRESENT
        is_in_conflict = any(conflict.id == mode for conflict in self.gold.conflicts)
        if not is_present and not is_in_conflict:
            choice = Choice(VerdictValue.PRESENT, places)
            # The item of a verdict is the mode itself.
            return [self._new_decision(mode, mode, choice, answers_on(mode, sides), time=time)]
        decisions = []
        for target in places:
            answers = answers_at(mode, target, sides, self._order)
            labelling_sides = tuple(answer.annotator for answer in answers)
            choice = Choice(VerdictValue.PRESENT, (target,), labelling_sides)
            decisions.append(
                self._new_decision(mode, item_id(mode, target), choice, answers, time=time)
            )
        return decisions

    def _check_mode(self, mode: str) -> None:
        if all(mode_of_taxonomy.slug != mode for mode_of_taxonomy in self.taxonomy.modes):
            raise AdjudicationError(f"{self.taxonomy.ref} has no mode {mode!r}")

    def _append_decisions(self, decisions: Sequence[Decision]) -> None:
        """Record decisions, each with the own decision that it replaces."""
        facts = [
            Decided(decision.item, self._own_decision(decision.item), decision)
            for decision in decisions
        ]
        self._append_facts(facts)

    def _own_decision(self, item: str) -> Decision | None:
        decisions = self.workspace.decisions(
            self.trace_id, self.taxonomy.ref, annotator=self.adjudicator
        )
        return next((decision for decision in decisions if decision.item == item), None)

    def _decision_in_force(self, item: str) -> Decision:
        """Return the decision in force on an item.

        Raises:
            AdjudicationError: The item is not decided.
        """
        for decision in self.decisions:
            if decision.item == item:
                return decision
        raise AdjudicationError(f"nothing is decided about {item} yet")

    def _action_of(self, decisions: Sequence[Decision | None]) -> str | None:
        """Return the id of the last action if a reason can become part of it, else None.

        The action must have made exactly these decisions, without reasons.
        """
        action = self._undo_history().last_done
        if action is None or any(decision and decision.reason for decision in decisions):
            return None
        decided = [fact.after for fact in action.facts if isinstance(fact, Decided)]
        return action.id if decided == list(decisions) else None

    def _undo_history(self) -> UndoHistory:
        return UndoHistory.of_facts(self._own_events(), Decided)

    def _sees_judge(self, mode: str) -> bool:
        return self._saw_judge or mode in self._judge_shown_on

    def _append_facts(
        self,
        facts: Sequence[Fact],
        *,
        action: str | None = None,
        undoes: str | None = None,
        redoes: str | None = None,
    ) -> None:
        """Record facts in the adjudication pass in one transaction, and refresh this object."""
        pass_number = self._pass_number()
        events = [self._new_event(pass_number, fact) for fact in facts]
        new_indices = self._new_indices(facts)
        self.workspace.append(
            events,
            action=action,
            undoes=undoes,
            redoes=redoes,
            indices={self.trace_id: new_indices} if new_indices else None,
        )
        self._indexed_keys |= new_indices.keys()
        self.refresh()

    def _new_indices(self, facts: Sequence[Fact]) -> dict[str, SpanIndex]:
        """Return the known indices of the facts' spans that are not stored yet."""
        keys = {key for fact in facts for key in span_keys(fact)} - self._indexed_keys
        indices = {key: self._order(key) for key in keys}
        return {key: SpanIndex(index) for key, index in indices.items() if index is not None}

    def _pass_number(self) -> int:
        """Return the number of the adjudication pass; begin the pass if there is none."""
        for own_pass in self._own_passes():
            if own_pass.kind is PassKind.ADJUDICATION:
                return own_pass.number
        number = next_pass_number(self.workspace, self.taxonomy, self.adjudicator, self.trace_id)
        # A separate action, so that undoing a decision does not undo the start of the pass.
        self.workspace.append([self._new_event(number, PassStarted(PassKind.ADJUDICATION))])
        return number

    def _new_event(self, number: int, fact: Fact) -> NewEvent:
        return NewEvent(self.adjudicator, self.trace_id, self.taxonomy.ref, number, fact)

    def _own_passes(self) -> tuple[Pass, ...]:
        return self.workspace.passes(
            trace_id=self.trace_id, annotator=self.adjudicator, taxonomy=self.taxonomy.ref
        )

    def _own_events(self) -> Iterable[Event]:
        return self.workspace.events(
            trace_id=self.trace_id, annotator=self.adjudicator, taxonomy=self.taxonomy.ref
        )
