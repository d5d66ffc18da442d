"""The base of the main screens: title, hints, moving over lists, going back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker, get_current_worker

from mast_tui.errors import MastError
from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.context import ShowLibrary, context_of
from mast_tui.ui.widgets.bars import ADJUDICATOR, HintBar, TitleBar, visibility_text
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.writes import Writes

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp, ReportToWrite, RunsToWrite


Result = TypeVar("Result")

Stopped = Callable[[], bool]
"""A function that returns True once a result is no longer needed."""


class StoppedError(Exception):
    """An error that ends a computation, because its result is no longer needed."""


class BackgroundWork:
    """The workers of a screen or dialog for slow computations."""

    def __init__(self, node: DOMNode, say_error: Callable[[str], object]) -> None:
        """Begin without workers.

        Args:
            node: The screen or dialog.
            say_error: Shows an error.
        """
        self._node = node
        self._say_error = say_error
        self._worker_by_group: dict[str, Worker[None]] = {}
        """The latest worker of each group. Only its results are shown."""

    def run(
        self,
        group: str,
        compute: Callable[[], Result],
        show: Callable[[Result], object],
        failed: Callable[[str], object] | None = None,
    ) -> Worker[None]:
        """Compute something in a worker, then show it.

        Args:
            group: The name of the work. New work of the same name replaces it.
            compute: Returns the result. It is called in a thread.
            show: Receives the result.
            failed: Receives the problem as text if the workspace or a file cannot be read. None
                shows the problem as an error.
        """
        return self.run_stages(group, lambda _: iter((compute(),)), show, failed)

    def run_stages(
        self,
        group: str,
        compute: Callable[[Stopped], Iterator[Result]],
        show: Callable[[Result], object],
        failed: Callable[[str], object] | None = None,
    ) -> Worker[None]:
        """Compute something in a worker, and show the result of each stage.

        Args:
            group: The name of the work. New work of the same name replaces it.
            compute: Yields the results, in a thread. It may raise ``StoppedError`` once it is
                stopped.
            show: Receives each result.
            failed: See ``run``.
        """

        def work() -> None:
            worker = get_current_worker()
            try:
                for stage in compute(lambda: worker.is_cancelled):
                    self.post(partial(show, stage))
            except StoppedError:
                return
            except (MastError, OSError) as error:
                self.post(partial(failed or self._say_error, one_line(str(error))))

        worker = self._node.run_worker(work, group=group, exclusive=True, thread=True)
        self._worker_by_group[group] = worker
        return worker

    def post(self, show: Callable[[], object]) -> None:
        """Show something from a worker, unless its work was replaced or stopped."""
        self._node.call_later(self._deliver, get_current_worker(), show)

    def _deliver(self, worker: Worker[None], show: Callable[[], object]) -> None:
        if self._worker_by_group.get(worker.group) is worker:
            show()

    def stop(self, group: str) -> None:
        """Stop the work of a group, and ignore its results from now on."""
        self._worker_by_group.pop(group, None)
        self._node.workers.cancel_group(self._node, group)


class KeepsTypedTexts:
    """The question before typed texts are lost, for dialogs."""

    _asked_about: tuple[str, object] | None = None
    """The key that drops texts if it is pressed again, and these texts; None before a question."""

    @property
    def typed_texts(self) -> object:
        """The texts that the user has typed or changed; None for none that are worth keeping."""
        return None

    @abstractmethod
    def say_below(self, text: str, *, error: bool = False) -> None:
        """Show a text below the typed texts.

        Args:
            text: The text.
            error: True if the text reports an error.
        """

    def may_drop_texts(self, key: str) -> bool:
        """Return whether no typed texts are lost, or the user has pressed a key again."""
        if self.typed_texts is None or self._asked_about == (key, self.typed_texts):
            return True
        self._asked_about = (key, self.typed_texts)
        self.say_below(f"Not closed: {key} again closes and drops what you typed.", error=True)
        return False


class MovesLines:
    """The actions that move over the rows of a list, for main screens and dialogs."""

    def lines_moved(self) -> None:
        """React to a move of the cursor by a key."""

    @property
    @abstractmethod
    def pane(self) -> VirtualLines:
        """The list that keys act on."""

    def action_move(self, delta: int) -> None:
        """Move by rows."""
        self.pane.move_by(delta)
        self.lines_moved()

    def action_move_page(self, delta: int) -> None:
        """Move by screens."""
        self.pane.move_page(delta)
        self.lines_moved()

    def action_move_half(self, delta: int) -> None:
        """Move by half screens."""
        self.pane.move_half(delta)
        self.lines_moved()

    def action_move_to_start(self) -> None:
        """Move to the first row."""
        self.pane.move_to(0)
        self.lines_moved()

    def action_move_to_end(self) -> None:
        """Move to the last row."""
        self.pane.move_to_end()
        self.lines_moved()


class MainScreen(MovesLines, Screen[None]):
    """A screen that is no dialog, with a title, lists, and a line of hints.

    A subclass with its own ``where`` has the keys of that screen, and those of all screens. The app
    calls the methods below, which a screen overrides as needed.
    """

    where: ClassVar[Where]

    gives_way: ClassVar[bool] = False
    """True if the screen closes when a screen of the same kind opens above it."""

    keys_left_out: ClassVar[Collection[str]] = ()
    """The actions without hints at first."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Bind the keys of the screen if the subclass sets ``where``."""
        if "where" in vars(cls):
            cls.BINDINGS = bindings_for(cls.where, Where.EVERYWHERE)
        super().__init_subclass__(**options)

    def __init__(self) -> None:
        super().__init__()
        self.title_bar = TitleBar()
        self.hints = HintBar(self.where, left_out=self.keys_left_out)
        self.work = BackgroundWork(self, self.say_error)

    @property
    def mast(self) -> MastApp:
        """The app, with the services that screens share."""
        return context_of(self)

    def pane_after_current(self, panes: Iterable[VirtualLines]) -> VirtualLines:
        """Return the visible pane after the current one; without another one, the current one."""
        visible_panes = [pane for pane in panes if pane.is_on_screen and pane.display]
        if self.pane not in visible_panes:
            visible_panes.insert(0, self.pane)
        return visible_panes[(visible_panes.index(self.pane) + 1) % len(visible_panes)]

    def refresh_rows(self) -> None:
        """Show added, changed and removed traces."""

    def still_reading(self, progress: str) -> None:
        """Show the progress of reading a big document."""

    def queue_changed(self) -> None:
        """Read the queue of traces again, because the work to do has changed."""

    def reset_queue(self) -> None:
        """Show the queue of the work to do, because a study was set up."""

    def workspace_failed(self) -> None:
        """Show that no workspace will be open."""

    def show_changes_of_others(self) -> None:
        """Show what another program has written to the workspace."""

    def presence_changed(self) -> None:
        """Show who works on the item under the cursor."""

    def leave_for_a_while(self) -> None:
        """Save what is needed later, before another screen covers or replaces this one."""

    def go_to_place(self, text: str) -> bool:
        """Go to a span or trace by its number, key or name; return False for an unknown one."""
        return False

    def report_to_write(self) -> ReportToWrite | RunsToWrite | None:
        """Return the report or run on screen that can be exported, or None."""
        return None

    @property
    def asks(self) -> bool:
        """True if the screen has a question in its last line. It receives keys first then."""
        return False

    def take_key(self, key: str, action: str | None) -> bool:
        """Handle a key as an answer.

        Args:
            key: The key's name.
            action: The id of the action of the key on this screen, or None.

        Returns:
            False if the key is no answer, and should run its action.
        """
        return False

    @property
    def has_all_content(self) -> bool:
        """True if no input has to wait for content. This must be fast."""
        return True

    def awaits_content(self, action: str | None) -> bool:
        """Return whether an input has to wait for content.

        Args:
            action: The id of the action of the key; None for any other input.
        """
        return False

    @abstractmethod
    def action_back(self) -> None:
        """Leave what is open, or go back."""

    def action_close(self) -> None:
        """Go back, as Escape does."""
        self.action_back()

    def right_title_parts(self) -> tuple[str, ...]:
        """Return the parts at the right of the first line.

        These are unsent changes, the annotator, and the role or visibility. Until the workspace is
        open, a single part says what the app waits for.
        """
        opened = self.mast.opened
        if opened is None:
            return (self.mast.workspace.waiting_text(),)
        parts = (*self.mast.workspace.unsent_text(), one_line(opened.annotator))
        if opened.adjudicates:
            return (*parts, ADJUDICATOR)
        if opened.blind or self.where is Where.LIBRARY:
            return (*parts, visibility_text(blind=opened.blind))
        return parts

    def say_error(self, error: Exception | str) -> None:
        """Show an error in the last line."""
        self.hints.say(one_line(str(error)), error=True)

    def action_undo(self) -> None:
        """Report that this screen has nothing to undo."""
        self.hints.say("Nothing to undo here")

    def action_redo(self) -> None:
        """Report that this screen has nothing to redo."""
        self.hints.say("Nothing to redo here")


class BaseScreen(MainScreen):
    """A main screen with panes, or with a message in their place."""

    gives_way = True

    def compose(self) -> ComposeResult:
        """Yield the title, the panes, the message, and the line of hints."""
        yield self.title_bar
        yield from self.compose_pages()
        with Vertical(classes="filled"):
            yield from self.compose_panes()
        with Vertical(classes="empty-message"):
            yield Static(id="empty-message", markup=False)
        yield self.hints

    def compose_pages(self) -> ComposeResult:
        """Yield the widget that chooses among several pages; by default nothing."""
        yield from ()

    @abstractmethod
    def compose_panes(self) -> ComposeResult:
        """Yield the panes."""

    @property
    def writes(self) -> Writes:
        """The queue of all writes to the workspace."""
        return self.mast.writes

    async def run_or_show_error(self, step: Callable[[], Result]) -> Result | None:
        """Run a step in the writer thread, as part of queued work.

        Show an error in the last line, and return None.
        """
        try:
            return await self.writes.run(step)
        except MastError as error:
            self.say_error(error)
            return None

    @property
    @abstractmethod
    def main_list(self) -> VirtualLines:
        """The list that keys act on while no other pane has the focus."""

    @property
    def pane(self) -> VirtualLines:
        """The pane with the focus, or else the main list."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.main_list

    def show_message_only(self, message: str) -> None:
        """Show a message in place of the panes."""
        self.add_class("-empty")
        self.query_one("#empty-message", Static).update(Content(message))

    @on(VirtualLines.Moved)
    def _main_row_moved(self, event: VirtualLines.Moved) -> None:
        if event.lines is self.main_list:
            self.row_moved()

    def row_moved(self) -> None:
        """Follow the cursor of the main list to another row."""
        self.hints.clear()

    @on(VirtualLines.Chosen)
    def _main_row_chosen(self, event: VirtualLines.Chosen) -> None:
        if event.lines is self.main_list:
            self.action_open()

    def action_open(self) -> None:
        """Open the row under the cursor, if possible."""

    def action_back(self) -> None:
        """Return to the previous screen."""
        if len(self.app.screen_stack) > 2:  # The lowest one is Textual's empty screen.
            self.app.pop_screen()
        else:
            self.mast.go(ShowLibrary())
