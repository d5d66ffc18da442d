"""What an action is, and short ways to write rows of the registry down."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class Action:
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

    @property
    def id(self) -> str:
        """The name by which a configuration file and the palette know the action."""
        return f"{self.where}.{self.name}"


def rows(where: Where, *given: tuple[str, str, str, str, str, int]) -> tuple[Action, ...]:
    """Actions of one screen from name, keys, title, help, command and hint."""
    return tuple(
        Action(where, name, tuple(keys.split()), title, text, command, hint)
        for name, keys, title, text, command, hint in given
    )


MOVE = (
    ("up", "up k", "up", "One line up", "move(-1)", 0),
    ("down", "down j", "down", "One line down", "move(1)", 0),
    ("top", "g home", "first", "To the first line", "move_to_start", 0),
    ("bottom", "G end", "last", "To the last line", "move_to_end", 0),
    ("page_up", "pageup", "page up", "One page up", "move_page(-1)", 0),
    ("page_down", "pagedown", "page down", "One page down", "move_page(1)", 0),
)
