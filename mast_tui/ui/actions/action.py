"""What an action is, and how one is written down: as a row of a table, on a line or two."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import NamedTuple


class Where(StrEnum):
    """The screens on which an action can be taken."""

    EVERYWHERE = "everywhere"
    LIBRARY = "library"
    ANNOTATE = "annotate"
    ADJUDICATE = "adjudicate"
    AGREEMENT = "agreement"
    AGREEMENT_TRACES = "agreement_traces"
    RUNS = "runs"
    RUN = "run"
    COMPARISON = "comparison"
    GUIDELINES = "guidelines"
    SIGNATURES = "signatures"
    SIGNATURE_TRACES = "signature_traces"
    STUDY = "study"
    OPEN_CODES = "open_codes"
    SIDE_BY_SIDE = "side_by_side"


class Action(NamedTuple):
    """One thing that a person can do, and the keys for it.

    ``command`` is the Textual action that it runs; ``title`` fits the footer; ``hint`` orders the
    footer (0 keeps it out; low numbers stay longest when the screen is narrow).
    """

    where: Where
    name: str
    keys: tuple[str, ...]
    title: str
    help: str
    command: str
    hint: int = 0
    priority: bool = False
    section: str = ""

    @property
    def id(self) -> str:
        """The name by which a configuration file and the palette know the action."""
        return f"{self.where}.{self.name}"


def action(
    where: Where,
    name: str,
    keys: str,
    title: str,
    help: str,
    command: str = "",
    *,
    hint: int = 0,
    priority: bool = False,
    section: str = "",
) -> Action:
    """Write an action down.

    Args:
        where: On which screen it can be taken.
        name: What it is called in a file of settings.
        keys: Its keys, with spaces between them.
        title: What it is called in the footer.
        help: What it does, for help and palette.
        command: The Textual action that it runs, where that is not called as it is.
        hint: Its place in the footer; 0 keeps it out.
        priority: Whether its keys do the same while somebody types.
        section: Under which heading of the screen's help it stands; the screen's own without one.
    """
    taken = tuple(keys.split())
    return Action(where, name, taken, title, help, command or name, hint, priority, section)


def moves(where: Where) -> tuple[Action, ...]:
    """The actions that move over a list."""
    here = partial(action, where, section="Move")
    return (
        here("up", "up k", "up", "One line up", "move(-1)"),
        here("down", "down j", "down", "One line down", "move(1)"),
        here("top", "g home", "first", "To the first line", "move_to_start"),
        here("bottom", "G end", "last", "To the last line", "move_to_end"),
        here("page_up", "pageup", "page up", "One page up", "move_page(-1)"),
        here("page_down", "pagedown", "page down", "One page down", "move_page(1)"),
        here("half_up", "ctrl+u", "half page up", "Half a page up", "move_half(-1)"),
        here("half_down", "ctrl+d", "half page down", "Half a page down", "move_half(1)"),
    )


def scrolls(where: Where, what: str, *, up: str = "b", section: str = "") -> tuple[Action, Action]:
    """The two actions that scroll a text beside a list.

    Args:
        where: On which screen they can be taken.
        what: What the text is called in help.
        up: The key that scrolls up, where ``b`` does something else.
        section: Under which heading they stand.
    """
    here = partial(action, where, section=section)
    return (
        here("text_down", "d", "text ↓", f"Scroll {what} down", "text(1)"),
        here("text_up", up, "text ↑", f"Scroll {what} up", "text(-1)"),
    )
