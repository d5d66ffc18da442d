"""A judge's findings on a trace, stored as labels: the suggestions that people answer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import structs

from mast_tui.errors import WorkspaceError
from mast_tui.labels import (
    Finding,
    Label,
    Origin,
    PassKind,
    QuoteCounts,
    Severity,
    Target,
    VerdictValue,
    is_judge,
)
from mast_tui.workspace.events.model import NewEvent, now, uuid5
from mast_tui.workspace.events.types import (
    Fact,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassStarted,
)
from mast_tui.workspace.records import JudgementRecord, RunTrace, SpanIndex

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_IDS: Final = uuid.UUID("7c9a4b61-5a54-5b5e-8a63-2f6f4a0f6d11").bytes


def store_judgement(
    workspace: Workspace,
    *,
    judge: str,
    taxonomy: str,
    trace_id: str,
    looks_at: Sequence[str],
    findings: Iterable[Finding],
    run_id: str | None = None,
    unsure: Iterable[str] = (),
    partial: bool = False,
    trace: RunTrace | None = None,
    indices: Mapping[str, SpanIndex] | None = None,
) -> int:
    """Store a judge's findings in a trace as suggestions, in one transaction.

    They replace the judge's earlier suggestions in the trace, except answered ones. The id of a
    suggestion is the same in every workspace.

    Args:
        workspace: The workspace.
        judge: The name of the judge as an annotator.
        taxonomy: The taxonomy of the modes, ``id@version``.
        trace_id: The id of the trace in the workspace.
        looks_at: The modes on which the judge gives a verdict: present with a finding, unsure if
            the mode is in ``unsure``, otherwise absent.
        findings: The findings; unless ``partial``, those of other modes are left out.
        run_id: The run of the judge; None without a run.
        unsure: The modes of which the judge is unsure.
        partial: True if more findings will follow. Then suggestions are added without verdicts,
            unless a whole judgement is stored, so that figures never mix two judgements.
        trace: The result of the run on this trace, to which the number of suggestions is added;
            None to make it from the findings.
        indices: The known indices of the spans of the findings, by key.

    Returns:
        The number of the judge's suggestions in the trace.

    Raises:
        WorkspaceError: The name is not a judge's, or the workspace cannot be written.
    """
    if not is_judge(judge):
        raise WorkspaceError(f"{judge!r}: a judge's name must begin with 'judge:'")
    labels = {label.id: label for label in _labels_of_findings(judge, taxonomy, trace_id, findings)}
    stored = StoredJudgement(workspace, judge, taxonomy, trace_id, indices or {})
    with workspace.transaction():
        if partial:
            count = stored.add_suggestions(labels)
        else:
            labels = {label.id: label for label in labels.values() if label.mode in looks_at}
            count = stored.replace(labels, tuple(looks_at), frozenset(unsure), run_id)
            quotes = QuoteCounts.count(label.evidence for label in labels.values())
            trace = trace or RunTrace("", 0, quotes=quotes)
        if run_id is not None and trace is not None:
            workspace.note_run_trace(
                run_id, structs.replace(trace, trace_id=trace_id, findings=count)
            )
    return count


class StoredJudgement:
    """The stored judgement of a judge on a trace."""

    def __init__(
        self,
        workspace: Workspace,
        judge: str,
        taxonomy: str,
        trace_id: str,
        indices: Mapping[str, SpanIndex],
    ) -> None:
        self._indices = indices
        self._workspace = workspace
        self._judge = judge
        self._taxonomy = taxonomy
        self._trace_id = trace_id

    def add_suggestions(self, labels: Mapping[str, Label]) -> int:
        """Add suggestions of a partial judgement, and return their number.

        If a whole judgement of this judge is stored, nothing is added and the result is 0.
        """
        if self._stored_judgements():
            return 0
        stored_labels = self._stored_labels()
        self._append_facts(
            stored_labels, _label_changes(stored_labels, {**stored_labels, **labels})
        )
        return len(labels)

    def replace(
        self,
        labels: Mapping[str, Label],
        looks_at: tuple[str, ...],
        unsure: frozenset[str],
        run_id: str | None,
    ) -> int:
        """Replace the stored judgement, except for answered suggestions.

        Args:
            labels: The suggestions of the new judgement by id.
            looks_at: The modes on which the judge gives a verdict.
            unsure: The modes of which the judge is unsure.
            run_id: The run that made the judgement; None without a run.

        Returns:
            The number of the judge's suggestions in the trace.
        """
        stored_labels = self._stored_labels()
        answered_labels = self._answered_labels(stored_labels)
        new_labels = {**answered_labels, **labels}
        facts = _label_changes(stored_labels, new_labels)
        labelled_modes = {label.mode for label in new_labels.values()}
        other_modes = [mode for mode in looks_at if mode not in labelled_modes]
        absent_modes = tuple(mode for mode in other_modes if mode not in unsure)
        unsure_modes = tuple(mode for mode in other_modes if mode in unsure)
        judgement = Judged(looks_at, absent_modes, run_id, unsure_modes)
        if facts or not self._has_same_verdicts(judgement):
            self._append_facts(stored_labels, [*facts, judgement])
        return len(new_labels)

    def _answered_labels(self, stored_labels: Mapping[str, Label]) -> dict[str, Label]:
        """Return the answered suggestions by id."""
        if not stored_labels:
            return {}
        reviews = self._workspace.reviews(
            trace_id=self._trace_id, taxonomy=self._taxonomy, pass_number=None
        )
        answered = {review.suggestion for review in reviews}
        return {label.id: label for label in stored_labels.values() if label.id in answered}

    def _stored_labels(self) -> dict[str, Label]:
        labels = self._workspace.labels(
            trace_id=self._trace_id, annotator=self._judge, taxonomy=self._taxonomy
        )
        return {label.id: label for label in labels}

    def _stored_judgements(self) -> tuple[JudgementRecord, ...]:
        return self._workspace.judgements(
            trace_id=self._trace_id, annotator=self._judge, taxonomy=self._taxonomy
        )

    def _has_same_verdicts(self, judgement: Judged) -> bool:
        """Return whether the stored judgement has the same verdicts without labels."""
        # A judgement on other modes gives other verdicts.
        if not any(stored.looks_at == judgement.looks_at for stored in self._stored_judgements()):
            return False
        # A mode without a label is unsure or absent, so comparing the unsure modes is enough.
        verdicts = self._workspace.verdicts(
            trace_id=self._trace_id, annotator=self._judge, taxonomy=self._taxonomy
        )
        unsure = {verdict.mode for verdict in verdicts if verdict.value is VerdictValue.UNSURE}
        return unsure == set(judgement.unsure)

    def _append_facts(self, stored_labels: Mapping[str, Label], facts: Sequence[Fact]) -> None:
        """Append facts to pass 1, the only pass of a judge, and begin it if it has no labels."""
        if facts and not stored_labels:
            facts = [PassStarted(PassKind.BLIND), *facts]
        self._workspace.append(
            [NewEvent(self._judge, self._trace_id, self._taxonomy, 1, fact) for fact in facts],
            indices={self._trace_id: self._indices} if self._indices else None,
        )


def _label_changes(old: Mapping[str, Label], new: Mapping[str, Label]) -> list[Fact]:
    """Return the facts that turn the old labels into the new labels, both by id.

    A label that stays keeps its time of creation.
    """
    facts: list[Fact] = [LabelRemoved(label) for label in old.values() if label.id not in new]
    for label_id, label in new.items():
        old_label = old.get(label_id)
        if old_label is None:
            facts.append(LabelAdded(label))
            continue
        new_label = structs.replace(label, created_at=old_label.created_at)
        if new_label != old_label:
            facts.append(LabelChanged(old_label, new_label))
    return facts


def _labels_of_findings(
    judge: str, taxonomy: str, trace_id: str, findings: Iterable[Finding]
) -> list[Label]:
    """Convert findings to labels; of findings with the same id, keep the most confident."""
    most_confident: dict[str, Label] = {}
    time = now()
    for finding in findings:
        label = Label(
            id=suggestion_id(judge, trace_id, taxonomy, finding.mode, finding.target),
            annotator=judge,
            trace_id=trace_id,
            taxonomy=taxonomy,
            mode=finding.mode,
            target=finding.target,
            note=finding.rationale,
            confidence=finding.confidence,
            origin=Origin.SUGGESTED,
            created_at=time,
            evidence=finding.evidence,
            decisive=finding.decisive,
            # A remedy names the step that decided the failure of the run.
            severity=Severity.FATAL if finding.remedy else None,
            remedy=finding.remedy,
        )
        earlier_label = most_confident.get(label.id)
        if earlier_label is None or (earlier_label.confidence or 0.0) < finding.confidence:
            most_confident[label.id] = label
    return list(most_confident.values())


def suggestion_id(judge: str, trace_id: str, taxonomy: str, mode: str, target: Target) -> str:
    """Return the id of a judge's suggestion: a hash of the arguments as a UUID of version 5.

    Args:
        judge: The judge.
        trace_id: The trace.
        taxonomy: The taxonomy, as ``id@version``.
        mode: The slug of the mode.
        target: The spans or the quote that the suggestion is about.
    """
    target_values = (target.first, target.last, target.quote, target.char_start, target.char_end)
    return uuid5(_IDS, json.dumps([judge, trace_id, taxonomy, mode, *target_values]))
