"""The conditions under which a study has somebody label: blind, without suggestions, once more.

Its annotators label as it says. Somebody without a part in it sees nothing that it hides from its
annotators, since a second name must not be a way around the study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mast_tui.session.retests import retest_progress
from mast_tui.study import OpenModes, Study, annotators_of, retest_traces, withheld_traces
from mast_tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class StudyConditions:
    """The conditions under which a trace is labelled.

    ``withheld``: without the suggestions that are there, until finished. ``retest``: once more,
    without sight of the first time. ``open_modes`` is what finishing does with modes without a
    verdict where spans were not read; None where the annotator is asked.
    """

    withheld: bool = False
    retest: bool = False
    open_modes: Literal["leave", "absent"] | None = None


def conditions_for(
    workspace: Workspace, annotator: str, trace_id: str, taxonomy: str
) -> StudyConditions:
    """Return the conditions under the study of a taxonomy.

    A retest is asked for where it is due; one that was begun is known by its pass. Of somebody
    who is not assigned the trace only suggestions can be withheld.

    Args:
        workspace: The workspace with the study.
        annotator: The name of the person who labels.
        trace_id: The trace.
        taxonomy: The taxonomy, as ``id@version``.
    """
    study = workspace.study(taxonomy)
    if study is None:
        return StudyConditions()
    withheld = trace_id in withheld_by_study(workspace, study, annotator)
    if annotator not in annotators_of(study, trace_id):
        return StudyConditions(withheld)
    due = trace_id in retest_traces(study, annotator) and (
        trace_id in retest_progress(workspace, annotator, taxonomy).due
    )
    answers: Mapping[OpenModes, Literal["leave", "absent"]] = {
        OpenModes.LEAVE: "leave",
        OpenModes.ABSENT: "absent",
    }
    return StudyConditions(withheld, due, answers.get(study.open_modes))


def blind_by_study(workspace: Workspace, study: Study | None, name: str) -> bool | None:
    """Return whether a study has somebody work blind; None where it does not decide that.

    Args:
        workspace: The workspace with the study.
        study: The study, if there is one.
        name: The person's name.
    """
    if study is None or _may_see_all(workspace, study, name):
        return None
    if name in study.annotators:
        return study.blind
    return True if study.blind else None


def withheld_by_study(workspace: Workspace, study: Study | None, name: str) -> frozenset[str]:
    """Return the ids of the traces on which a study withholds suggestions from somebody.

    Args:
        workspace: The workspace with the study.
        study: The study, if there is one.
        name: The person's name.
    """
    if study is None or _may_see_all(workspace, study, name):
        return frozenset()
    return withheld_traces(study, name)


def _may_see_all(workspace: Workspace, study: Study, name: str) -> bool:
    """Return whether a study hides no suggestions from somebody: its adjudicators, and members of
    a server without a part in it whom the lead lets see suggestions."""
    if name in study.annotators:
        return False
    member = workspace.member
    return name in study.adjudicators or (
        member is not None and (member.sees_all or member.assisted)
    )
