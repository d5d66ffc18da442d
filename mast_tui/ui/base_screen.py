"""What main screens share: the app, moving, and, but for the library, going back."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from mast_tui.safe_text import one_line
from mast_tui.ui.actions.registry import Where, bindings_for
from mast_tui.ui.context import ShowLibrary, context_of
from mast_tui.ui.widgets.hint_bar import HintBar
from mast_tui.ui.widgets.title_bar import ADJUDICATOR, TitleBar, sight_words
from mast_tui.ui.widgets.virtual_lines import VirtualLines
from mast_tui.writes import Writes

if TYPE_CHECKING:
    from mast_tui.ui.context import MastApp


class MovesLines:
    """What keys do that move over lines, on main screens and in dialogs."""

    @property
    @abstractmethod
    def pane(self) -> VirtualLines:
        """The list that keys move over now."""

    def action_move(self, delta: int) -> None:
        """One row up or down."""
        self.pane.move_by(delta)

    def action_move_page(self, delta: int) -> None:
        """One screen up or down."""
        self.pane.move_page(delta)

    def action_move_half(self, delta: int) -> None:
        """Half a screen up or down."""
        self.pane.move_half(delta)

    def action_move_to_start(self) -> None:
        """To the first row."""
        self.pane.move_to(0)

    def action_move_to_end(self) -> None:
        """To the last row."""
        self.pane.move_to(self.pane.row_count - 1)


class ListScreen(MovesLines, Screen[None]):
    """A main screen with a title, lists that keys move over, and a line of hints.

    A subclass that says ``where`` it is has the keys of there, and those that work everywhere.
    """

    where: ClassVar[Where]

    def __init_subclass__(cls, **options: Any) -> None:
        """Bind the keys."""
        if "where" in vars(cls):
            cls.BINDINGS = bindings_for(cls.where, Where.EVERYWHERE)
        super().__init_subclass__(**options)

    @property
    def mast(self) -> MastApp:
        """The app, with what it shares."""
        return context_of(self)

    @property
    def hints(self) -> HintBar:
        """The last line."""
        return self.query_one(HintBar)

    @property
    def title_bar(self) -> TitleBar:
        """The first line."""
        return self.query_one(TitleBar)

    def who(self) -> tuple[str, ...]:
        """Return who works, and as what: an adjudicator, or with or without suggestions."""
        opened = self.mast.opened
        if opened is None:
            return (self.mast.workspace.waiting_words(),)
        role = ADJUDICATOR if opened.adjudicates else sight_words(blind=opened.blind)
        return (*self.mast.workspace.unsent_words(), one_line(opened.annotator), role)

    def action_undo(self) -> None:
        """Nothing here can be taken back."""
        self.hints.say("There is nothing to take back here")

    def action_redo(self) -> None:
        """Nothing here can be done again."""
        self.action_undo()


class BaseScreen(ListScreen):
    """A main screen that another one takes the place of: panes, or words in place of them."""

    gives_way = True
    """Another main screen takes its place."""

    keys_left_out: Collection[str] = ()
    """Actions that the line of hints does not tell."""

    def compose(self) -> ComposeResult:
        """The title, the panes, the words, and the line of hints."""
        yield TitleBar()
        yield from self.compose_pages()
        with Vertical(classes="filled"):
            yield from self.compose_panes()
        with Vertical(classes="words"):
            yield Static(id="words", markup=False)
        yield HintBar(self.where, left_out=self.keys_left_out)

    def compose_pages(self) -> ComposeResult:
        """What chooses among several pages; nothing where there is one."""
        yield from ()

    @abstractmethod
    def compose_panes(self) -> ComposeResult:
        """What is shown unless there are only words."""

    @property
    def writes(self) -> Writes:
        """What is written to the workspace, in order."""
        return self.mast.writes

    @property
    @abstractmethod
    def main_list(self) -> VirtualLines:
        """The list that has the keys where no other pane has the focus."""

    @property
    def pane(self) -> VirtualLines:
        """The pane that has the focus, else the main list."""
        focused = self.focused
        return focused if isinstance(focused, VirtualLines) else self.main_list

    def show_words(self, words: str) -> None:
        """Say something in place of all that is shown between title and hints."""
        self.add_class("-empty")
        self.query_one("#words", Static).update(Content(words))

    def say_error(self, error: Exception | str) -> None:
        """Say on the last line what could not be done."""
        self.hints.say(one_line(str(error)), error=True)

    def action_back(self) -> None:
        """To the screen from which one came."""
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.mast.go(ShowLibrary())

    def action_close(self) -> None:
        """Close what is open, as Esc does."""
        self.action_back()
