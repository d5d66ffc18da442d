"""What a person sees once, on the very first start: five keys are enough to begin."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mast_tui.ui.context import context_of
from mast_tui.ui.styles import DIALOGS

FIVE_KEYS = (
    ("↑ ↓", "move over the steps of a run"),
    ("1 3", "two digits label the step, the same again takes it off"),
    ("]", "go to the next suggestion: a accepts it, x rejects it"),
    ("u", "take back the last change, also after a restart"),
    ("?", "all keys"),
)


class WelcomeScreen(ModalScreen[bool]):
    """Any key closes it, and gives back True. A key that was pressed before this could be seen
    closes it too, but then does what it was meant to do, and False is given back."""

    CSS_PATH = DIALOGS
    dialog_keys: ClassVar = (("any key", "begins"),)

    _seen_since: float | None = None

    def __init__(self, *, blind: bool = False) -> None:
        super().__init__()
        self._blind = blind

    def compose(self) -> ComposeResult:
        """The five keys."""
        with Vertical(classes="dialog") as box:
            box.border_title = "Welcome to mast_tui"
            box.border_subtitle = "any key begins"
            yield Static(
                Content("Read what an agent did, and label where and how it failed."),
                classes="question",
            )
            for key, words in FIVE_KEYS:
                if key == "]" and self._blind:  # it would go to nothing
                    continue
                yield Static(Content.assemble((f" {key:<5}", "bold"), f" {words}"))
            yield Static(
                Content("Every label is saved as you make it; quitting loses nothing."),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Remember when it is on screen."""
        self.call_after_refresh(self._drawn)

    def _drawn(self) -> None:
        self._seen_since = monotonic()

    def on_key(self, event: events.Key) -> None:
        """Close."""
        event.stop()
        seen = self._seen_since is not None and event.time >= self._seen_since
        self.dismiss(seen)
        if not seen:
            context_of(self).hand_back(event)

    def on_click(self) -> None:
        """Close."""
        self.dismiss(True)
