"""What a study asks of one annotator on one trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from mast_tui.session.retests import by_trace, retests_of
from mast_tui.study import OpenModes, Study, annotators_of, retest_traces, withheld
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StudyConditions:
    """How a trace is labelled.

    ``withheld``: without the suggestions that are there, until finished. ``retest``: once more,
    without sight of the first time. ``open_modes`` is what finishing does with modes without a
    verdict where spans were not read; None where the annotator is asked.
    """

    withheld: bool = False
    retest: bool = False
    open_modes: Literal["leave", "absent"] | None = None


FREE: Final = StudyConditions()
"""Without a study."""


def conditions_for(
    workspace: Workspace, annotator: str, trace_id: str, taxonomy: str
) -> StudyConditions:
    """The conditions under the study of a taxonomy (``id@version``), for its annotators.

    A retest is asked for where it is due; one that was begun is known by its pass.
    """
    study = workspace.study(taxonomy)
    if study is None or annotator not in annotators_of(study, trace_id):
        return FREE
    return StudyConditions(
        withheld=withheld(study, annotator, trace_id),
        retest=_retest_due(workspace, study, annotator, trace_id),
        open_modes=_answer(study.open_modes),
    )


def _retest_due(workspace: Workspace, study: Study, annotator: str, trace_id: str) -> bool:
    if trace_id not in retest_traces(study, annotator):
        return False
    own = by_trace(workspace.passes(annotator=annotator, taxonomy=study.taxonomy))
    return trace_id in retests_of(study, annotator, own).due


def _answer(open_modes: OpenModes) -> Literal["leave", "absent"] | None:
    match open_modes:
        case OpenModes.LEAVE:
            return "leave"
        case OpenModes.ABSENT:
            return "absent"
        case OpenModes.ASK:
            return None
