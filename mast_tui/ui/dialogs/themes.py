"""Choosing a theme: each is shown while one looks at it, and the one that is taken is kept."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.theme import BUILTIN_THEMES

from mast_tui.configuration import configuration_path, with_theme
from mast_tui.errors import MastError
from mast_tui.output_files import write_output
from mast_tui.safe_text import one_line
from mast_tui.ui.context import context_of
from mast_tui.ui.dialogs.finder import Choice, Finder


class ThemeChoice(Finder):
    """Gives back the name of the theme that was taken, or None and the theme of before."""

    def __init__(self, current: str) -> None:
        """List all themes, the one that is set first.

        Args:
            current: The theme that is set.
        """
        self._before = current
        names = sorted(BUILTIN_THEMES, key=lambda name: (name != current, name))
        choices = [Choice(name, "", name, _kind(name)) for name in names]
        super().__init__("Theme", choices, placeholder="a part of its name")

    def looked_at(self, value: str) -> None:
        """Show the theme under the cursor."""
        self.app.theme = value

    def dismiss(self, result: str | None = None) -> AwaitComplete:
        """Take the theme and keep it in the configuration; without one go back to that of before.

        Args:
            result: The theme.
        """
        self.app.theme = result or self._before
        if result is not None:
            self._keep(result)
        return super().dismiss(result)

    def _keep(self, name: str) -> None:
        path = configuration_path()
        try:
            text = path.read_text("utf-8") if path.exists() else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            write_output(path, with_theme(text, name))
        except (MastError, OSError, UnicodeDecodeError) as error:
            context_of(self).show_error(f"The theme is not kept: {one_line(str(error))}")
        else:
            context_of(self).say(f"{name} is kept in {one_line(str(path))}")


def _kind(name: str) -> str:
    theme = BUILTIN_THEMES[name]
    if theme.ansi:
        return "the terminal's own colours"
    return "dark" if theme.dark else "light"
