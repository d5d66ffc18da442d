"""The workspace of the app: opening it, asking whose it is, watching it, showing refusals."""

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
    from mast_tui.workspace.outbox import Change


LOOK_EVERY: Final = 0.5
"""Seconds between two looks."""

READ_AHEAD_EVERY: Final = 30.0
"""Seconds between two times that what somebody may go on with is read, where others write."""

IDLE: Final = 3.0
"""Seconds without a write after which all that is kept is brought into the one file."""


class WorkspaceWatcher:
    """Looks at an open workspace, and sends what waits for its server, from a thread of its own.

    That ends with the process.
    """

    def __init__(self, workspace: Workspace, service: WorkspaceService, app: MastApp) -> None:
        """Begin to look.

        Args:
            workspace: The open workspace.
            service: What says what is seen of one's own changes and of the file.
            app: What tells the screens the rest; all is called on its thread.
        """
        self._workspace = workspace
        self._service = service
        self._app = app
        self._over = Event()
        self._whole_at = 0.0
        self._ahead_at = 0.0
        self._news = False
        """True if something was written since all was read ahead."""
        self._company: tuple[str, ...] = ()
        self._why_not_sent = ""
        Thread(target=self._run, name="workspace-watch", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def _run(self) -> None:
        lost = False
        while not self._over.wait(LOOK_EVERY):
            try:
                if self._workspace.changed_elsewhere():
                    self._news = True
                    self._app.call_later(self._app.workspace_changed)
                lost = False
                self._look_around()
                self._send()
                self._read_ahead()
                self._make_whole()
            except WorkspaceGone:
                if not lost:
                    self._app.call_later(self._service.check_there)
                lost = True
            except WorkspaceError:
                continue  # whoever writes next is told, in words

    def _look_around(self) -> None:
        presence = self._workspace.presence
        company = () if presence is None else presence.company()
        if company != self._company:
            self._company = company
            self._app.call_later(self._app.presence_changed)

    def _send(self) -> None:
        """Send what has waited for the server, which has just answered."""
        outbox = self._workspace.outbox
        if outbox is None or not outbox.waiting:
            return
        before = outbox.waiting
        try:
            refused = self._workspace.send_waiting()
        except WorkspaceError as error:
            if str(error) != self._why_not_sent:
                self._why_not_sent = str(error)
                self._app.call_later(self._app.show_error, str(error))
            return
        if sent := before[: len(before) - len(outbox.waiting)]:
            self._ahead_at = 0.0
            self._app.call_later(self._app.workspace_changed)
            if decisions := self._workspace.decided_meanwhile(sent):
                self._app.call_later(self._service.tell_decided, decisions)
        if refused:
            self._app.call_later(self._service.tell_refused, refused)

    def _read_ahead(self) -> None:
        """Have at hand what is gone on with while the server is away."""
        outbox = self._workspace.outbox
        if outbox is None or outbox.waiting:
            return
        since = monotonic() - self._ahead_at
        if not self._ahead_at or (self._news and since > READ_AHEAD_EVERY):
            self._workspace.read_ahead()
            self._ahead_at, self._news = monotonic(), False

    def _make_whole(self) -> None:
        """Bring what was written into the one file, once nothing more has come for a while."""
        last = self._workspace.last_write
        if last > self._whole_at and monotonic() - last > IDLE:
            self._whole_at = last
            self._workspace.checkpoint()


def place_for_a_copy(path: Path) -> Path:
    """Where to write a workspace whose file is gone: the same place where nothing lies there now,
    else beside it."""
    if not path.exists():
        return path
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    names = (f"{path.stem}-rescued{number}{path.suffix}" for number in numbers)
    return next(place for name in names if not (place := path.with_name(name)).exists())


Result = TypeVar("Result")


class WorkspaceService:
    """One workspace, opened beside the screen, and whoever works in it."""

    def __init__(
        self, app: MastApp, options: AppOptions, configuration: Configuration, writes: Writes
    ) -> None:
        """Begin without a workspace.

        Args:
            app: Whom to ask and to tell.
            options: Which workspace, who works in it, and under which sight.
            configuration: The name to suggest, and what is wrong with the file of settings.
            writes: In which everything is written in order.
        """
        self.opened: OpenWorkspace | None = None
        """The workspace and who works in it, None until it is open."""
        self.refused: str | None = None
        """Why there is no workspace, where one could not be opened."""
        self._app = app
        self._options = options
        self._configuration = configuration
        self._writes = writes
        writes.when_gone = self._go_on_elsewhere
        self._workspace: Workspace | None = None
        self._watch: WorkspaceWatcher | None = None
        self._waiting: list[Callable[[OpenWorkspace], object]] = []
        self._stays = False
        """True if the annotator has refused another file in place of the one that is gone."""

    # Opening

    def open(self, *, trusted: bool) -> None:
        """Open the workspace, with the imports that it needs: slow, for a worker.

        One that others can have prepared is asked about first, unless it is ``trusted``.
        """
        # Start-up: it brings SQLAlchemy.
        from mast_tui.ui.services.open_workspace import Opening

        then = self._app.call_later
        opening = Opening(self._options, self._configuration.annotator)
        doubts = None if trusted else opening.doubts()
        if doubts is not None:
            then(self._doubted, str(opening.found), doubts)
            return
        try:
            opening.open(self._app.taxonomy.ref)
        except MastError as error:
            then(self.not_opened, str(error))
            return
        then(self._is_open, opening)

    def _doubted(self, path: str, reason: str) -> None:
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
            "somebody else may have prepared it, with a name, labels and settings in it. "
            "--workspace PATH opens one without asking.",
            (
                ("o", "open it and label in it"),
                ("r", "read on without labelling"),
                ("q", "quit"),
            ),
            answered,
            default="r",
        )

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self._app.workspace_failed()

    def not_opened(self, reason: str) -> None:
        """Say why the workspace could not be opened, and let people read on."""

        def answered(answer: str | None) -> None:
            if answer == "q":
                self._app.leave(1)

        self._refuse(reason)
        self._app.ask_key(
            "The workspace could not be opened",
            f"{one_line(reason)}\n\nYou can read traces, but nothing can be labelled.",
            (("r", "read on without labelling"), ("q", "quit")),
            answered,
            default="r",
        )

    def _is_open(self, opening: Opening) -> None:
        def named(name: str | None) -> None:
            if name is None:
                self._app.leave()
            else:
                self._writes.do(partial(self._work_as, opening, name))

        self._workspace = opening.workspace
        if opening.known is None:
            self._app.ask(opening.name_question(), named)
        else:
            named(opening.known)

    async def _work_as(self, opening: Opening, name: str) -> None:
        opened = await self.carry_out(partial(opening.attach, self._app.taxonomy, name))
        if opened is None:
            return
        self.opened = opened
        await self._app.workspace_ready()
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            step(opened)
        found = opening.found_now()
        if found is not None and found.parent.parent != Path.cwd():
            self._app.say(f"Labels are kept in {one_line(str(found))}")
        outside = opening.outside_notice(name)
        if outside is not None:
            self._app.say(one_line(outside), seconds=12)
        self._watch = WorkspaceWatcher(opened.workspace, self, self._app)
        if self._configuration.problem is not None:
            self._app.show_error(self._configuration.problem)
        opening.welcome(self._app.ask, opened)

    # What screens ask

    def when_ready(self, work: Callable[[OpenWorkspace], object]) -> None:
        """Do ``work`` with the workspace, now or once it is open, in order."""
        if self.opened is not None:
            work(self.opened)
        else:
            self._waiting.append(work)

    def waiting_words(self) -> str:
        """What stands in place of the annotator while no workspace is open."""
        return "opening the workspace …" if self.refused is None else "reading only · no workspace"

    def unsent_words(self) -> tuple[str, ...]:
        """How much waits on this machine for the server; nothing where nothing does."""
        count = 0 if self.opened is None else self.opened.workspace.waiting
        return (f"{count} waiting for the server",) if count else ()

    def tell_refused(self, changes: Sequence[Change]) -> None:
        """Say what the server could not take any more, and where it is."""
        outbox = None if self.opened is None else self.opened.workspace.outbox
        assert outbox is not None
        traces = dict.fromkeys(str(change.events[0].trace_id) for change in changes)
        count = "1 change" if len(changes) == 1 else f"{len(changes)} changes"
        self._app.ask_key(
            "Not saved: you finished the trace elsewhere meanwhile",
            f"{count} to {one_line(', '.join(traces))} waited here for the server, where you had "
            "finished the trace in another window by then. The finished pass stays as it is. What "
            f"was not saved is in {one_line(str(outbox.refused_path))}; label it anew where it "
            "still holds, which begins a new pass.",
            (("o", "go on"),),
            lambda _: None,
            default="o",
        )

    def tell_decided(self, decisions: Sequence[Recorded]) -> None:
        """Say what others have decided while one's own decisions waited."""
        first, more = decisions[-1], len(decisions) - 1
        self._app.say(
            f"While your decision waited {one_line(first.annotator)} decided the same item of "
            f"{one_line(str(first.trace_id), 40)}{f', and {more} more' if more else ''}: the later "
            "decision stands, and both are in the history",
            seconds=12,
        )

    async def carry_out(self, step: Callable[[], Result]) -> Result | None:
        """Carry out a step in the writer thread, as a part of a piece of work.

        Args:
            step: Reads or writes the workspace.

        Returns:
            What it returns, or None where the workspace refuses it, which is shown.
        """
        try:
            return await self._writes.run(step)
        except MastError as error:
            self._app.show_error(str(error))
            return None

    # The file, while it is open

    def check_there(self) -> None:
        """Ask where to go on, where the workspace's file is not at its place any more."""
        opened = self.opened
        if opened is not None:
            check = partial(self.carry_out, opened.workspace.check_there)
            self._writes.do(check, HeldKeys.NOTHING)

    async def _go_on_elsewhere(self) -> bool:
        """Ask whether to write everything that is open to a new file, and write it.

        Once that was refused, only what a key asks for asks again.

        Returns:
            Whether it was written, so that what was refused there can be done here.
        """
        assert self.opened is not None
        if self._stays and not self._writes.asked_for:
            return False
        workspace = self.opened.workspace
        assert workspace.path is not None
        place = place_for_a_copy(workspace.path)
        again = "there again" if place == workspace.path else f"to {place.name} beside it"
        question = partial(
            self._app.ask_key,
            "The workspace is gone",
            f"{one_line(str(workspace.path))} was deleted, moved or replaced by another program. "
            "All that you have labelled is still open in this window, and only here.",
            (("w", f"write all of it {again}, and go on"), ("n", "do not; nothing is saved now")),
            default="w",
        )
        self._stays = await self._writes.ask(question) != "w"
        if self._stays:
            return False
        try:
            await self._writes.run(partial(workspace.move_to, place))
        except WorkspaceError as error:
            self._app.show_error(str(error))
            return False
        self._app.say(f"Everything is in {one_line(str(place))}", seconds=12)
        return True

    def stop_watching(self) -> None:
        """Nobody hears any more what others write."""
        if self._watch is not None:
            self._watch.stop()

    def close(self) -> None:
        """Leave the workspace's file whole, at the end; whatever asks for it later is refused."""
        if self._workspace is not None:
            self._workspace.close()
