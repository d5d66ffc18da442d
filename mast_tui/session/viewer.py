"""Who asks for labels and figures on the command line, and what they may see of them.

The screens know who sits there. A command is told with ``--annotator NAME``, or by the login under
which somebody worked in this workspace; where neither names anybody, nobody's sight limits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from mast_tui.errors import SessionError
from mast_tui.labels import (
    AnnotatorKind,
    PassKind,
    annotator_kind,
    check_unlike,
    checked_person,
)
from mast_tui.session.visibility import (
    blind_by_study,
    library_view,
    record_reveal,
    resolve_blind,
    said_by,
    visible_traces_for_agreement,
)
from mast_tui.study import Study
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import login_setting
from mast_tui.workspace.records import Role


def login_person(workspace: Workspace) -> str | None:
    """Name whose password a server was given, else who worked here last under this login; or
    return None."""
    if workspace.member is not None:
        return None if workspace.member.role is Role.JUDGE else workspace.member.name
    return workspace.get_setting(login_setting())


def working_person(
    workspace: Workspace, named: str | None, *, study: Study | None = None
) -> str | None:
    """Return the name of the person who works here; None where they must be asked.

    Args:
        workspace: The workspace they work in.
        named: The name on the command line. It counts before the name that is remembered for the
            login, but not before that of a server's member.
        study: The study they work in. A name that is remembered from other work and has no part in
            the study is not used again.
    """
    if workspace.member is not None:
        return login_person(workspace)
    if named is not None:
        return checked_person(named)
    name = login_person(workspace)
    return None if study is not None and name not in study.participants else name


def outside_study_text(name: str, study: Study | None) -> str | None:
    """Say that somebody has no part in a study; None where they have one or there is no study.

    Args:
        name: The person's name.
        study: The study.
    """
    if study is None or name in study.participants:
        return None
    return f"{name} is not in this study; these labels will not count"


def remember_person(workspace: Workspace, name: str) -> None:
    """Let this login stand for ``name`` from now on."""
    workspace.set_setting(login_setting(), name)


def checked_new_name(workspace: Workspace, name: str) -> str:
    """Return the name of somebody who begins to label.

    Args:
        workspace: Where they label.
        name: What was typed.

    Raises:
        MastError: It cannot be a name, or looks like that of somebody who is here.
    """
    name = checked_person(name)
    known = [info.name for info in workspace.annotators()]
    if name not in known:
        check_unlike(name, known)
    return name


@dataclass(frozen=True)
class Viewer:
    """Who asks, under one taxonomy.

    ``name`` is None where nobody is known. ``limited`` is whether they label here: only then is
    anything hidden from them. ``named`` is somebody else, whom the command line names.
    """

    workspace: Workspace
    taxonomy: str
    name: str | None = None
    blind: bool = False
    limited: bool = False
    named: str | None = None

    @cached_property
    def traces(self) -> frozenset[str] | None:
        """The traces on which they may see what others say; None for all."""
        if self.name is None or not self.limited:
            return None
        return visible_traces_for_agreement(self.workspace, self.name, self.taxonomy)

    @cached_property
    def others(self) -> frozenset[str]:
        """The traces that somebody else has finished, judges not counted."""
        return self._said_by(judges=False)

    @cached_property
    def _said(self) -> dict[str, frozenset[str]]:
        return said_by(self.workspace, self.taxonomy)

    def _said_by(self, *, judges: bool) -> frozenset[str]:
        return frozenset[str]().union(
            *(
                traces
                for name, traces in self._said.items()
                if name != self.name and (annotator_kind(name) is AnnotatorKind.JUDGE) is judges
            )
        )

    @property
    def hidden(self) -> frozenset[str]:
        """The traces of ``others`` that are hidden from them."""
        return frozenset() if self.traces is None else self.others - self.traces

    def may_see_others(self, trace_id: str) -> bool:
        """Whether they may see what others say of a trace."""
        return self.traces is None or trace_id in self.traces

    def may_see_judges(self) -> Callable[[str], bool]:
        """Make a test whether they may see what judges say of a trace, as things stand now."""
        return self._visible(judges=True)

    def may_see_outcomes(self) -> Callable[[str], bool]:
        """Make a test whether they may see the outcome of a trace, as things stand now."""
        return self._visible(judges=False)

    def _visible(self, *, judges: bool) -> Callable[[str], bool]:
        if self.name is None or not self.limited:
            return lambda _trace_id: not self.blind
        view = library_view(self.workspace, self.name, self.taxonomy, blind=self.blind)

        def visible(trace_id: str) -> bool:
            entry = view.get(trace_id)
            if entry is None:
                return not self.blind
            return entry.suggestions_visible if judges else entry.hidden_visible

        return visible

    @property
    def judges_hidden(self) -> bool:
        """Whether what judges find must not be counted: it would tell of traces on which they may
        not know of it."""
        if self.blind or self.name is None or not self.limited:
            return self.blind
        view = library_view(self.workspace, self.name, self.taxonomy, blind=False)
        return any(entry.withheld for entry in view.values())

    def reveal(self, trace_ids: Iterable[str], *, judges: bool = False) -> None:
        """Record that they are shown what others say of these traces.

        Args:
            trace_ids: What is shown; of it those traces are recorded on which others have spoken.
            judges: Whether judges' words are shown as well: then also those on which these
                were hidden.
        """
        if self.name is None or self.traces is None:
            return
        shown = self.traces.intersection(trace_ids)
        told = shown & self.others
        if judges:
            may_see = self.may_see_judges()
            judged = shown & self._said_by(judges=True)
            told |= {trace_id for trace_id in judged if not may_see(trace_id)}
        record_reveal(self.workspace, self.name, self.taxonomy, sorted(told))


def visibility_json(viewer: Viewer, left_out: Sized) -> dict[str, dict[str, Any]]:
    """Make the field ``sight`` of a document: whose sight it keeps to, and what that left out.

    Nothing where nobody's sight limits it.

    Args:
        viewer: Who asks.
        left_out: The traces that are left out.
    """
    if viewer.name is None or not viewer.limited:
        return {}
    return {
        "sight": {
            "annotator": viewer.name,
            "blind": viewer.blind,
            "left_out": len(left_out),
            "reason": "hidden_until_finished",
        }
    }


def hidden_traces_text(name: str, count: int) -> str:
    """Say that traces are left out, why, and what to do.

    Args:
        name: From whom they are hidden.
        count: How many they are, one at least.
    """
    # Some may be finished and come back to be labelled once more, which must not be told.
    if count == 1:
        these, they, them = "1 trace is", "it is", "it"
    else:
        these, they, them = f"{count} traces are", "they are", "them"
    return (
        f"{these} left out: what others say of {them} is hidden from {name} until {they} finished; "
        f"or take {them} on as adjudicator on the agreement screen of the app"
    )


def viewer_of(
    workspace: Workspace,
    taxonomy: str,
    *,
    annotator: str | None = None,
    blind: bool = False,
    assisted: bool = False,
) -> Viewer:
    """Find out who asks, and whether they label here.

    Somebody whom the workspace knows for this login asks as that person, whoever is named: nothing
    is shown or recorded under another's name. They label here where they have begun a trace, are an
    annotator of the study, or have said once how they work; somebody named who is not known here
    is about to. ``blind`` hides for this once; leaving blind is recorded.

    Args:
        workspace: Where to look.
        taxonomy: Under which taxonomy, as ``id@version``.
        annotator: Whom the command line names.
        blind: Hide what somebody who works blind may not see.
        assisted: Stop to work blind.

    Raises:
        SessionError: The name cannot be one.
    """
    if annotator is not None:
        try:
            annotator = checked_person(annotator)
        except ValueError as error:
            raise SessionError(str(error)) from error
    name = login_person(workspace) or annotator
    if name is None:
        return Viewer(workspace, taxonomy, blind=blind)
    viewer = viewer_for_name(workspace, taxonomy, name, blind=blind, assisted=assisted)
    return replace(viewer, named=annotator if annotator != name else None)


def viewer_for_name(
    workspace: Workspace, taxonomy: str, name: str, *, blind: bool, assisted: bool
) -> Viewer:
    """Return what somebody whose name is known may see, as ``viewer_of`` does.

    Args:
        workspace: Where to look.
        taxonomy: Under which taxonomy, as ``id@version``.
        name: Who asks.
        blind: Hide what somebody who works blind may not see.
        assisted: Stop to work blind.
    """
    labels_here = _labels_here(workspace, taxonomy, name)
    study = workspace.study(taxonomy)
    before = blind_by_study(workspace, study, name) if labels_here else None
    if before is None:
        before = any(one.blind for one in workspace.annotators() if one.name == name)
    if assisted and before:
        _leave_blind(workspace, taxonomy, name)
    return Viewer(
        workspace,
        taxonomy,
        name,
        blind=blind or (before and not assisted),
        limited=blind or labels_here,
    )


def _labels_here(workspace: Workspace, taxonomy: str, name: str) -> bool:
    """Return whether somebody labels under a taxonomy, or is about to as nobody knows them yet."""
    info = next((one for one in workspace.annotators() if one.name == name), None)
    study = workspace.study(taxonomy)
    return (
        info is None
        or info.blind is not None
        or (study is not None and name in study.annotators)
        or any(
            one.kind is not PassKind.ADJUDICATION
            for one in workspace.passes(annotator=name, taxonomy=taxonomy)
        )
    )


def _leave_blind(workspace: Workspace, taxonomy: str | None, name: str) -> None:
    """Record that somebody leaves blind work; a name that is new here is registered for it."""
    if all(one.name != name for one in workspace.annotators()):
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
    resolve_blind(workspace, name, assisted=True, taxonomy=taxonomy)


def works_blind(workspace: Workspace, annotator: str | None, *, assisted: bool) -> str | None:
    """Return the name of the person who asks if they work blind, by themselves or by any study.

    Args:
        workspace: The workspace.
        annotator: The name on the command line; it counts if this login has no name here.
        assisted: Leave blind, which is recorded.

    Returns:
        The name; None if nobody is known or they do not work blind.
    """
    name = login_person(workspace) or annotator
    if name is None:
        return None
    blind: list[str | None] = []
    if any(one.blind for one in workspace.annotators() if one.name == name):
        blind.append(None)
    blind.extend(
        taxonomy.ref
        for taxonomy in workspace.taxonomies()
        if blind_by_study(workspace, workspace.study(taxonomy.ref), name)
        and _labels_here(workspace, taxonomy.ref, name)
    )
    if not blind:
        return None
    if not assisted:
        return name
    for ref in blind:
        _leave_blind(workspace, ref, name)
    return None
