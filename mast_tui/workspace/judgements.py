"""A judge's findings on a trace, kept as its labels: the suggestions that people answer."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Protocol

from mast_tui.labels import (
    WHOLE_TRACE,
    AnnotatorKind,
    Evidence,
    Label,
    Match,
    PassKind,
    Target,
    annotator_kind,
)
from mast_tui.workspace.errors import WorkspaceError
from mast_tui.workspace.events import NewEvent
from mast_tui.workspace.facts import (
    Fact,
    Judged,
    LabelAdded,
    LabelChanged,
    LabelRemoved,
    PassStarted,
)
from mast_tui.workspace.ids import now
from mast_tui.workspace.records import RunTrace

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

_IDS: Final = uuid.UUID("7c9a4b61-5a54-5b5e-8a63-2f6f4a0f6d11")


class FindingLike(Protocol):
    """What of a judge's finding is kept; see ``mast_tui.judges.protocol.Finding``."""

    @property
    def mode(self) -> str: ...
    @property
    def first(self) -> str | None: ...
    @property
    def last(self) -> str | None: ...
    @property
    def evidence_key(self) -> str | None: ...
    @property
    def quote(self) -> str | None: ...
    @property
    def char_start(self) -> int | None: ...
    @property
    def char_end(self) -> int | None: ...
    @property
    def rationale(self) -> str: ...
    @property
    def confidence(self) -> float: ...
    @property
    def decisive(self) -> bool | None: ...
    @property
    def match(self) -> Match | None: ...
    @property
    def named(self) -> tuple[str, str] | None: ...


def store_judgement(
    workspace: Workspace,
    *,
    judge: str,
    taxonomy: str,
    trace_id: str,
    looks_at: Sequence[str],
    findings: Iterable[FindingLike],
    run_id: str | None = None,
) -> int:
    """Keep what ``judge`` found in a trace, in one transaction, and return how many suggestions.

    The same findings again change nothing (but for the note that ``run_id`` was here). Other
    findings of the same judge replace those that nobody has answered; an answered suggestion
    stays, and one with the same mode and place keeps its id. That id follows from judge, trace,
    taxonomy, mode and place, so it is the same in every workspace.
    """
    if annotator_kind(judge) is not AnnotatorKind.JUDGE:
        raise WorkspaceError(f"{judge!r}: a judge's name begins with 'judge:'")
    with workspace.transaction():
        before = {
            label.id: label
            for label in workspace.labels(trace_id=trace_id, annotator=judge, taxonomy=taxonomy)
        }
        answered = workspace.answered_suggestions(trace_id, taxonomy)
        after = {
            label.id: label
            for label in _labels(judge, taxonomy, trace_id, findings)
            if label.mode in looks_at
        }
        for label in before.values():
            if label.id in answered:
                after.setdefault(label.id, label)
        facts = _changes(before, after)
        present = {label.mode for label in after.values()}
        absent = tuple(mode for mode in looks_at if mode not in present)
        verdict = Judged(tuple(looks_at), absent, run_id)
        if facts or not _is_kept(workspace, judge, trace_id, taxonomy, looks_at):
            if not before:
                facts.insert(0, PassStarted(PassKind.BLIND))
            workspace.append(
                [NewEvent(judge, trace_id, taxonomy, 1, fact) for fact in (*facts, verdict)]
            )
        if run_id is not None:
            workspace.note_run_trace(run_id, RunTrace(trace_id, len(after)))
    return len(after)


def _is_kept(
    workspace: Workspace, judge: str, trace_id: str, taxonomy: str, looks_at: Sequence[str]
) -> bool:
    kept = workspace.judgements(trace_id=trace_id, annotator=judge, taxonomy=taxonomy)
    return any(judgement.looks_at == tuple(looks_at) for judgement in kept)


def _changes(before: dict[str, Label], after: dict[str, Label]) -> list[Fact]:
    facts: list[Fact] = [LabelRemoved(label) for id_, label in before.items() if id_ not in after]
    for label_id, label in after.items():
        known = before.get(label_id)
        if known is None:
            facts.append(LabelAdded(label))
        elif replace(label, created_at=known.created_at) != known:
            facts.append(LabelChanged(known, replace(label, created_at=known.created_at)))
    return facts


def _labels(
    judge: str, taxonomy: str, trace_id: str, findings: Iterable[FindingLike]
) -> list[Label]:
    """The findings as labels; of several with one mode and place the surest stays."""
    surest: dict[str, Label] = {}
    at = now()
    for finding in findings:
        evidence = None
        if finding.quote is not None:
            evidence = Evidence(
                finding.evidence_key,
                finding.quote,
                finding.char_start,
                finding.char_end,
                finding.match,
                finding.named,
            )
        target = target_of(finding)
        label = Label(
            id=suggestion_id(judge, trace_id, taxonomy, finding.mode, target),
            annotator=judge,
            trace_id=trace_id,
            taxonomy=taxonomy,
            mode=finding.mode,
            target=target,
            note=finding.rationale,
            confidence=finding.confidence,
            created_at=at,
            evidence=evidence,
            decisive=finding.decisive,
        )
        other = surest.get(label.id)
        if other is None or (other.confidence or 0.0) < finding.confidence:
            surest[label.id] = label
    return list(surest.values())


def target_of(finding: FindingLike) -> Target:
    """Where a finding points: its range, in a single span the quote where it was found, or all."""
    if finding.first is None:
        return WHOLE_TRACE
    if finding.first != finding.last:
        return Target(finding.first, finding.last)
    if finding.evidence_key == finding.first and finding.char_start is not None:
        return Target(
            finding.first, finding.first, finding.quote, finding.char_start, finding.char_end
        )
    return Target(finding.first, finding.first)


def suggestion_id(judge: str, trace_id: str, taxonomy: str, mode: str, target: Target) -> str:
    """The lasting id (UUID version 5) of a judge's suggestion."""
    place = (target.first, target.last, target.quote, target.char_start, target.char_end)
    return str(uuid.uuid5(_IDS, json.dumps([judge, trace_id, taxonomy, mode, *place])))
