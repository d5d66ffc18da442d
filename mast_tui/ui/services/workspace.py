"""The workspace of the app: opening and watching it, and questions and refusals about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from mast_tui.configuration import Configuration
from mast_tui.errors import MastError, WorkspaceError, WorkspaceGone
from mast_tui.safe_text import one_line
from mast_tui.ui.options import AppOptions
from mast_tui.writes import HeldKeys, Writes

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp
    from mast_tui.ui.services.open_workspace import Opening, OpenWorkspace
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.events.model import Event as Recorded
    from mast_tui.workspace.outbox import WaitingChange


WATCH_EVERY: Final = 0.5
"""Seconds between two checks of the workspace."""

READ_AHEAD_EVERY: Final = 30.0
"""The least seconds between two reads of the labels needed while a server is away."""

IDLE: Final = 3.0
"""Seconds without a write after which the write-ahead log is merged into the file."""


class WorkspaceWatcher:
    """A thread that watches an open workspace and sends changes that wait for its server.

    The thread ends with the process.
    """

    def __init__(self, workspace: Workspace, service: WorkspaceService, app: MastApp) -> None:
        """Start the thread.

        Args:
            workspace: The open workspace.
            service: Reports on the annotator's own changes and on the file; called on its thread.
            app: Tells the screens the rest; called on its thread.
        """
        self._workspace = workspace
        self._service = service
        self._app = app
        self._over = Event()
        self._merged_at = 0.0
        self._read_ahead_at = 0.0
        self._changed = False
        """Whether someone has written since the last read ahead."""
        self._present: tuple[str, ...] = ()
        self._send_error = ""
        Thread(target=self._run, name="workspace-watch", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._over.set()

    def _run(self) -> None:
        """Check the workspace regularly, until ``stop`` is called."""
        lost = False
        while not self._over.wait(WATCH_EVERY):
            try:
                if self._workspace.changed_elsewhere():
                    self._changed = True
                    self._app.call_later(self._app.workspace_changed)
                lost = False
                self._check_presence()
                self._send()
                self._read_ahead()
                self._merge_log()
            except WorkspaceGone:
                if not lost:
                    self._app.call_later(self._service.check_there)
                lost = True
            except WorkspaceError:
                continue  # the next write reports the error

    def _check_presence(self) -> None:
        presence = self._workspace.presence
        present = () if presence is None else presence.company()
        if present != self._present:
            self._present = present
            self._app.call_later(self._app.presence_changed)

    def _send(self) -> None:
        """Send the changes that wait for the server, which has just answered."""
        outbox = self._workspace.outbox
        if outbox is None or not outbox.waiting:
            return
        waiting = outbox.waiting
        try:
            refused = self._workspace.send_waiting()
        except WorkspaceError as error:
            if str(error) != self._send_error:
                self._send_error = str(error)
                self._app.call_later(self._app.show_error, str(error))
            return
        if sent := waiting[: len(waiting) - len(outbox.waiting)]:
            self._read_ahead_at = 0.0
            self._app.call_later(self._app.workspace_changed)
            if decisions := self._workspace.decided_meanwhile(sent):
                self._app.call_later(self._service.tell_decided, decisions)
        if refused:
            self._app.call_later(self._service.tell_refused, refused)

    def _read_ahead(self) -> None:
        """Read what the annotator needs if the server goes away."""
        outbox = self._workspace.outbox
        if outbox is None or outbox.waiting:
            return
        since = monotonic() - self._read_ahead_at
        if not self._read_ahead_at or (self._changed and since > READ_AHEAD_EVERY):
            self._workspace.read_ahead()
            self._read_ahead_at = monotonic()
            self._changed = False

    def _merge_log(self) -> None:
        """Merge the write-ahead log into the file after a pause in writing."""
        last = self._workspace.last_write
        if last > self._merged_at and monotonic() - last > IDLE:
            self._merged_at = last
            self._workspace.checkpoint()


def rescue_path(path: Path) -> Path:
    """Return where to write a workspace whose file is gone.

    That is the same path if it is free now, or else a new file beside it.
    """
    if not path.exists():
        return path
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    names = (f"{path.stem}-rescued{number}{path.suffix}" for number in numbers)
    return next(copy for name in names if not (copy := path.with_name(name)).exists())


Result = TypeVar("Result")


class WorkspaceService:
    """The workspace of the app, opened in the background, and the person who works in it."""

    def __init__(
        self, app: MastApp, options: AppOptions, configuration: Configuration, writes: Writes
    ) -> None:
        """Begin without a workspace.

        Args:
            app: The app, which shows questions and messages.
            options: The workspace, the annotator and the visibility.
            configuration: The configured annotator, and the problem of the settings file.
            writes: The queue of all writes.
        """
        self.opened: OpenWorkspace | None = None
        """The open workspace, or None."""
        self.refused: str | None = None
        """The reason why no workspace is open, if opening has failed."""
        self._app = app
        self._options = options
        self._configuration = configuration
        self._writes = writes
        writes.when_gone = self._rescue
        self._workspace: Workspace | None = None
        self._watcher: WorkspaceWatcher | None = None
        self._waiting: list[Callable[[OpenWorkspace], object]] = []
        self._copy_refused = False
        """Whether the user has refused to write a new file for the one that is gone."""

    # Opening

    def open(self, *, trusted: bool) -> None:
        """Open the workspace; slow, for a worker.

        Args:
            trusted: Whether to open it without a question even if others may have prepared it.
        """
        # Start-up: it imports SQLAlchemy.
        from mast_tui.ui.services.open_workspace import Opening

        call = self._app.call_later
        opening = Opening(self._options, self._configuration.annotator)
        reason = None if trusted else opening.distrust_reason()
        if reason is not None:
            call(self._ask_for_trust, str(opening.default), reason)
            return
        try:
            opening.open(self._app.taxonomy.ref)
        except MastError as error:
            call(self.not_opened, str(error))
            return
        call(self._is_open, opening)

    def _ask_for_trust(self, path: str, reason: str) -> None:
        """Ask whether to open a workspace that someone else may have prepared."""

        def answered(answer: str | None) -> None:
            if answer == "o":
                self._app.open_workspace(trusted=True)
            elif answer == "q":
                self._app.leave(1)
            else:
                self._refuse("the workspace that was found here was not opened")

        self._app.ask_key(
            "Open this workspace?",
            f"{one_line(path)} was found here, and {one_line(reason)}: "
            "someone else may have prepared it, with a name, labels and settings in it. "
            "--workspace PATH opens one without asking.",
            (
                ("o", "open it and label in it"),
                ("r", "read without labelling"),
                ("q", "quit"),
            ),
            answered,
            default="r",
        )

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self._app.workspace_failed()

    def not_opened(self, reason: str) -> None:
        """Report why the workspace could not be opened; the user may still read."""

        def answered(answer: str | None) -> None:
            if answer == "q":
                self._app.leave(1)

        self._refuse(reason)
        self._app.ask_key(
            "The workspace could not be opened",
            f"{one_line(reason)}\n\nYou can read traces, but nothing can be labelled.",
            (("r", "read without labelling"), ("q", "quit")),
            answered,
            default="r",
        )

    def _is_open(self, opening: Opening) -> None:
        """Ask who labels, unless that is known, and begin to work."""

        def named(name: str | None) -> None:
            if name is None:
                self._app.leave()
            else:
                self._writes.do(partial(self._work_as, opening, name))

        self._workspace = opening.workspace
        if opening.annotator is None:
            self._app.ask(opening.name_question(), named)
        else:
            named(opening.annotator)

    async def _work_as(self, opening: Opening, name: str) -> None:
        """Register the annotator, tell the screens, and start to watch the workspace."""
        opened = await self.carry_out(partial(opening.attach, self._app.taxonomy, name))
        if opened is None:
            return
        self.opened = opened
        await self._app.workspace_ready()
        waiting = self._waiting
        self._waiting = []
        for step in waiting:
            step(opened)
        path = opening.find_default()
        if path is not None and path.parent.parent != Path.cwd():
            self._app.say(f"Labels are kept in {one_line(str(path))}")
        outside = opening.outside_notice(name)
        if outside is not None:
            self._app.say(one_line(outside), seconds=12)
        self._watcher = WorkspaceWatcher(opened.workspace, self, self._app)
        if self._configuration.problem is not None:
            self._app.show_error(self._configuration.problem)
        opening.welcome(self._app.ask, opened)

    # Requests of screens

    def when_ready(self, work: Callable[[OpenWorkspace], object]) -> None:
        """Call a function with the workspace, now or once it is open, in order."""
        if self.opened is not None:
            work(self.opened)
        else:
            self._waiting.append(work)

    def waiting_words(self) -> str:
        """Return the text in place of the annotator while no workspace is open."""
        return "workspace not open yet" if self.refused is None else "reading only · no workspace"

    def unsent_words(self) -> tuple[str, ...]:
        """Return how many changes wait for the server; empty if none do."""
        count = 0 if self.opened is None else self.opened.workspace.waiting
        return (f"{count} waiting for the server",) if count else ()

    def tell_refused(self, changes: Sequence[WaitingChange]) -> None:
        """Report the changes that the server refused, and the file that has them."""
        outbox = None if self.opened is None else self.opened.workspace.outbox
        assert outbox is not None
        traces = dict.fromkeys(str(change.events[0].trace_id) for change in changes)
        count = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
        self._app.ask_key(
            "Not saved: you finished the trace elsewhere meanwhile",
            f"{count} to {one_line(', '.join(traces))} waited here for the server. Meanwhile you "
            "finished the trace in another window, and that pass stays as it is. The changes that "
            f"were not saved are in {one_line(str(outbox.refused_path))}. Label them again if they "
            "still hold, which begins a new pass.",
            (("o", "go on"),),
            lambda _: None,
            default="o",
        )

    def tell_decided(self, decisions: Sequence[Recorded]) -> None:
        """Report what others have decided while the user's own decisions waited."""
        first = decisions[-1]
        more = len(decisions) - 1
        self._app.say(
            f"While your decision waited {one_line(first.annotator)} decided the same item of "
            f"{one_line(str(first.trace_id), 40)}{f', and {more} more' if more else ''}: the later "
            "decision stands, and both are in the history",
            seconds=12,
        )

    async def carry_out(self, step: Callable[[], Result]) -> Result | None:
        """Run a function in the writer thread, as part of queued work.

        Args:
            step: Reads or writes the workspace.

        Returns:
            Its result, or None if the workspace refuses it; the reason is shown.
        """
        try:
            return await self._writes.run(step)
        except MastError as error:
            self._app.show_error(str(error))
            return None

    # The file of the open workspace

    def check_there(self) -> None:
        """Check that the file of the workspace still exists; if not, the user is asked."""
        opened = self.opened
        if opened is not None:
            check = partial(self.carry_out, opened.workspace.check_there)
            self._writes.do(check, HeldKeys.NOTHING)

    async def _rescue(self) -> bool:
        """Ask whether to write the workspace to a new file because its own is gone, and write it.

        After a refusal, only work that a key has requested asks again.

        Returns:
            Whether it was written, so that the refused work can run again.
        """
        assert self.opened is not None
        if self._copy_refused and not self._writes.asked_for:
            return False
        workspace = self.opened.workspace
        assert workspace.path is not None
        path = rescue_path(workspace.path)
        destination = "to the same file" if path == workspace.path else f"to {path.name} beside it"
        question = partial(
            self._app.ask_key,
            "The workspace is gone",
            f"{one_line(str(workspace.path))} was deleted, moved or replaced by another program. "
            "All that you have labelled is still open in this window, and only here.",
            (
                ("w", f"write all of it {destination}, and continue"),
                ("n", "do not; nothing more is saved"),
            ),
            default="w",
        )
        self._copy_refused = await self._writes.ask(question) != "w"
        if self._copy_refused:
            return False
        try:
            await self._writes.run(partial(workspace.move_to, path))
        except WorkspaceError as error:
            self._app.show_error(str(error))
            return False
        self._app.say(f"Everything is in {one_line(str(path))}", seconds=12)
        return True

    def stop_watching(self) -> None:
        """Stop watching what others write."""
        if self._watcher is not None:
            self._watcher.stop()

    def close(self) -> None:
        """Close the workspace and leave its file complete."""
        if self._workspace is not None:
            self._workspace.close()
