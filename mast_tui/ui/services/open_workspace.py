"""The open workspace with who works in it: the annotator, the taxonomy, what they may see.

Nothing here is imported before the first frame is on screen: the workspace brings SQLAlchemy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from mast_tui.labels import AnnotatorKind, check_unlike, checked_person
from mast_tui.session import Session, known_person, remember_person, resolve_sight, retest_progress
from mast_tui.study import Study, assigned, withheld_traces
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.traces.private_files import make_private
from mast_tui.ui.options import AppOptions
from mast_tui.workspace import Workspace, default_workspace_path
from mast_tui.workspace.places import samples_workspace_path, suggested_name


@dataclass(slots=True)
class OpenWorkspace:
    """An open workspace with the person who works in it."""

    workspace: Workspace
    taxonomy: Taxonomy
    annotator: str
    blind: bool

    def open(self, trace: Trace) -> Session:
        """The annotator's session on a trace."""
        return Session.open(self.workspace, trace, self.taxonomy, self.annotator, blind=self.blind)

    def study(self) -> Study | None:
        """The study under the taxonomy, where there is one."""
        return self.workspace.study(self.taxonomy.ref)

    def follow_study(self) -> None:
        """Work as a study says that was set up or changed meanwhile."""
        if self.annotates:
            self.blind = resolve_sight(self.workspace, self.annotator, taxonomy=self.taxonomy.ref)

    @property
    def annotates(self) -> bool:
        """Whether a study counts this person among its annotators."""
        study = self.study()
        return study is not None and self.annotator in study.annotators

    def own_traces(self) -> Set[str] | None:
        """Ids of the traces that a study gives to the annotator; None where it gives none, and
        without a study."""
        study = self.study()
        if study is None or self.annotator not in study.annotators:
            return None
        return frozenset(assigned(study, self.annotator))

    def withheld(self) -> Set[str]:
        """Ids of the traces on which a study keeps from the annotator what judges say."""
        study = self.study()
        return frozenset() if study is None else withheld_traces(study, self.annotator)

    @property
    def judges_hidden(self) -> bool:
        """Whether what judges find must not be counted: working blind, or as long as a study
        withholds it on some traces, since a count would tell of these too."""
        return self.blind or bool(self.withheld() - self.finished())

    def finished(self) -> Set[str]:
        """Ids of the traces that the annotator has finished.

        What a study lets come back to be labelled once more is unfinished until that is done, here
        as in every list, so that nothing tells it from other work.
        """
        ref, study = self.taxonomy.ref, self.study()
        found = self.workspace.finished_traces(self.annotator, ref)
        if study is None or not study.retests:
            return found
        return found - retest_progress(self.workspace, self.annotator, ref).now


def found_workspace(options: AppOptions) -> Path | None:
    """The workspace that is used because it lies here or above, None where one is named."""
    if options.workspace is not None or options.samples:
        return None
    return default_workspace_path(Path.cwd())


def open_workspace(options: AppOptions) -> Workspace:
    """The workspace that the options name, with the samples' labels where it is theirs and new.

    Raises ``WorkspaceError`` in words.
    """
    if options.workspace is not None:
        return Workspace.open(options.workspace)
    if not options.samples:
        return Workspace.open(default_workspace_path(Path.cwd()))
    workspace = Workspace.open(samples_workspace_path())
    if options.furnish is not None:
        options.furnish(workspace)
    return workspace


def known_annotator(workspace: Workspace, options: AppOptions) -> str | None:
    """The annotator given, or the one who worked here last under this login."""
    if options.annotator is not None:
        return checked_person(options.annotator)
    return known_person(workspace)


def people(workspace: Workspace) -> tuple[str, ...]:
    """The people who have worked in this workspace."""
    return tuple(info.name for info in workspace.annotators() if info.kind is AnnotatorKind.HUMAN)


def unlike_others(workspace: Workspace, name: str) -> str:
    """Return the name of somebody who begins to label.

    Args:
        workspace: Where they label.
        name: What was typed.

    Raises:
        ValueError: It cannot be a name, or looks like that of somebody who is here.
    """
    name = checked_person(name)
    known = [info.name for info in workspace.annotators()]
    if name not in known:
        check_unlike(name, known)
    return name


def name_to_suggest(configured: str | None) -> str:
    """The name to fill in where nobody is known yet."""
    return suggested_name(configured)


def attach(
    workspace: Workspace, taxonomy: Taxonomy, name: str, options: AppOptions
) -> OpenWorkspace:
    """Remember who works here and under which sight.

    Raises ``ValueError`` or ``WorkspaceError`` in words.
    """
    name = checked_person(name)
    workspace.add_taxonomy(taxonomy)
    workspace.add_annotator(name, AnnotatorKind.HUMAN)
    if options.annotator is None:
        remember_person(workspace, name)
    blind = resolve_sight(
        workspace,
        name,
        blind=options.blind,
        assisted=options.assisted,
        taxonomy=taxonomy.ref,
    )
    return OpenWorkspace(workspace, taxonomy, name, blind)


def _welcome_file() -> Path:
    return user_data_path("mast-tui") / "welcomed"


def was_welcomed() -> bool:
    """Whether this user has seen and dismissed the welcome."""
    return _welcome_file().exists()


def remember_welcome() -> None:
    """Do not show the welcome again; where that cannot be written it is shown next time."""
    with contextlib.suppress(OSError):
        make_private(_welcome_file().parent)
        _welcome_file().touch(0o600)
