"""The person who runs a command, and the traces and labels that this person may see.

Without a known name nothing is hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from mast_tui.counts import counted
from mast_tui.errors import SessionError
from mast_tui.labels import (
    AnnotatorKind,
    PassKind,
    check_unlike,
    checked_person,
    is_judge,
)
from mast_tui.session.visibility import (
    LibraryEntry,
    blind_by_study,
    finished_or_judged_traces,
    library_view,
    record_reveal,
    resolve_blind,
    visible_traces_for_agreement,
)
from mast_tui.study import Study
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import login_setting
from mast_tui.workspace.records import TeamRole


def login_person(workspace: Workspace) -> str | None:
    """Return the name of the person of this login; None if it is unknown.

    On a server this is the name of the member, unless the member is a judge. For a file it is the
    last name that this login used in the workspace.
    """
    if workspace.member is not None:
        return None if workspace.member.role is TeamRole.JUDGE else workspace.member.name
    return workspace.get_setting(login_setting())


def working_person(
    workspace: Workspace, requested: str | None, *, study: Study | None = None
) -> str | None:
    """Return the name of the person who uses the app; None if the app must ask for it.

    Args:
        workspace: The workspace.
        requested: The name on the command line, which replaces a remembered name but not the name
            of a server's member; None without one.
        study: The study, if there is one. A remembered name outside of the study is not used.
    """
    if workspace.member is not None:
        return login_person(workspace)
    if requested is not None:
        return checked_person(requested)
    name = login_person(workspace)
    return None if study is not None and name not in study.participants else name


def outside_study_text(name: str, study: Study | None) -> str | None:
    """Return a message if a person has no part in a study, else None.

    Args:
        name: The person's name.
        study: The study, if there is one.
    """
    if study is None or name in study.participants:
        return None
    return f"{name} is not in this study: labels under this name do not count"


def remember_person(workspace: Workspace, name: str) -> None:
    """Remember a name for this login in the workspace.

    Args:
        workspace: The workspace.
        name: The name.
    """
    workspace.set_setting(login_setting(), name)


def checked_new_name(workspace: Workspace, name: str) -> str:
    """Check the name of a person who starts to label.

    Args:
        workspace: The workspace.
        name: The name as it was typed.

    Raises:
        MastError: The name is not valid, or looks like that of another annotator.
    """
    name = checked_person(name)
    names = [info.name for info in workspace.annotators()]
    if name not in names:
        check_unlike(name, names)
    return name


class Viewer(Struct, frozen=True, dict=True):
    """The person who runs a command, and the parts of the workspace that are visible to them.

    Attributes:
        workspace: The workspace.
        taxonomy: The taxonomy, as ``id@version``.
        name: The person's name; None if it is unknown.
        blind: True if the person works blind.
        sees_finished_only: True if others' labels are hidden on traces that the person has not
            finished, since the person labels here.
        overridden_name: A name on the command line that the server's login replaces.
    """

    workspace: Workspace
    taxonomy: str
    name: str | None = None
    blind: bool = False
    sees_finished_only: bool = False
    overridden_name: str | None = None

    @cached_property
    def traces(self) -> frozenset[str] | None:
        """The traces on which this person may see others' labels; None for all."""
        if self.name is None or not self.sees_finished_only:
            return None
        return visible_traces_for_agreement(self.workspace, self.name, self.taxonomy)

    @cached_property
    def traces_of_others(self) -> frozenset[str]:
        """The traces that at least one other person has finished."""
        return self._labelled_by_others(judges=False)

    @cached_property
    def _traces_by_author(self) -> dict[str, frozenset[str]]:
        """The labelled traces of each annotator."""
        return finished_or_judged_traces(self.workspace, self.taxonomy)

    def _labelled_by_others(self, *, judges: bool) -> frozenset[str]:
        """Return the traces labelled by judges, or those labelled by other people."""
        trace_sets = [
            traces
            for name, traces in self._traces_by_author.items()
            if name != self.name and is_judge(name) is judges
        ]
        return frozenset[str]().union(*trace_sets)

    @property
    def hidden(self) -> frozenset[str]:
        """The traces finished by others on which labels are hidden from this person."""
        return frozenset() if self.traces is None else self.traces_of_others - self.traces

    def may_see_others(self, trace_id: str) -> bool:
        """Return whether this person may see others' labels on a trace."""
        return self.traces is None or trace_id in self.traces

    def may_see_judges(self) -> Callable[[str], bool]:
        """Return a function that tells whether judges' verdicts on a trace are visible."""
        return self._test_of_entries(lambda entry: entry.suggestions_visible)

    def may_see_outcomes(self) -> Callable[[str], bool]:
        """Return a function that tells whether the outcome of a trace is visible."""
        return self._test_of_entries(lambda entry: entry.outcome_visible)

    def _test_of_entries(self, is_visible: Callable[[LibraryEntry], bool]) -> Callable[[str], bool]:
        """Return a function that tests the entry of a trace in the person's library.

        Traces without an entry are visible unless the person works blind.
        """
        if self.name is None or not self.sees_finished_only:
            return lambda _trace_id: not self.blind
        view = library_view(self.workspace, self.name, self.taxonomy, blind=self.blind)
        return lambda trace_id: is_visible(view[trace_id]) if trace_id in view else not self.blind

    @property
    def judges_hidden(self) -> bool:
        """True if counts of judges' findings must be hidden, as they reveal suggestions."""
        if self.blind:
            return True
        # From a person who sees more than their finished traces, no suggestions are withheld.
        if self.name is None or not self.sees_finished_only:
            return False
        view = library_view(self.workspace, self.name, self.taxonomy, blind=False)
        return any(entry.withheld for entry in view.values())

    def reveal(self, trace_ids: Iterable[str] | None = None, *, judges: bool = False) -> None:
        """Record the traces on which others' labels are shown to this person.

        Args:
            trace_ids: The shown traces; None for all ``traces``.
            judges: True if judges' labels are shown too.
        """
        if self.name is None or self.traces is None:
            return
        shown_traces = self.traces if trace_ids is None else self.traces.intersection(trace_ids)
        revealed_traces = shown_traces & self.traces_of_others
        if judges:
            may_see = self.may_see_judges()
            judged_traces = shown_traces & self._labelled_by_others(judges=True)
            revealed_traces |= {trace_id for trace_id in judged_traces if not may_see(trace_id)}
        record_reveal(self.workspace, self.name, self.taxonomy, sorted(revealed_traces))


def visibility_json(viewer: Viewer, hidden: Sized) -> dict[str, dict[str, Any]]:
    """Return the field ``sight`` of a document: the viewer, and the number of hidden traces.

    The result is empty if the viewer may see all labels.

    Args:
        viewer: The viewer.
        hidden: The traces that are left out.
    """
    if viewer.name is None or not viewer.sees_finished_only:
        return {}
    return {
        "sight": {
            "annotator": viewer.name,
            "blind": viewer.blind,
            "left_out": len(hidden),
            "reason": "hidden_until_finished",
        }
    }


def hidden_traces_text(name: str, count: int) -> str:
    """Return a message that labels are hidden on some traces, and until when.

    Args:
        name: The person from whom the labels are hidden.
        count: The number of traces, at least one.
    """
    # A finished trace with a coming retest is hidden too. The message does not mention it, since
    # the person must not expect a retest.
    pronoun = "it" if count == 1 else "them"
    return (
        f"other people's or judges' labels on {counted(count, 'trace')} are left out until {name} "
        f"has finished all work on {pronoun}, or opens {pronoun} as adjudicator on the app's "
        "adjudication or signatures screen"
    )


def viewer_of(
    workspace: Workspace,
    taxonomy: str,
    *,
    annotator: str | None = None,
    blind: bool = False,
    ends_blind: bool = False,
) -> Viewer:
    """Return the viewer for a command.

    The person of this login takes precedence over the name on the command line, so that nothing is
    recorded under another's name.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy, as ``id@version``.
        annotator: The name on the command line.
        blind: True to hide what blind annotators may not see, for this command.
        ends_blind: True to end the person's blind work, and record that.

    Raises:
        SessionError: The name is not valid.
    """
    annotator = _checked_annotator(annotator)
    name = login_person(workspace) or annotator
    if name is None:
        return Viewer(workspace, taxonomy, blind=blind)
    viewer = viewer_for_name(workspace, taxonomy, name, blind=blind, ends_blind=ends_blind)
    return structs.replace(viewer, overridden_name=annotator if annotator != name else None)


def _checked_annotator(annotator: str | None) -> str | None:
    """Return the name on the command line without surrounding spaces.

    Raises:
        SessionError: The name is not valid.
    """
    try:
        return None if annotator is None else checked_person(annotator)
    except ValueError as error:
        raise SessionError(str(error)) from error


def viewer_for_name(
    workspace: Workspace, taxonomy: str, name: str, *, blind: bool, ends_blind: bool
) -> Viewer:
    """Return the viewer for a person.

    Args:
        workspace: The workspace.
        taxonomy: The taxonomy, as ``id@version``.
        name: The person's name.
        blind: True to hide what blind annotators may not see, for this command.
        ends_blind: True to end the person's blind work, and record that.
    """
    is_labelling = _is_labelling(workspace, taxonomy, name)
    study = workspace.study(taxonomy)
    is_blind = blind_by_study(workspace, study, name) if is_labelling else None
    if is_blind is None:  # the person does not label, or may choose
        is_blind = any(
            annotator.blind for annotator in workspace.annotators() if annotator.name == name
        )
    if ends_blind and is_blind:
        _leave_blind(workspace, taxonomy, name)
    return Viewer(
        workspace,
        taxonomy,
        name,
        blind=blind or (is_blind and not ends_blind),
        sees_finished_only=blind or is_labelling,
    )


def _is_labelling(workspace: Workspace, taxonomy: str, name: str) -> bool:
    """Return whether a person labels under a taxonomy, or is about to start."""
    info = next((info for info in workspace.annotators() if info.name == name), None)
    study = workspace.study(taxonomy)
    return (
        info is None
        or info.blind is not None
        or (study is not None and name in study.annotators)
        or any(
            trace_pass.kind is not PassKind.ADJUDICATION
            for trace_pass in workspace.passes(annotator=name, taxonomy=taxonomy)
        )
    )


def _leave_blind(workspace: Workspace, taxonomy: str | None, name: str) -> None:
    """Record that a person leaves blind work; register the name if it is new."""
    if all(info.name != name for info in workspace.annotators()):
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
    resolve_blind(workspace, name, assisted=True, taxonomy=taxonomy)


def why_blind(workspace: Workspace, annotator: str | None, *, ends_blind: bool) -> str | None:
    """Return why the person works blind, as a clause with the workspace.

    Args:
        workspace: The workspace.
        annotator: The name on the command line, used if this login has no name.
        ends_blind: True to end and record the blind work, and return None.

    Returns:
        The clause; None if the person is unknown or does not work blind.

    Raises:
        SessionError: The name is not valid.
    """
    name = login_person(workspace) or _checked_annotator(annotator)
    if name is None:
        return None
    reasons: dict[str | None, str] = {}  # By taxonomy; None is the person's own setting.
    if any(info.blind for info in workspace.annotators() if info.name == name):
        reasons[None] = f"{name} works blind in {workspace.name}"
    for taxonomy in workspace.taxonomies():
        study = workspace.study(taxonomy.ref)
        if (
            study is not None
            and blind_by_study(workspace, study, name)
            and _is_labelling(workspace, taxonomy.ref, name)
        ):
            outside_text = f", also for {name}, who is not in it"
            reasons[taxonomy.ref] = (
                f"the study in {workspace.name} is blind"
                f"{'' if name in study.annotators else outside_text}"
            )
    if not ends_blind:
        return next(iter(reasons.values()), None)
    for ref in reasons:
        _leave_blind(workspace, ref, name)
    return None
