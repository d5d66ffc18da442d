"""The open workspace with its annotator, taxonomy and visibility.

The workspace imports SQLAlchemy, so nothing here is imported before the first frame.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field, structs
from platformdirs import user_data_path

from mast_tui.labels import AnnotatorKind, checked_person
from mast_tui.safe_text import one_line
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
    trace_masks,
    withheld_traces_of,
    working_person,
)
from mast_tui.study import Study, assigned
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.io.private_files import make_private
from mast_tui.traces.model import Trace
from mast_tui.ui.dialogs.opening import NameScreen, WelcomeScreen, first_keys
from mast_tui.ui.options import AppOptions
from mast_tui.ui.wording import joined_names
from mast_tui.workspace import Workspace, why_not_trusted
from mast_tui.workspace.paths import default_workspace_path, samples_workspace_path, suggested_name

if TYPE_CHECKING:
    from mast_tui.redaction.masked_trace import Masks
    from mast_tui.ui.context import MastApp


class OpenWorkspace(Struct):
    """An open workspace and the person who works in it."""

    workspace: Workspace
    taxonomy: Taxonomy
    annotator: str
    blind: bool
    adjudicates: bool = False
    """Whether this person is an adjudicator, but not an annotator, of the study."""
    decides: bool = True
    """Whether this person is an adjudicator of the study, or the study has none."""
    masks: Masks | None = None
    """The masks of the study over the texts of traces; None if it masks nothing."""
    _last_view: Mapping[str, LibraryEntry] = field(default_factory=dict)

    def open(self, trace: Trace) -> Session:
        """Return the annotator's session on a trace, including the visible work of others."""
        annotator = self.annotator
        session = Session.open(self.workspace, trace, self.taxonomy, annotator, blind=self.blind)
        # ``Session.open`` has already read the annotator's own work.
        session.show_state(session.read_state(with_own_work=False))
        return session

    def earlier_content_text(self, session: Session) -> str:
        """Return a message on the annotator's labels on an earlier content of the trace's file.

        The text is empty if there are none, or if the present trace is labelled.
        """
        if session.current is not None or self.workspace.path is None:
            return ""
        earlier_ids = self.workspace.earlier_contents(session.trace_id, session.annotator)
        if not earlier_ids:
            return ""
        return (
            "This file has changed since you labelled it: your labels stay in the workspace, on "
            f"{one_line(', '.join(earlier_ids))}"
        )

    def study(self) -> Study | None:
        """Return the study under the taxonomy, or None."""
        return self.workspace.study(self.taxonomy.ref)

    def follow_study(self) -> None:
        """Update the role and visibility of the annotator after a change of the study."""
        self.learn_role()
        study = self.study()
        # Making masks compiles many patterns, so it is done only when masking begins or ends.
        if self.masks is None or study is None or not study.redact:
            self.masks = trace_masks(study)
        self.blind = resolve_blind(self.workspace, self.annotator, taxonomy=self.taxonomy.ref)

    def learn_role(self) -> None:
        """Update the role of the annotator in ``decides`` and ``adjudicates``."""
        study = self.study()
        self.decides = study is None or study.is_adjudicator(self.annotator)
        self.adjudicates = (
            study is not None
            and self.annotator in study.adjudicators
            and self.annotator not in study.annotators
        )

    @property
    def annotates(self) -> bool:
        """True if this person is an annotator of the study."""
        study = self.study()
        return study is not None and self.annotator in study.annotators

    def own_traces(self) -> Set[str] | None:
        """Return the ids of the traces that the study assigns to the annotator; None without one.

        There are none if the user is not one of its annotators.
        """
        study = self.study()
        return None if study is None else frozenset(assigned(study, self.annotator))

    def hidden_traces(self) -> Set[str]:
        """Return the ids of the traces on which a study hides suggestions from the annotator."""
        return withheld_traces_of(self.workspace, self.study(), self.annotator)

    def library_view(self) -> Mapping[str, LibraryEntry]:
        """Return the visible facts of each trace for the library, by trace id.

        While a server is away, only the annotator's own work is updated.
        """
        entry_by_trace = dict(
            library_view(self.workspace, self.annotator, self.taxonomy.ref, blind=self.blind)
        )
        if self.workspace.away:
            for trace_id, entry in entry_by_trace.items():
                last_entry = self._last_view.get(trace_id)
                if last_entry is not None:
                    entry_by_trace[trace_id] = structs.replace(
                        last_entry, state=entry.state, own_labels=entry.own_labels
                    )
        self._last_view = entry_by_trace
        return entry_by_trace

    def queue(self, kind: str, *, n: int, seed: int | None) -> Sequence[QueueItem]:
        """Return the traces of a queue in its order.

        Args:
            kind: The value of a ``QueueKind``.
            n: The number of traces of a sample.
            seed: The seed of a sample; None for the seed of the study.

        Raises:
            MastError: There is no such queue here.
        """
        return queue(self.workspace, self.taxonomy, self.annotator, QueueKind(kind), n=n, seed=seed)

    @property
    def judges_hidden(self) -> bool:
        """True if the number of judges' suggestions is hidden from the annotator.

        It is hidden from a blind annotator, and while the study hides suggestions on an unfinished
        trace, because the number would include them.
        """
        return self.blind or bool(self.hidden_traces() - self.finished())

    def finished(self) -> Set[str]:
        """Return the ids of the traces that the annotator has finished, without ``retests``."""
        return self.workspace.finished_traces(self.annotator, self.taxonomy.ref) - self.retests()

    def retests(self) -> Set[str]:
        """Return the ids of the finished traces that the annotator must label again now."""
        study = self.study()
        if study is None or not study.retests:
            return frozenset()
        return retest_progress(self.workspace, self.annotator, self.taxonomy.ref).current


class Opening:
    """The steps to open a workspace: finding it, trusting it, and naming its annotator."""

    workspace: Workspace
    """The open workspace. It is set by ``open``."""
    annotator: str | None = None
    """The name of the annotator; None to ask the user."""
    study: Study | None = None
    """The study under the taxonomy, known after ``open``."""
    masks: Masks | None = None
    """The masks of the study over the texts of traces; None if it masks nothing."""
    lead: str | None = None
    """The person who set up the study, known after ``open``."""

    def __init__(self, options: AppOptions, configured: str | None) -> None:
        """Find the workspace of the options.

        Args:
            options: The workspace, the annotator and the visibility.
            configured: The name of the annotator in the settings.
        """
        self._options = options
        self._configured = configured
        self._sample_annotators: tuple[str, ...] = ()
        """The annotators of the samples' labels; empty unless the user is asked for a name."""
        self._has_asked_name = False
        """True once the dialog for the name was made."""
        is_named = options.workspace is not None or options.samples
        self.default = None if is_named else default_workspace_path(Path.cwd())
        """The default workspace in this folder or a folder above; None if the options name one."""

    def distrust_reason(self) -> str | None:
        """Return a reason not to trust the default workspace, or None.

        Another person may have prepared it.
        """
        return None if self.default is None else why_not_trusted(self.default)

    def open(self, taxonomy: str) -> None:
        """Open the workspace, and read its study and annotator.

        A new workspace of the samples is filled with their labels.

        Args:
            taxonomy: The taxonomy to label with, as ``id@version``.

        Raises:
            MastError: The workspace cannot be opened.
        """
        options = self._options
        if options.workspace is not None:
            self.workspace = Workspace.open(options.workspace, password=options.password)
        elif self.default is not None:
            self.workspace = Workspace.open(self.default)
        else:
            self.workspace = Workspace.open(samples_workspace_path())
            if options.fill_new_workspace is not None:
                options.fill_new_workspace(self.workspace)
        self.study = self.workspace.study(taxonomy)
        self.lead = self.workspace.study_leads().get(taxonomy)
        self.masks = trace_masks(self.study)
        self.annotator = working_person(self.workspace, options.annotator, study=self.study)
        if options.samples and self.annotator is None:
            self._sample_annotators = people_in(self.workspace)

    @property
    def lacks_masks(self) -> bool:
        """True if the study masks texts, but the masks could not be made."""
        return self.study is not None and self.study.redact and self.masks is None

    def name_question(self, present_name: str | None = None) -> NameScreen:
        """Return the dialog that asks for the name of the annotator.

        Args:
            present_name: The annotator who works here now; None at the start.
        """
        self._has_asked_name = True
        study = self.study
        if study is None:
            people = [(name, "") for name in people_in(self.workspace)]
        else:
            role_by_name = dict.fromkeys(study.adjudicators, "adjudicator")
            role_by_name |= dict.fromkeys(study.annotators, "annotator")
            people = [(name, role_by_name[name]) for name in study.participants]
        proposal = present_name or suggested_name(self._configured)
        is_new_name = all(proposal != name for name, _ in people)
        if people and is_new_name and not self._options.samples:
            proposal = ""  # a hasty Enter would begin the work of one more annotator
        return NameScreen(
            people,
            suggested_name=proposal,
            saved_text=self.saved_text(),
            escape="quits" if present_name is None else "cancels",
            in_study=study is not None,
            check=lambda name: checked_new_name(self.workspace, name),
            outside_study_reason=lambda name: outside_study_text(name, study),
        )

    def outside_notice(self, name: str) -> str | None:
        """Return a notice that labels under a name outside the study will not count, or None.

        Only a name from the command line needs the notice. The dialog for the name shows it itself,
        a server gives the names of its members, and the lead knows who labels.
        """
        is_member = self.workspace.member is not None
        if self._options.annotator is None or is_member or name == self.lead:
            return None
        return outside_study_text(name, self.study)

    def remembered_blind_notice(self, opened: OpenWorkspace) -> str | None:
        """Return a notice that the annotator works blind as at an earlier start, or None.

        None if the options, the study or the server have decided about it.
        """
        is_decided = self._options.blind or self.study is not None or opened.workspace.member
        if not opened.blind or is_decided:
            return None
        return "You work blind, as last time: mast-tui --assisted shows suggestions"

    def attach(self, taxonomy: Taxonomy, name: str) -> OpenWorkspace:
        """Register the annotator and the taxonomy, and return the open workspace.

        Args:
            taxonomy: The taxonomy to label with.
            name: The name of the annotator.

        Raises:
            MastError: The workspace refuses the name or the taxonomy.
        """
        workspace = self.workspace
        options = self._options
        name = checked_person(name)
        if options.taxonomy is None:  # MAST may have another wording in this workspace.
            taxonomy = workspace.as_worded(taxonomy)
        workspace.add_taxonomy(taxonomy)
        workspace.add_annotator(name, AnnotatorKind.HUMAN)
        workspace.open_outbox(user_data_path("mast-tui", appauthor=False) / "outbox", name)
        if options.annotator is None:
            remember_person(workspace, name)
        blind = resolve_blind(
            workspace,
            name,
            blind=options.blind,
            assisted=options.assisted,
            taxonomy=taxonomy.ref,
        )
        # Modes keep their digits from earlier versions of the taxonomy.
        opened = OpenWorkspace(workspace, workspace.with_positions(taxonomy), name, blind)
        opened.learn_role()
        opened.masks = self.masks
        return opened

    def saved_text(self) -> str:
        """Return where labels are saved, and whether the samples have labels."""
        path = self.workspace.path
        location = "on the server of this workspace" if path is None else f"in {_short(path)}"
        text = f"Your labels are saved at once {location}."
        if not self._options.samples:
            return text
        names = f" {joined_names(self._sample_annotators)}" if self._sample_annotators else ""
        return f"These are sample traces, with labels of sample annotators{names}. {text}"

    def welcome(self, app: MastApp, opened: OpenWorkspace) -> None:
        """Show the first keys, unless the user has closed them before.

        If nobody was asked for a name, the screen also says where labels are saved.

        Args:
            app: The app.
            opened: The open workspace.
        """
        if _welcome_file().exists():
            return

        def remember_if_seen(was_on_screen: bool) -> None:
            # A key pressed before the screen appeared closes the screen unseen.
            if was_on_screen:
                remember_welcome()

        keys = first_keys(
            opened.taxonomy,
            app.key_of,
            blind=opened.blind,
            lists_traces=app.open_trace_id is None,
        )
        saved_text = "" if self._has_asked_name else self.saved_text()
        app.ask(WelcomeScreen(keys, saved_text), remember_if_seen)


def people_in(workspace: Workspace) -> tuple[str, ...]:
    """Return the names of the people who have worked in this workspace."""
    return tuple(info.name for info in workspace.annotators() if info.kind is AnnotatorKind.HUMAN)


def _short(path: Path) -> str:
    """Return a short path, relative to the working folder or the home folder."""
    path = path.absolute()
    if path.is_relative_to(Path.cwd()):
        return f"{path.relative_to(Path.cwd())} (the folder you started in)"
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def _welcome_file() -> Path:
    return user_data_path("mast-tui") / "welcomed"


def remember_welcome() -> None:
    """Store that the welcome screen was closed. Errors while writing are ignored."""
    with contextlib.suppress(OSError):
        make_private(_welcome_file().parent)
        _welcome_file().touch(0o600)
