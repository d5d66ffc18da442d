"""The guidelines and decided cases of each mode."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from mast_tui.adjudication.conflicts import resolves_conflict
from mast_tui.errors import AdjudicationError
from mast_tui.gold import Decision, Guideline
from mast_tui.labels import Target
from mast_tui.session.undo_history import UndoHistory
from mast_tui.session.visibility import visible_traces_for_agreement
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.model import NewEvent, now
from mast_tui.workspace.events.types import GuidelineSet
from mast_tui.workspace.store import Workspace


@dataclass(frozen=True, slots=True)
class GuidelineCase:
    """A decision of an adjudicator with its trace."""

    trace_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class ModePage:
    """A mode's definition with its guidelines and decided cases, the earliest first.

    ``hidden`` is the number of cases that the reader may not see yet.
    """

    mode: Mode
    guidelines: tuple[Guideline, ...]
    cases: tuple[GuidelineCase, ...]
    hidden: int = 0


def mode_page(
    workspace: Workspace, taxonomy: Taxonomy, mode: str, *, reader: str | None = None
) -> ModePage:
    """Return the guidelines of a mode, and the decisions that serve as its cases.

    A case is a decision that resolved a conflict or has a reason. Traces that the reader has not
    finished or must label again are left out. A caller that shows the page must call
    ``record_reveal`` for the traces of the cases.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        mode: The mode's slug.
        reader: The annotator who reads the page; None for a complete page.

    Raises:
        KeyError: The taxonomy has no such mode.
    """
    guidelines = tuple(
        guideline for guideline in workspace.guidelines(taxonomy.ref) if guideline.mode == mode
    )
    cases = [
        GuidelineCase(trace_id, decision)
        for trace_id, decisions in workspace.all_decisions(taxonomy.ref).items()
        for decision in decisions
        if decision.mode == mode and (resolves_conflict(decision) or decision.reason)
    ]
    cases.sort(key=lambda case: (case.decision.decided_at, case.trace_id, case.decision.item))
    page = ModePage(taxonomy.mode(mode), guidelines, tuple(cases))
    if reader is None:
        return page
    return page_within(page, visible_traces_for_agreement(workspace, reader, taxonomy.ref))


def page_within(page: ModePage, visible: Container[str]) -> ModePage:
    """Return a page without hidden traces.

    Args:
        page: The complete page.
        visible: The ids of the traces that may be shown.
    """
    visible_cases = tuple(case for case in page.cases if case.trace_id in visible)
    guidelines = tuple(
        guideline if guideline.trace_id in visible else replace(guideline, trace_id=None, item=None)
        for guideline in page.guidelines
    )
    return ModePage(page.mode, guidelines, visible_cases, len(page.cases) - len(visible_cases))


def guidelines_document(
    workspace: Workspace, taxonomy: Taxonomy, *, traces: Container[str] | None = None
) -> Mapping[str, Any]:
    """Return the guidelines and cases of each mode as plain JSON values by the mode's code.

    Modes without guidelines and cases are left out. Each mode has these fields:

    - ``mode``: the slug
    - ``name``
    - ``guidelines``: each with ``text``, ``by``, ``at``, and with ``trace`` and ``item`` of the
      decision that led to it, if there was one
    - ``cases``: each with ``trace``, ``item``, ``value``, ``targets``, ``reason``, ``by``, ``at``
      and ``judge_seen``

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        traces: The ids of the traces that may be shown; None for all.
    """
    return {
        page.mode.code: {
            "mode": page.mode.slug,
            "name": page.mode.name,
            "guidelines": [_guideline_values(guideline) for guideline in page.guidelines],
            "cases": [_case_values(case) for case in page.cases],
        }
        for page in _nonempty_pages(workspace, taxonomy, traces)
    }


def _nonempty_pages(
    workspace: Workspace, taxonomy: Taxonomy, traces: Container[str] | None
) -> Iterator[ModePage]:
    """Yield the pages of modes with guidelines or visible cases."""
    for mode in taxonomy.modes:
        page = mode_page(workspace, taxonomy, mode.slug)
        if traces is not None:
            page = page_within(page, traces)
        if page.guidelines or page.cases:
            yield page


def _guideline_values(guideline: Guideline) -> dict[str, Any]:
    """Return a guideline as JSON values, without missing ones."""
    values = {
        "text": guideline.text,
        "by": guideline.written_by,
        "at": guideline.written_at,
        "trace": guideline.trace_id,
        "item": guideline.item,
    }
    return {name: value for name, value in values.items() if value is not None}


def _case_values(case: GuidelineCase) -> dict[str, Any]:
    """Return a case as JSON values."""
    decision = case.decision
    return {
        "trace": case.trace_id,
        "item": decision.item,
        "value": decision.value.value,
        "targets": [_target_values(target) for target in decision.targets],
        "reason": decision.reason,
        "by": decision.decided_by,
        "at": decision.decided_at,
        "judge_seen": decision.judge_seen,
    }


def _target_values(target: Target) -> dict[str, Any]:
    """Return a target as JSON values, without missing ones."""
    values = {
        "span_first": target.first,
        "span_last": target.last,
        "quote": target.quote,
        "char_start": target.char_start,
        "char_end": target.char_end,
    }
    return {name: value for name, value in values.items() if value is not None}


class GuidelineBook:
    """One person's changes to the guidelines of a taxonomy.

    Each change is one transaction and is on disk when the method returns. Methods raise
    ``AdjudicationError`` or ``WorkspaceError``; then nothing has changed.
    """

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, writer: str) -> None:
        self._workspace = workspace
        self._taxonomy = taxonomy
        self._writer = writer

    def write(
        self, mode: str, text: str, *, trace_id: str | None = None, item: str | None = None
    ) -> Guideline:
        """Add a guideline to a mode, and return it.

        Args:
            mode: The mode's slug.
            text: The text.
            trace_id: The trace of the decision that led to the guideline, if any.
            item: The mode or place of that decision.
        """
        if all(known_mode.slug != mode for known_mode in self._taxonomy.modes):
            raise AdjudicationError(f"{self._taxonomy.ref} has no mode {mode!r}")
        text = _checked_text(text)
        id = self._workspace.new_id()
        guideline = Guideline(id, mode, text, self._writer, now(), trace_id, item)
        self._append_facts([GuidelineSet(guideline.id, None, guideline)])
        return guideline

    def edit(self, id: str, text: str) -> Guideline:
        """Replace the text of a guideline by any person.

        Args:
            id: The id of the guideline.
            text: The new text.
        """
        return self._replace_text(id, _checked_text(text))

    def take_back(self, id: str) -> None:
        """Remove a guideline by any person."""
        self._replace_text(id, "")

    def undo(self, mode: str) -> Guideline | None:
        """Undo this person's last change of a mode's guidelines; return the guideline, if any."""
        return self._undo_or_redo(mode, back=True)

    def redo(self, mode: str) -> Guideline | None:
        """Redo the change that was undone last; return the guideline, if any."""
        return self._undo_or_redo(mode, back=False)

    def _replace_text(self, id: str, text: str) -> Guideline:
        """Replace the text of a guideline, and return the new version.

        Raises:
            AdjudicationError: The guideline does not exist.
        """
        for existing in self._workspace.guidelines(self._taxonomy.ref):
            if existing.id == id:
                changed = replace(existing, text=text, written_by=self._writer, written_at=now())
                self._append_facts([GuidelineSet(id, existing, changed)])
                return changed
        raise AdjudicationError("this guideline no longer exists; open the page again")

    def _undo_or_redo(self, mode: str, *, back: bool) -> Guideline | None:
        """Undo the last change (``back``) or redo the last undone one; return the guideline."""
        events = self._workspace.events(annotator=self._writer, taxonomy=self._taxonomy.ref)
        page_events = (event for event in events if _mode_of(event.fact) == mode)
        history = UndoHistory.of_facts(page_events, GuidelineSet)
        action = history.last_done if back else history.last_undone
        if action is None:
            return None
        facts = [fact for fact in action.facts if isinstance(fact, GuidelineSet)]
        if back:
            # Another person's earlier text appears again without being written.
            inverse = [
                GuidelineSet(fact.id, fact.after, self._own_guideline(fact.before))
                for fact in reversed(facts)
            ]
            self._append_facts(inverse, undoes=action.id)
        else:
            self._append_facts(facts, redoes=action.id)
        return facts[0].after or facts[0].before

    def _own_guideline(self, guideline: Guideline | None) -> Guideline | None:
        """Return the guideline if this person wrote it, else None."""
        return guideline if guideline is not None and guideline.written_by == self._writer else None

    def _append_facts(
        self,
        facts: Sequence[GuidelineSet],
        *,
        undoes: str | None = None,
        redoes: str | None = None,
    ) -> None:
        """Append changes of guidelines as one action."""
        ref = self._taxonomy.ref
        events = [
            NewEvent(self._writer, trace_id=None, taxonomy=ref, pass_number=None, fact=fact)
            for fact in facts
        ]
        self._workspace.append(events, undoes=undoes, redoes=redoes)


def _mode_of(fact: object) -> str | None:
    """Return the mode of the guideline in a fact; None for other facts."""
    if not isinstance(fact, GuidelineSet):
        return None
    guideline = fact.after or fact.before
    return guideline.mode if guideline is not None else None


def _checked_text(text: str) -> str:
    if not text.strip():
        raise AdjudicationError("a guideline must not be empty; remove it instead")
    return text.strip()
