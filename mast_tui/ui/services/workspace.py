"""The workspace of the app: opening and watching it, and questions and refusals about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, count
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from mast_tui.counts import counted
from mast_tui.errors import MastError, WorkspaceError, WorkspaceGone
from mast_tui.safe_text import one_line
from mast_tui.writes import HeldKeys

if TYPE_CHECKING:
    from mast_tui.redaction.masked_trace import Masks
    from mast_tui.ui.context import MastApp
    from mast_tui.ui.services.open_workspace import Opening, OpenWorkspace
    from mast_tui.workspace import Workspace
    from mast_tui.workspace.events.model import Event as Recorded
    from mast_tui.workspace.outbox import WaitingChange


WATCH_EVERY: Final = 0.5
"""Seconds between two checks of the workspace."""

READ_AHEAD_EVERY: Final = 30.0
"""The least seconds between two reads of the labels that are needed without a server."""

WRITE_PAUSE: Final = 3.0
"""Seconds without a write after which the write-ahead log is merged into the file."""


class WorkspaceWatcher:
    """A thread that watches an open workspace, and sends changes that wait for its server.

    The thread ends with the process.
    """

    def __init__(self, workspace: Workspace, app: MastApp) -> None:
        """Start the thread.

        Args:
            workspace: The open workspace.
            app: Notified of changes in its own thread.
        """
        self._workspace = workspace
        self._app = app
        self._stop_event = Event()
        self._merged_write = 0.0
        """The time of the last write that was merged into the file."""
        self._read_ahead_at = 0.0
        """The time of the last reading ahead; 0 to read ahead as soon as possible."""
        self._has_new_changes = False
        """Whether someone has written since the last reading ahead."""
        self._reported_people: tuple[str, ...] = ()
        """The other people at the present item, as last reported to the app."""
        self._reported_send_error = ""
        Thread(target=self._watch_until_stopped, name="workspace-watch", daemon=True).start()

    def stop(self) -> None:
        """End the thread."""
        self._stop_event.set()

    def _watch_until_stopped(self) -> None:
        """Check the workspace regularly, until ``stop`` is called.

        A missing file is reported once, until it exists again.
        """
        is_lost = False
        while not self._stop_event.wait(WATCH_EVERY):
            try:
                if self._workspace.changed_elsewhere():
                    self._has_new_changes = True
                    self._app.call_later(self._app.workspace_changed)
                is_lost = False
                self._check_presence()
                self._send_waiting_changes()
                self._read_ahead()
                self._merge_log()
            except WorkspaceGone:
                if not is_lost:
                    self._app.call_later(self._app.workspace.check_exists)
                is_lost = True
            except WorkspaceError:
                continue  # the next write reports the error

    def _check_presence(self) -> None:
        """Tell the app if other people have come to the present item or have left it."""
        presence = self._workspace.presence
        people = () if presence is None else presence.annotators_here()
        if people != self._reported_people:
            self._reported_people = people
            self._app.call_later(self._app.presence_changed)

    def _send_waiting_changes(self) -> None:
        """Send the changes that wait for the server, and report the result.

        The same error is not reported twice in a row.
        """
        outbox = self._workspace.outbox
        if outbox is None or not outbox.waiting:
            return
        waiting_changes = outbox.waiting
        try:
            refused_changes = self._workspace.send_waiting()
        except WorkspaceError as error:
            if str(error) != self._reported_send_error:
                self._reported_send_error = str(error)
                self._app.call_later(self._app.show_error, str(error))
            return
        answered_count = len(waiting_changes) - len(outbox.waiting)
        answered_changes = waiting_changes[:answered_count]
        if answered_changes:
            self._read_ahead_at = 0.0
            self._app.call_later(self._app.workspace_changed)
            decisions = self._workspace.decided_meanwhile(answered_changes)
            if decisions:
                self._app.call_later(self._app.workspace.report_decided, decisions)
        if refused_changes:
            self._app.call_later(self._app.workspace.report_refused, refused_changes)

    def _read_ahead(self) -> None:
        """Read the labels that the annotator needs if the server goes away.

        They are read once, and again some time after others have written.
        """
        outbox = self._workspace.outbox
        if outbox is None or outbox.waiting:
            return
        seconds_since = monotonic() - self._read_ahead_at
        is_due = self._has_new_changes and seconds_since > READ_AHEAD_EVERY
        if not self._read_ahead_at or is_due:
            self._workspace.read_ahead()
            self._read_ahead_at = monotonic()
            self._has_new_changes = False

    def _merge_log(self) -> None:
        """Merge the write-ahead log into the file after a pause in writing."""
        last_write = self._workspace.last_write
        if last_write > self._merged_write and monotonic() - last_write > WRITE_PAUSE:
            self._merged_write = last_write
            self._workspace.checkpoint()


def rescue_path(path: Path) -> Path:
    """Return a path to save a workspace again if its file was deleted, moved or replaced.

    This is the same path if it is free, else a free path beside it.
    """
    if not path.exists():
        return path
    suffixes = chain([""], (f"-{number}" for number in count(2)))
    names = (f"{path.stem}-rescued{suffix}{path.suffix}" for suffix in suffixes)
    candidates = (path.with_name(name) for name in names)
    return next(candidate for candidate in candidates if not candidate.exists())


Result = TypeVar("Result")


class WorkspaceService:
    """The workspace of the app, opened in the background, and the person who works in it."""

    def __init__(self, app: MastApp) -> None:
        """Begin without a workspace."""
        self.opened: OpenWorkspace | None = None
        """The open workspace, or None."""
        self.no_workspace_reason: str | None = None
        """The reason why no workspace is open, if opening has failed."""
        self._app = app
        app.writes.when_file_gone = self._offer_rescue
        self._opening: Opening | None = None
        """The steps that opened the workspace; None before them."""
        self._watcher: WorkspaceWatcher | None = None
        self._steps_when_ready: list[Callable[[OpenWorkspace], object]] = []
        """The functions to call once the workspace is open."""
        self._copy_refused = False
        """Whether the user has refused to write a new file for the missing one."""

    def open(self, *, trusted: bool) -> None:
        """Open the workspace, then ask who labels.

        Call it in a worker, because it is slow. If another person may have prepared the workspace,
        ask first whether to open it. If it cannot be opened, show the reason.

        Args:
            trusted: True to open it without that question.
        """
        # The import of SQLAlchemy would delay the start.
        from mast_tui.ui.services.open_workspace import Opening

        call = self._app.call_later
        opening = Opening(self._app.options, self._app.configuration.annotator)
        reason = None if trusted else opening.distrust_reason()
        if reason is not None:
            call(self._ask_for_trust, str(opening.default), reason)
            return
        try:
            opening.open(self._app.taxonomy.ref)
        except MastError as error:
            if opening.lacks_masks:
                call(self._refuse_without_masks, str(error))
            else:
                call(self.not_opened, str(error))
            return
        call(self._ask_for_name, opening)

    def _ask_for_trust(self, path: str, reason: str) -> None:
        """Ask whether to open a workspace that another person may have prepared."""
        read_only = partial(
            self._continue_without_workspace, "the workspace that was found here was not opened"
        )
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
            {
                "o": partial(self._app.open_workspace, trusted=True),
                "r": read_only,
                "q": partial(self._app.leave, 1),
                None: read_only,
            },
            default="r",
        )

    def _continue_without_workspace(self, reason: str, masks: Masks | None = None) -> None:
        self.no_workspace_reason = reason
        self._app.workspace_failed()
        self._app.traces.mask(masks)

    def _refuse_without_masks(self, reason: str) -> None:
        """Show why the texts of the study cannot be masked, and end the app."""
        self._app.ask_key(
            "The traces of this study cannot be shown",
            f"The study masks personal data and secrets, but {one_line(reason)}",
            (("q", "quit"),),
            dict.fromkeys(("q", None), partial(self._app.leave, 1)),
            default="q",
        )

    def not_opened(self, reason: str, masks: Masks | None = None) -> None:
        """Show why the workspace could not be opened, and offer to read without labelling.

        Args:
            reason: The reason.
            masks: The masks of the study over the texts of traces; None if they are not known.
        """
        app = self._app
        if masks is None and app.traces.awaits_masks and not app.options.on_server:
            self._refuse_without_masks(reason)
            return
        self._continue_without_workspace(reason, masks)
        self._app.ask_key(
            "The workspace could not be opened",
            f"{one_line(reason)}\n\nYou can read traces, but nothing can be labelled.",
            (("r", "read without labelling"), ("q", "quit")),
            {"q": partial(self._app.leave, 1)},
            default="r",
        )

    def _ask_for_name(self, opening: Opening) -> None:
        """Begin to work, after asking for the name of the annotator if it is unknown.

        Without a name the app ends.
        """

        def begin_as(name: str) -> None:
            self._app.writes.do(partial(self._work_as, opening, name))

        self._opening = opening
        if opening.annotator is None:
            self._app.ask(opening.name_question(), begin_as, left=self._app.leave)
        else:
            begin_as(opening.annotator)

    async def _work_as(self, opening: Opening, name: str) -> None:
        """Register the annotator, run the waiting steps, and watch the workspace."""
        try:
            opened = await self._attach(opening, name)
        except MastError as error:
            self.not_opened(str(error), opening.masks)
            return
        await self._app.workspace_ready(opened)
        steps = self._steps_when_ready
        self._steps_when_ready = []
        for step in steps:
            step(opened)
        path = opening.default
        if path is not None and path.parent.parent != Path.cwd():  # found in a folder above
            self._app.say(f"Labels are saved in {one_line(str(path))}")
        for notice in (opening.outside_notice(name), opening.remembered_blind_notice(opened)):
            if notice is not None:
                self._app.say(one_line(notice))
        self._watcher = WorkspaceWatcher(opened.workspace, self._app)
        if self._app.configuration.problem is not None:
            self._app.show_error(self._app.configuration.problem)
        opening.welcome(self._app, opened)

    def ask_for_another_annotator(self) -> None:
        """Ask for a name, and work in the workspace under it."""
        self.when_ready_or_refuse(
            lambda opened: self._app.writes.do(partial(self._ask_for_another, opened)),
            "no one can label",
        )

    async def _ask_for_another(self, opened: OpenWorkspace) -> None:
        """Ask for the name of another annotator.

        This is refused if a server decides about names, or changes still wait for the server.
        """
        opening = self._opening
        assert opening is not None
        if opened.workspace.member is not None:
            self._app.show_error(
                f"The server knows you as {one_line(opened.annotator)}: to label under another "
                "name, log in under it"
            )
            return
        if opened.workspace.waiting:
            self._app.show_error("Changes still wait for the server; try again when they are sent")
            return
        opening.study = await self.carry_out(opened.study)

        def begin_as(name: str) -> None:
            if name == opened.annotator:
                self._app.say(f"You already label as {one_line(name)}")
            else:
                self._app.writes.do(partial(self._continue_as, opening, name))

        self._app.ask(opening.name_question(opened.annotator), begin_as)

    async def _continue_as(self, opening: Opening, name: str) -> None:
        try:
            await self._attach(opening, name)
        except MastError as error:
            self._app.show_error(str(error))
            return
        await self._app.annotator_changed()
        self._app.say(f"You label as {one_line(name)} now")

    async def _attach(self, opening: Opening, name: str) -> OpenWorkspace:
        """Register an annotator, and mask the traces as the study asks.

        Raises:
            MastError: The workspace refuses the annotator or the taxonomy, or cannot be written.
        """
        opened = await self._app.writes.run(partial(opening.attach, self._app.taxonomy, name))
        self.opened = opened
        self._app.traces.mask(opened.masks)
        return opened

    def when_ready(self, work: Callable[[OpenWorkspace], object]) -> None:
        """Call a function with the workspace, now or once it is open.

        Waiting functions are called in the order of the requests.
        """
        if self.opened is not None:
            work(self.opened)
        else:
            self._steps_when_ready.append(work)

    def when_ready_or_refuse(
        self, work: Callable[[OpenWorkspace], object], consequence: str
    ) -> None:
        """Call a function like ``when_ready``; if no workspace will be open, show an error.

        Args:
            work: The function.
            consequence: The consequence of no workspace, such as ``no one can label``.
        """
        if self.no_workspace_reason is not None:
            self._app.answer(f"No workspace is open, so {consequence}", error=True)
        else:
            self.when_ready(work)

    def waiting_text(self) -> str:
        """Return the text shown in place of the annotator while no session is open."""
        if self.no_workspace_reason is not None:
            return "reading only · no workspace"
        return "not labelling yet" if self.opened is None else "labels not read yet"

    def unsent_text(self) -> tuple[str, ...]:
        """Return the number of changes that wait for the server as a part of a title, if any do."""
        count = 0 if self.opened is None else self.opened.workspace.waiting
        return (f"{counted(count, 'change')} waiting for the server",) if count else ()

    def report_refused(self, changes: Sequence[WaitingChange]) -> None:
        """Report the changes that the server refused, and the file in which they are kept."""
        outbox = None if self.opened is None else self.opened.workspace.outbox
        assert outbox is not None
        trace_ids = dict.fromkeys(str(change.events[0].trace_id) for change in changes)
        traces_text = one_line(", ".join(trace_ids))
        self._app.ask_key(
            "Not saved: you finished the trace elsewhere meanwhile",
            f"{counted(len(changes), 'change')} to {traces_text} waited here for the server. "
            "Meanwhile you finished the trace in another window, and that work stays as it is. The "
            f"changes that were not saved are in {one_line(str(outbox.refused_path))}. Make them "
            "again if they still hold; then the trace is unfinished again.",
            (("o", "continue"),),
            {},
            default="o",
        )

    def report_decided(self, decisions: Sequence[Recorded]) -> None:
        """Report that others have decided an item while the user's decision waited to be sent.

        Args:
            decisions: The decisions of others, the latest last.
        """
        *earlier_decisions, latest = decisions
        further_count = counted(len(earlier_decisions), "more item")
        further_text = f" (the same for {further_count})" if earlier_decisions else ""
        self._app.say(
            f"While your decision waited for the server, {one_line(latest.annotator)} decided the "
            f"same item of {one_line(str(latest.trace_id), 40)}{further_text}: the later "
            "decision stands, and both are in the history",
            seconds=12,
        )

    async def carry_out(self, step: Callable[[], Result]) -> Result | None:
        """Run a function in the writer thread, as part of queued work.

        Args:
            step: Reads or writes the workspace.

        Returns:
            The result, or None after an error, which is shown.
        """
        try:
            return await self._app.writes.run(step)
        except MastError as error:
            self._app.show_error(str(error))
            return None

    def check_exists(self) -> None:
        """Check that the file of the workspace still exists, and offer to write a new file
        otherwise.
        """
        opened = self.opened
        if opened is not None:
            # If the file is gone, the queue of writes calls ``_offer_rescue``.
            check = partial(self.carry_out, opened.workspace.check_exists)
            self._app.writes.do(check, HeldKeys.NOTHING)

    async def _offer_rescue(self) -> bool:
        """Offer to write the workspace to a new file, because its own is gone.

        Return whether the file was written, so that the failed work can run again. After a refusal,
        ask again only for work that a key has requested.
        """
        assert self.opened is not None
        if self._copy_refused and not self._app.writes.asked_for:
            return False
        workspace = self.opened.workspace
        assert workspace.path is not None
        path = rescue_path(workspace.path)
        self._copy_refused = await self._app.writes.ask(
            partial(self._ask_for_copy, workspace.path, path)
        )
        if self._copy_refused:
            return False
        try:
            await self._app.writes.run(partial(workspace.move_to, path))
        except WorkspaceError as error:
            self._app.show_error(str(error))
            return False
        self._app.say(f"Everything is in {one_line(str(path))}", seconds=12)
        return True

    def _ask_for_copy(
        self, lost_path: Path, path: Path, set_refused: Callable[[bool], None]
    ) -> None:
        """Ask whether to write the workspace to a new path, and report if the user refuses."""
        destination = "to the same file" if path == lost_path else f"to {path.name} beside it"
        refuse = partial(set_refused, True)
        self._app.ask_key(
            "The workspace is gone",
            f"{one_line(str(lost_path))} was deleted, moved or replaced by another "
            "program. All that you have labelled is still open in this window, and only here.",
            (
                ("w", f"write all of it {destination}, and continue"),
                ("n", "do not; nothing more is saved"),
            ),
            {"w": partial(set_refused, False), "n": refuse, None: refuse},
            default="w",
        )

    def stop_watching(self) -> None:
        """Stop watching what others write."""
        if self._watcher is not None:
            self._watcher.stop()

    def close(self) -> None:
        """Close the workspace, which completes its file."""
        if self._opening is not None:
            self._opening.workspace.close()
