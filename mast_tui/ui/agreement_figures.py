"""The figures of the agreement screen: counted off the screen's thread, within one's Sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from mast_tui.agreement.study import Report
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.workspace import Workspace

PassChoice = Literal["first", "last"]


@dataclass(frozen=True, slots=True)
class Figures:
    """What there is to show.

    ``report`` is None where no two people have finished a trace that this annotator may know
    about. ``hidden`` are ids of traces that two others have finished and this annotator has not;
    ``finished`` counts the finished traces of each person; ``problem`` is why nothing could be
    counted.
    """

    report: Report | None = None
    hidden: tuple[str, ...] = ()
    finished: Mapping[str, int] = field(default_factory=dict)
    problem: str | None = None


def count_figures(
    workspace: Workspace, taxonomy: Taxonomy, annotator: str, passes: PassChoice
) -> Figures:
    """The figures over the traces that the annotator has finished or adjudicated.

    That they are shown is recorded, as they tell what others said.
    """
    from mast_tui.agreement.from_workspace import study_from_workspace
    from mast_tui.agreement.study import agreement_report
    from mast_tui.session import SessionError, record_reveal, visible_traces_for_agreement
    from mast_tui.workspace import WorkspaceError

    try:
        visible = visible_traces_for_agreement(workspace, annotator, taxonomy.ref)
        everywhere = study_from_workspace(workspace, taxonomy, which=passes)
        people = _finishers(everywhere.finished)
        shared = {trace for trace, names in people.items() if len(names) > 1}
        finished = {name: len(traces) for name, traces in everywhere.finished.items()}
        hidden = tuple(sorted(shared - visible))
        if not shared & visible:
            return Figures(None, hidden, finished)
        names = sorted({name for trace in shared & visible for name in people[trace]})
        study = study_from_workspace(
            workspace, taxonomy, annotators=names, which=passes, traces=visible
        )
        record_reveal(workspace, annotator, taxonomy.ref, sorted(shared & visible))
        return Figures(agreement_report(study), hidden, finished)
    except (SessionError, WorkspaceError, ValueError) as error:
        return Figures(problem=str(error))


def _finishers(finished: Mapping[str, frozenset[str]]) -> dict[str, set[str]]:
    """Who has finished each trace."""
    people: dict[str, set[str]] = {}
    for name, traces in finished.items():
        for trace in traces:
            people.setdefault(trace, set()).add(name)
    return people
