"""The guidelines and decided cases of each mode."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from mast_tui.adjudication.decisions import history_of, resolves_conflict
from mast_tui.errors import AdjudicationError
from mast_tui.gold import Decision, Guideline
from mast_tui.labels import Target
from mast_tui.session.visibility import visible_traces_for_agreement
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.workspace.events.model import NewEvent
from mast_tui.workspace.events.types import GuidelineSet
from mast_tui.workspace.ids import now
from mast_tui.workspace.store import Workspace


@dataclass(frozen=True, slots=True)
class GuidelineCase:
    """One decision of an adjudicator, and the trace on which it was made."""

    trace_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class ModePage:
    """A mode's definition, its guidelines, and decided cases.

    Both earliest first. ``hidden`` counts the cases that the reader may not see yet.
    """

    mode: Mode
    guidelines: tuple[Guideline, ...]
    cases: tuple[GuidelineCase, ...]
    hidden: int = 0


def mode_page(
    workspace: Workspace, taxonomy: Taxonomy, mode: str, *, reader: str | None = None
) -> ModePage:
    """Return the page of a mode, given by its slug.

    For a ``reader`` cases and occasions of traces that they have not finished, or are to label
    once more, are left out; whoever shows the page calls ``record_reveal`` for the cases' traces.
    Raises ``KeyError`` where the taxonomy has no such mode.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        mode: The mode's slug.
        reader: The name of the annotator who reads it, None for all.
    """
    written = tuple(g for g in workspace.guidelines(taxonomy.ref) if g.mode == mode)
    cases = [
        GuidelineCase(trace_id, decision)
        for trace_id, decisions in workspace.all_decisions(taxonomy.ref).items()
        for decision in decisions
        if decision.mode == mode and (resolves_conflict(decision) or decision.reason)
    ]
    cases.sort(key=lambda case: (case.decision.decided_at, case.trace_id, case.decision.item))
    page = ModePage(taxonomy.mode(mode), written, tuple(cases))
    if reader is None:
        return page
    return page_within(page, visible_traces_for_agreement(workspace, reader, taxonomy.ref))


def page_within(page: ModePage, seen: Container[str]) -> ModePage:
    """Leave out of a page the cases and occasions of all traces but those that may be seen.

    Args:
        page: The whole page.
        seen: Ids of traces.
    """
    visible_cases = tuple(case for case in page.cases if case.trace_id in seen)
    guidelines = tuple(
        guideline if guideline.trace_id in seen else replace(guideline, trace_id=None, item=None)
        for guideline in page.guidelines
    )
    return ModePage(page.mode, guidelines, visible_cases, len(page.cases) - len(visible_cases))


def guidelines_document(
    workspace: Workspace, taxonomy: Taxonomy, *, traces: Container[str] | None = None
) -> Mapping[str, Any]:
    """Return the guidelines and cases of each mode as plain JSON values by the mode's code.

    Modes about which nothing was written or decided are left out, as are cases on and occasions of
    other traces than ``traces``; None hides nothing. Each mode has ``mode`` (the slug), ``name``,
    ``guidelines`` (``text``, ``by``, ``at`` and, where there was an occasion, ``trace`` and
    ``item``) and ``cases`` (``trace``, ``item``, ``value``, ``targets``, ``reason``, ``by``,
    ``at``, ``judge_seen``).

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy.
        traces: The ids of the traces that may be shown, None for all.
    """
    return {
        page.mode.code: {
            "mode": page.mode.slug,
            "name": page.mode.name,
            "guidelines": [_guideline_values(guideline) for guideline in page.guidelines],
            "cases": [_case_values(case) for case in page.cases],
        }
        for page in _pages(workspace, taxonomy, traces)
    }


def _pages(
    workspace: Workspace, taxonomy: Taxonomy, traces: Container[str] | None
) -> Iterator[ModePage]:
    for mode in taxonomy.modes:
        page = mode_page(workspace, taxonomy, mode.slug)
        if traces is not None:
            page = page_within(page, traces)
        if page.guidelines or page.cases:
            yield page


def _guideline_values(guideline: Guideline) -> dict[str, Any]:
    values = {"text": guideline.text, "by": guideline.written_by, "at": guideline.written_at}
    if guideline.trace_id is not None:
        values["trace"] = guideline.trace_id
    if guideline.item is not None:
        values["item"] = guideline.item
    return values


def _case_values(case: GuidelineCase) -> dict[str, Any]:
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
    values = {
        "span_first": target.first,
        "span_last": target.last,
        "quote": target.quote,
        "char_start": target.char_start,
        "char_end": target.char_end,
    }
    return {name: value for name, value in values.items() if value is not None}


class GuidelineBook:
    """One person's writing on the pages of a taxonomy.

    Every change is one transaction, on disk when the method returns. Methods raise
    ``AdjudicationError`` or ``WorkspaceError``, in words for people; then nothing has changed.
    """

    def __init__(self, workspace: Workspace, taxonomy: Taxonomy, writer: str) -> None:
        self._workspace = workspace
        self._taxonomy = taxonomy
        self._writer = writer

    def write(
        self, mode: str, text: str, *, trace_id: str | None = None, item: str | None = None
    ) -> Guideline:
        """Write down what was agreed about a mode; the decision that gave occasion may be named.

        Args:
            mode: The mode's slug.
            text: The text.
            trace_id: The trace of the decision that is its occasion.
            item: The item of that decision.
        """
        if all(listed.slug != mode for listed in self._taxonomy.modes):
            raise AdjudicationError(f"{self._taxonomy.ref} has no mode {mode!r}")
        text = _checked(text)
        id = self._workspace.new_id()
        made = Guideline(id, mode, text, self._writer, now(), trace_id, item)
        self._append([GuidelineSet(made.id, None, made)])
        return made

    def edit(self, id: str, text: str) -> Guideline:
        """Put a guideline otherwise, whoever wrote it.

        Args:
            id: The id.
            text: The text.
        """
        return self._put(id, _checked(text))

    def take_back(self, id: str) -> None:
        """Take a guideline off its page, whoever wrote it."""
        self._put(id, "")

    def undo(self, mode: str) -> Guideline | None:
        """Undo this person's last change on a mode's page; what it was about, None for nothing."""
        return self._step(mode, back=True)

    def redo(self, mode: str) -> Guideline | None:
        """Do again what was undone last on a mode's page."""
        return self._step(mode, back=False)

    def _put(self, id: str, text: str) -> Guideline:
        for existing in self._workspace.guidelines(self._taxonomy.ref):
            if existing.id == id:
                put = replace(existing, text=text, written_by=self._writer, written_at=now())
                self._append([GuidelineSet(id, existing, put)])
                return put
        raise AdjudicationError("that guideline is not there any more; open the page again")

    def _step(self, mode: str, *, back: bool) -> Guideline | None:
        events = self._workspace.events(annotator=self._writer, taxonomy=self._taxonomy.ref)
        done, undone = history_of((e for e in events if _mode_of(e.fact) == mode), GuidelineSet)
        for action, facts in reversed((done if back else undone).items()):
            if back:
                inverse = [
                    GuidelineSet(f.id, f.after, self._if_author(f.before)) for f in reversed(facts)
                ]
                self._append(inverse, undoes=action)
            else:
                self._append(facts, redoes=action)
            return facts[0].after or facts[0].before
        return None

    def _if_author(self, guideline: Guideline | None) -> Guideline | None:
        """One's own words; those of another show again once one's own are gone."""
        return guideline if guideline is not None and guideline.written_by == self._writer else None

    def _append(
        self,
        facts: Sequence[GuidelineSet],
        *,
        undoes: str | None = None,
        redoes: str | None = None,
    ) -> None:
        ref = self._taxonomy.ref
        events = [NewEvent(self._writer, None, ref, None, fact) for fact in facts]
        self._workspace.append(events, undoes=undoes, redoes=redoes)


def _mode_of(fact: object) -> str | None:
    """Return the mode of what a guideline's change is about, None for anything else."""
    if not isinstance(fact, GuidelineSet):
        return None
    guideline = fact.after or fact.before
    return guideline.mode if guideline is not None else None


def _checked(text: str) -> str:
    if not text.strip():
        raise AdjudicationError("a guideline needs words; to remove one, take it back")
    return text.strip()
