"""The screen of the very first start, with the five keys that are enough to begin."""

from __future__ import annotations

from time import monotonic
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from mast_tui.taxonomy.model import Taxonomy
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.context import context_of
from mast_tui.ui.styles import DIALOGS

_EXAMPLE_INDEX: Final = 2
"""The index of the mode whose keys are shown. In MAST these keys are two different digits."""


def first_keys(taxonomy: Taxonomy, key_of: KeyOf, *, blind: bool) -> tuple[tuple[str, str], ...]:
    """Return the keys that are enough to begin, and what each does.

    Args:
        taxonomy: The taxonomy of the labels.
        key_of: Returns how the key of an action is shown.
        blind: Whether no suggestions are shown, so that no key goes to one.
    """
    example_mode = taxonomy.modes[min(_EXAMPLE_INDEX, len(taxonomy.modes) - 1)]
    mode_keys = " ".join(taxonomy.keys_of(example_mode))
    accept = key_of("annotate.accept")
    reject = key_of("annotate.reject")
    effect = f"go to the next suggestion: {accept} accepts it, {reject} rejects it"
    suggestion_keys = ((key_of("annotate.next_suggestion"), effect),)
    return (
        (f"{key_of('annotate.up')} {key_of('annotate.down')}", "move over the steps of a run"),
        (mode_keys, "label the step with a mode; the same again removes it"),
        *(() if blind else suggestion_keys),
        (key_of("everywhere.undo"), "take back the last change, also after a restart"),
        (key_of("everywhere.help"), "all keys"),
    )


class WelcomeScreen(ModalScreen[bool]):
    """The first keys, shown until any key is pressed.

    The screen returns True if the key was pressed after the screen appeared. An earlier key closes
    the screen too; then the screen returns False and the app handles the key.
    """

    CSS_PATH = DIALOGS
    dialog_keys: ClassVar = (("any key", "begins"),)

    def __init__(self, taxonomy: Taxonomy, *, blind: bool) -> None:
        super().__init__()
        self._mounted_at: float | None = None
        self._taxonomy = taxonomy
        self._blind = blind

    def compose(self) -> ComposeResult:
        """Yield the first keys."""
        with Vertical(classes="dialog") as box:
            box.border_title = "Welcome to mast_tui"
            box.border_subtitle = "any key begins"
            yield Static(
                Content("Read what an agent did, and label where and how it failed."),
                classes="question",
            )
            key_of = context_of(self).key_of
            for key, effect in first_keys(self._taxonomy, key_of, blind=self._blind):
                yield Static(Content.assemble((f" {key:<5}", "bold"), f" {effect}"))
            yield Static(
                Content("Every label is saved as you make it; quitting loses nothing."),
                classes="hint",
            )

    def on_mount(self) -> None:
        """Note the time; the screen is drawn right after this."""
        self._mounted_at = monotonic()

    def on_key(self, event: events.Key) -> None:
        """Close the screen."""
        event.stop()
        was_seen = self._mounted_at is not None and event.time >= self._mounted_at
        self.dismiss(was_seen)
        if not was_seen:
            context_of(self).input_queue.put_back(event)

    def on_click(self) -> None:
        """Close the screen."""
        self.dismiss(True)
