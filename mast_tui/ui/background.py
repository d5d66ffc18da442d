"""Work that takes time: reading traces, opening the workspace.

Workers only post messages; what they found is taken in by the handlers here.
"""

from __future__ import annotations

from asyncio import wrap_future
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar, runtime_checkable

from textual import on, work
from textual.message import Message

from mast_tui.configuration import Configuration
from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.traces.library import read_file
from mast_tui.ui.key_order import KeysInOrder
from mast_tui.ui.options import AppOptions
from mast_tui.ui.services.prefetch import Prefetch
from mast_tui.ui.services.trace_scan import (
    TOLD_SECONDS,
    FilesRead,
    LastLook,
    Looking,
    StillReading,
    look_at,
)
from mast_tui.ui.services.workspace_watch import (
    Watch,
    WorkspaceChanged,
    WorkspaceLost,
    place_for_a_copy,
)
from mast_tui.ui.services.workspace_writer import writes

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy
    from mast_tui.ui.services.open_workspace import OpenWorkspace
    from mast_tui.ui.services.trace_catalog import Catalog
    from mast_tui.workspace import Workspace

Result = TypeVar("Result")

PATIENCE: Final = 0.1
"""Seconds for which the first frame waits for a single file."""

LOOK_PATIENCE: Final = 0.3
"""Seconds for which it waits for what was kept of the last look at a folder: it tells at once even
that there is nothing, so that only a disk that hangs is not waited for."""


@dataclass
class WorkspaceOpened(Message):
    """The workspace is open; ``name`` is who worked here last."""

    workspace: Workspace
    name: str | None
    suggested: str


@dataclass
class WorkspaceDoubted(Message):
    """A workspace was found that somebody else may have prepared, and why it may be so."""

    path: Path
    reason: str


@dataclass
class WorkspaceRefused(Message):
    """The workspace could not be opened, and why."""

    reason: str


@runtime_checkable
class ListsTraces(Protocol):
    """A screen that lists what was found."""

    def refresh_rows(self) -> None: ...


@runtime_checkable
class HearsReading(Protocol):
    """A screen that tells how far the reading of a big document has come."""

    def still_reading(self, words: str) -> None: ...


@runtime_checkable
class HearsOthers(Protocol):
    """A screen that shows at once what other programs write to the workspace."""

    def written_elsewhere(self) -> None: ...


@runtime_checkable
class NeedsWorkspace(Protocol):
    """A screen that waits for the workspace."""

    def workspace_failed(self) -> None: ...


class Background(KeysInOrder):
    """The app's workers and what comes of them."""

    options: AppOptions
    configuration: Configuration
    opened: OpenWorkspace | None
    refused: str | None = None
    """Why there is no workspace, where one could not be opened."""
    prefetch: Prefetch
    _watch: Watch | None = None
    _workspace: Workspace | None = None

    @cached_property
    def catalog(self) -> Catalog:
        """The traces that were found, none at first."""
        from mast_tui.ui.services.trace_catalog import Catalog

        return Catalog()

    @property
    def taxonomy(self) -> Taxonomy:
        """The taxonomy that is labelled with."""
        raise NotImplementedError

    def begin_reading(self) -> None:
        """Take in what is there already, for the first frame; read on in a worker.

        That is the trace of a single file, or the first traces of the last look at a folder.
        """
        early = self.prefetch.report(0)  # the first look has waited for it
        if early is not None and len(early.traces) == 1:
            self._files_read(FilesRead([early], True))
            return
        looking = Looking(self._look, self.post_message)
        self.call_after_refresh(looking.go_on)
        self.read_traces(looking)
        first = looking.first(LOOK_PATIENCE)
        if isinstance(first, LastLook):
            self._last_looked(first)

    def _look(self, stopped: Callable[[], bool]) -> Iterator[Message]:
        """What is found, in a thread of its own."""
        if not self.prefetch.single:
            yield from look_at(self.options.paths, stopped, self.post_message)
            return
        yield LastLook(())
        while self.prefetch.report(TOLD_SECONDS) is None and self.prefetch.under_way:
            yield StillReading(self.prefetch.words)
        # There is no report only where reading broke: here it breaks where it is seen.
        report = self.prefetch.report() or read_file(self.options.paths[0], named=True)
        yield FilesRead([report], True)

    @work(group="read", exclusive=True)
    async def read_traces(self, looking: Looking) -> None:
        """Wait until everything has been looked at; leaving ends it."""
        try:
            await wrap_future(looking.over)
        finally:
            looking.stop()

    @on(LastLook)
    def _last_looked(self, message: LastLook) -> None:
        if message.traces:
            self.catalog.checking = True
            self.catalog.add_traces(message.traces)
            self.traces_found()

    @on(StillReading)
    def _still_reading(self, message: StillReading) -> None:
        self.catalog.being_read = message.words
        for screen in self.screen_stack:
            if isinstance(screen, HearsReading):
                screen.still_reading(message.words)

    @on(FilesRead)
    def _files_read(self, message: FilesRead) -> None:
        catalog = self.catalog
        catalog.being_read = ""
        catalog.remove(message.gone)
        for report in message.reports:
            catalog.add(report)
        catalog.looked_at += message.same
        catalog.total = max(catalog.total, message.total)
        if message.done:
            catalog.complete, catalog.checking = True, False
            self.count_finished()
        self.traces_found()

    @work(thread=True, group="workspace", exclusive=True)
    def open_workspace(self, *, trusted: bool = False) -> None:
        """Open the workspace, with the imports that it needs.

        One that others can have prepared is asked about first, unless it is ``trusted``.
        """
        from mast_tui.ui.services import open_workspace as opening
        from mast_tui.workspace.opening import why_not_trusted

        found = opening.found_workspace(self.options)
        doubts = None if found is None or trusted else why_not_trusted(found)
        if found is not None and doubts is not None:
            self.post_message(WorkspaceDoubted(found, doubts))
            return
        try:
            workspace = opening.open_workspace(self.options)
            name = opening.known_annotator(workspace, self.options)
        except MastError as error:
            self.post_message(WorkspaceRefused(str(error)))
            return
        suggested = opening.name_to_suggest(self.configuration.annotator)
        self.post_message(WorkspaceOpened(workspace, name, suggested))

    @on(WorkspaceOpened)
    def _workspace_opened(self, message: WorkspaceOpened) -> None:
        self._workspace = message.workspace
        if message.name is not None:
            self._work_as(message.workspace, message.name)
            return
        from mast_tui.ui.dialogs.note import NoteScreen
        from mast_tui.ui.services.open_workspace import people, unlike_others

        known = people(message.workspace)
        question = "Your labels are kept under it, and agreement is counted by name."
        if known:
            names = ", ".join(one_line(name) for name in known)
            question += f"\nHere already: {names}."

        def named(name: str | None) -> None:
            if name is None:
                self.exit()
            else:
                self._work_as(message.workspace, name)

        self.push_screen(
            NoteScreen(
                "Who is labelling?",
                message.suggested,
                question=question,
                hint="Enter begins · Esc quits",
                check=lambda name: unlike_others(message.workspace, name),
                offered=True,
            ),
            named,
        )

    @writes
    def _work_as(self, workspace: Workspace, name: str) -> None:
        from mast_tui.ui.services import open_workspace as opening

        opened = self.guarded(lambda: opening.attach(workspace, self.taxonomy, name, self.options))
        if opened is None:
            return
        self.workspace_ready(opened)
        found = opening.found_workspace(self.options)
        if found is not None and found.parent.parent != Path.cwd():
            self.notify(f"Labels are kept in {one_line(str(found))}", markup=False)
        self._watch = Watch(workspace, self.post_message)
        if self.configuration.problem is not None:
            self.complain(self.configuration.problem)
        if not opening.was_welcomed():
            from mast_tui.ui.dialogs.welcome import WelcomeScreen

            self.push_screen(WelcomeScreen(), lambda _: opening.remember_welcome())

    @on(WorkspaceDoubted)
    def _workspace_doubted(self, message: WorkspaceDoubted) -> None:
        from mast_tui.ui.dialogs.question import Ask

        def answered(answer: str | None) -> None:
            if answer == "o":
                self.open_workspace(trusted=True)
            elif answer == "q":
                self.exit(return_code=1)
            else:
                self._refuse_workspace("the workspace that was found here was not opened")

        self.push_screen(
            Ask(
                "Open this workspace?",
                f"{one_line(str(message.path))} was found here, and {one_line(message.reason)}: "
                "somebody else may have prepared it, with a name, labels and settings in it. "
                "--workspace PATH opens one without asking.",
                (
                    ("o", "open it and label in it"),
                    ("r", "read on without labelling"),
                    ("q", "quit"),
                ),
                default="r",
            ),
            answered,
        )

    def _refuse_workspace(self, reason: str) -> None:
        self.refused = reason
        for screen in self.screen_stack:
            if isinstance(screen, NeedsWorkspace):
                screen.workspace_failed()

    @on(WorkspaceRefused)
    def _workspace_refused(self, message: WorkspaceRefused) -> None:
        from mast_tui.ui.dialogs.question import Ask

        self._refuse_workspace(message.reason)
        self.push_screen(
            Ask(
                "The workspace could not be opened",
                f"{one_line(message.reason)}\n\nYou can read traces, but nothing can be labelled.",
                (("r", "read on without labelling"), ("q", "quit")),
                default="r",
            ),
            lambda answer: self.exit(return_code=1) if answer == "q" else None,
        )

    def waiting_words(self) -> str:
        """What stands in place of the annotator while no workspace is open."""
        return "opening the workspace …" if self.refused is None else "reading only · no workspace"

    def guarded(self, step: Callable[[], Result]) -> Result | None:
        """Do ``step``; what the workspace refuses is said in words."""

        try:
            return self.kept(step)
        except MastError as error:
            self.complain(str(error))
            return None

    # Where the file of the workspace has gone

    def kept(self, step: Callable[[], Result]) -> Result:
        """Do ``step``; where the workspace has gone, ask where to go on, and do it there.

        Raises ``WorkspaceGone`` where that is refused, or cannot be asked for here.
        """
        from mast_tui.workspace import WorkspaceGone
        from mast_tui.workspace.commands import running_command

        while True:
            try:
                return step()
            except WorkspaceGone:
                if running_command() is None or not self._goes_on_elsewhere():
                    raise

    @on(WorkspaceLost)
    def _workspace_lost(self) -> None:
        opened = self.opened
        if opened is not None:
            self.writes.do(lambda: self.guarded(opened.workspace.check_there))

    def _goes_on_elsewhere(self) -> bool:
        """Ask whether to write everything that is open to a new file, and do it."""
        from mast_tui.ui.dialogs.question import Ask
        from mast_tui.workspace import WorkspaceError

        assert self.opened is not None
        workspace = self.opened.workspace
        assert workspace.path is not None
        place = place_for_a_copy(workspace.path)
        again = "there again" if place == workspace.path else f"to {place.name} beside it"
        question = Ask(
            "The workspace is gone",
            f"{one_line(str(workspace.path))} was deleted, moved or replaced by another program. "
            "All that you have labelled is still open in this window, and only here.",
            (("w", f"write all of it {again}, and go on"), ("n", "do not; nothing is saved now")),
            default="w",
        )

        def ask(answer: Callable[[str | None], None]) -> None:
            self.push_screen(question, answer)

        if self.writes.ask(ask) != "w":
            return False
        try:
            workspace.move_to(place)
        except WorkspaceError as error:
            self.complain(str(error))
            return False
        self.notify(f"Everything is in {one_line(str(place))}", markup=False, timeout=12)
        return True

    @on(WorkspaceChanged)
    def _workspace_changed(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, HearsOthers):
                screen.written_elsewhere()

    def on_unmount(self) -> None:
        """Nobody hears any more what others write."""
        if self._watch is not None:
            self._watch.stop()

    def close_workspace(self) -> None:
        """Leave the workspace's file whole, at the end; whatever asks for it later is refused."""
        if self._workspace is not None:
            self._workspace.close()

    def complain(self, words: str) -> None:
        """Say what went wrong, on whatever screen is open."""
        self.notify(one_line(words), severity="error", timeout=12, markup=False)

    def traces_found(self) -> None:
        """More traces are in the catalog."""
        raise NotImplementedError

    def count_finished(self) -> None:
        """All traces are in the catalog: count those that the annotator has finished."""
        raise NotImplementedError

    def workspace_ready(self, opened: OpenWorkspace) -> None:
        """The workspace is open, and who works in it is known."""
        raise NotImplementedError

    def when_ready(self, work: Callable[[OpenWorkspace], None]) -> None:
        """Do ``work`` with the opened, now or once the workspace is open, in order."""
        raise NotImplementedError
