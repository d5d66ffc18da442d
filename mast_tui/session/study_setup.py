"""Setting a study up, and changing it as long as that does not change its figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind
from mast_tui.session.progress import anybody_finished
from mast_tui.study import Study, annotators_of, changes_to_figures
from mast_tui.workspace import NewEvent, Workspace
from mast_tui.workspace.events.types import StudySet


def set_study(workspace: Workspace, who: str, study: Study) -> bool:
    """Set a study up under its taxonomy, or change it; returns whether anything changed.

    ``who`` does it and is recorded. Raises ``SessionError`` for a change to what figures rest on
    once an annotator has finished a trace, and for a trace that is not known here.
    """
    with workspace.transaction():
        before = workspace.study(study.taxonomy)
        if before == study:
            return False
        _check_traces(workspace, study)
        check_changes(workspace, study)
        for name in (*study.annotators, *study.adjudicators):
            workspace.add_annotator(name, AnnotatorKind.HUMAN)
        workspace.append([NewEvent(who, None, study.taxonomy, None, StudySet(before, study))])
    return True


def check_changes(workspace: Workspace, study: Study) -> None:
    """Refuse a study that would change what figures rest on already.

    Args:
        workspace: Where it is to be set up.
        study: The study as it is to be.

    Raises:
        SessionError: An annotator has finished a trace under another protocol.
    """
    before = workspace.study(study.taxonomy)
    if before is None or not anybody_finished(workspace, before):
        return
    changed = changes_to_figures(before, study)
    if changed:
        raise SessionError(
            f"traces have been finished under this study, so {_listed(changed)} can no longer "
            "change: its figures would rest on two protocols. Set the other study up in a "
            "workspace of its own (--workspace PATH); traces can be taken in here as before, and "
            "adjudicators, retests and how adjudication goes can change"
        )


def taken_away(workspace: Workspace, study: Study) -> dict[str, int]:
    """Count by name the traces that somebody has begun and that a changed study gives to others.

    Args:
        workspace: Where the study is set up.
        study: The study as it is to be.
    """
    before = workspace.study(study.taxonomy)
    found: dict[str, set[str]] = {}
    if before is None:
        return {}
    for one in workspace.passes(taxonomy=study.taxonomy):
        if (
            one.kind.is_reading
            and one.annotator in annotators_of(before, one.trace_id)
            and one.annotator not in annotators_of(study, one.trace_id)
        ):
            found.setdefault(one.annotator, set()).add(one.trace_id)
    return {name: len(traces) for name, traces in found.items()}


def with_traces(study: Study, trace_ids: Iterable[str]) -> Study:
    """The study with one more lot: those of the traces that are not in it yet, if any."""
    known = frozenset(study.traces)
    new = tuple(sorted(set(trace_ids) - known))
    return replace(study, batches=(*study.batches, new)) if new else study


def _check_traces(workspace: Workspace, study: Study) -> None:
    here = {record.trace_id for record in workspace.traces()}
    for trace_id in study.traces:
        if trace_id not in here:
            raise SessionError(
                f"trace {trace_id!r} is not known in this workspace; take it in with "
                "mast-tui study add PATH"
            )


def _listed(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
