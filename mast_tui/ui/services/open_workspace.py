"""The open workspace with who works in it: the annotator, the taxonomy, what they may see.

Nothing here is imported before the first frame is on screen: the workspace brings SQLAlchemy.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from platformdirs import user_data_path
from textual.screen import Screen

from mast_tui.labels import AnnotatorKind, checked_person
from mast_tui.session import (
    LibraryEntry,
    QueueItem,
    QueueKind,
    Session,
    checked_new_name,
    library_view,
    outside_study_text,
    queue,
    remember_person,
    resolve_blind,
    retest_progress,
    withheld_traces_of,
    working_person,
)
from mast_tui.study import Study, assigned
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.private_files import make_private
from mast_tui.traces.model import Trace
from mast_tui.ui.dialogs.name import NameScreen
from mast_tui.ui.dialogs.welcome import WelcomeScreen
from mast_tui.ui.options import AppOptions
from mast_tui.workspace import Workspace, why_not_trusted
from mast_tui.workspace.paths import default_workspace_path, samples_workspace_path, suggested_name


@dataclass(slots=True)
class OpenWorkspace:
    """An open workspace with the person who works in it."""

    workspace: Workspace
    taxonomy: Taxonomy
    annotator: str
    blind: bool
    adjudicates: bool = False
    """Whether a study counts this person among its adjudicators and not among its annotators."""
    _listed: Mapping[str, LibraryEntry] = field(default_factory=dict)

    def open(self, trace: Trace) -> Session:
        """The annotator's session on a trace, with what is shown of others read."""
        who = self.annotator
        session = Session.open(self.workspace, trace, self.taxonomy, who, blind=self.blind)
        session.show_state(session.read_state(passes=False))
        return session

    def study(self) -> Study | None:
        """The study under the taxonomy, where there is one."""
        return self.workspace.study(self.taxonomy.ref)

    def follow_study(self) -> None:
        """Work as a study says that was set up or changed meanwhile."""
        self.learn_role()
        self.blind = resolve_blind(self.workspace, self.annotator, taxonomy=self.taxonomy.ref)

    def learn_role(self) -> None:
        """Read whether this person adjudicates under the study, which titles show at once."""
        study = self.study()
        self.adjudicates = (
            study is not None
            and self.annotator in study.adjudicators
            and self.annotator not in study.annotators
        )

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
        """The ids of the traces on which a study withholds suggestions from the annotator."""
        return withheld_traces_of(self.workspace, self.study(), self.annotator)

    def library_view(self) -> Mapping[str, LibraryEntry]:
        """What the library may tell of each trace.

        While a server is away that is one's own work as it is now, and all else as it was.
        """
        now = library_view(self.workspace, self.annotator, self.taxonomy.ref, blind=self.blind)
        if self.workspace.away:
            before = self._listed
            now = {
                trace_id: replace(before[trace_id], state=one.state, own_labels=one.own_labels)
                if trace_id in before
                else one
                for trace_id, one in now.items()
            }
        self._listed = now
        return now

    def queue(self, kind: str, *, n: int, seed: int | None) -> Sequence[QueueItem]:
        """The traces of a queue in its order.

        Args:
            kind: Which queue, a value of ``QueueKind``.
            n: How many traces to draw where it is a sample.
            seed: By what they are drawn; None: the study's.

        Raises:
            MastError: There is no such queue here, in words.
        """
        return queue(self.workspace, self.taxonomy, self.annotator, QueueKind(kind), n=n, seed=seed)

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


class Opening:
    """How a workspace comes to be open: which one it is, what is in doubt, who works in it."""

    workspace: Workspace
    """The workspace, once it is open."""
    known: str | None = None
    """The name of the person who works in it; None where they must be asked."""
    study: Study | None = None
    """The study under the taxonomy, once the workspace is open."""

    def __init__(self, options: AppOptions, configured: str | None) -> None:
        """Look for what the options mean.

        Args:
            options: Which workspace, who works in it, and under which sight.
            configured: The name that a file of settings has for the annotator.
        """
        self._options = options
        self._configured = configured
        self.found = self.found_now()
        """The workspace that is used because it lies here or above, None where one is named."""

    def found_now(self) -> Path | None:
        """The workspace that would be used now because it lies here or above."""
        if self._options.workspace is not None or self._options.samples:
            return None
        return default_workspace_path(Path.cwd())

    def doubts(self) -> str | None:
        """Why somebody else may have prepared the workspace that was found; None if nothing says
        so."""
        return None if self.found is None else why_not_trusted(self.found)

    def open(self, taxonomy: str) -> None:
        """Open it, with the samples' labels where it is theirs and new.

        Args:
            taxonomy: The taxonomy to label with, as ``id@version``.

        Raises:
            MastError: It cannot be opened.
        """
        options = self._options
        if options.workspace is not None:
            self.workspace = Workspace.open(options.workspace, password=options.password)
        elif not options.samples:
            self.workspace = Workspace.open(default_workspace_path(Path.cwd()))
        else:
            self.workspace = Workspace.open(samples_workspace_path())
            if options.fill_new_workspace is not None:
                options.fill_new_workspace(self.workspace)
        self.study = self.workspace.study(taxonomy)
        self.known = working_person(self.workspace, options.annotator, study=self.study)

    def name_question(self) -> NameScreen:
        """Ask who labels, with the people of the study or those who are here already."""
        study = self.study
        if study is None:
            people = [(name, "") for name in people_in(self.workspace)]
        else:
            parts = dict.fromkeys(study.adjudicators, "adjudicator")
            parts |= dict.fromkeys(study.annotators, "annotator")
            people = [(name, parts[name]) for name in study.participants]
        return NameScreen(
            people,
            suggested=suggested_name(self._configured),
            in_study=study is not None,
            check=lambda name: checked_new_name(self.workspace, name),
            outside=lambda name: outside_study_text(name, study),
        )

    def outside_notice(self, name: str) -> str | None:
        """Say that labels under a name from the command line will not count; None if they do."""
        if self._options.annotator is None or self.workspace.member is not None:
            return None
        return outside_study_text(name, self.study)

    def attach(self, taxonomy: Taxonomy, name: str) -> OpenWorkspace:
        """Remember who works here and under which sight.

        Raises ``MastError`` in words.
        """
        workspace, options = self.workspace, self._options
        name = checked_person(name)
        if options.taxonomy is None:
            taxonomy = workspace.as_worded(taxonomy)
        workspace.add_taxonomy(taxonomy)
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
        workspace.keep_waiting(user_data_path("mast-tui", appauthor=False) / "outbox", name)
        if options.annotator is None:
            remember_person(workspace, name)
        blind = resolve_blind(
            workspace,
            name,
            blind=options.blind,
            assisted=options.assisted,
            taxonomy=taxonomy.ref,
        )
        opened = OpenWorkspace(workspace, workspace.with_places(taxonomy), name, blind)
        opened.learn_role()
        return opened

    @staticmethod
    def welcome(
        ask: Callable[[Screen[bool], Callable[[bool | None], None]], None], opened: OpenWorkspace
    ) -> None:
        """Show the welcome, by ``ask``, to who has not seen and dismissed it."""
        if _welcome_file().exists():
            return

        def closed(seen: bool | None) -> None:
            if seen:
                remember_welcome()

        ask(WelcomeScreen(opened.taxonomy, blind=opened.blind), closed)


def people_in(workspace: Workspace) -> tuple[str, ...]:
    """Return the names of the people who have worked in this workspace."""
    return tuple(info.name for info in workspace.annotators() if info.kind is AnnotatorKind.HUMAN)


def _welcome_file() -> Path:
    return user_data_path("mast-tui") / "welcomed"


def remember_welcome() -> None:
    """Do not show the welcome again; where that cannot be written it is shown next time."""
    with contextlib.suppress(OSError):
        make_private(_welcome_file().parent)
        _welcome_file().touch(0o600)
