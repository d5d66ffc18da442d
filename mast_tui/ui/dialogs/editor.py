"""Writing a text in the person's own editor, as ``$VISUAL`` or ``$EDITOR`` names it."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mast_tui.errors import MastError


class NoEditor(MastError):
    """There is no editor to write in, or it has failed; the text is as it was."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the words of the command that edits a file.

    Args:
        environment: Where ``VISUAL`` and ``EDITOR`` are looked up.

    Raises:
        NoEditor: Neither is set, or it is no command.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(environment.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"{name} is no command: {error}") from error
        if words:
            return words
    raise NoEditor("No editor: set EDITOR, for instance EDITOR=nano, and start again")


def edited(text: str, command: list[str]) -> str:
    """Have a text edited, and return it without the line breaks at its end.

    Args:
        text: What stands in the file at first.
        command: The words of the command; the path comes behind them.

    Raises:
        NoEditor: The command cannot be run, ends with an error, or leaves no text.
    """
    with TemporaryDirectory(prefix="mast-tui-") as folder:
        path = Path(folder) / "note.md"
        path.write_text(f"{text}\n" if text else "", "utf-8")
        try:
            done = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise NoEditor(f"{command[0]} cannot be run: {error.strerror}") from error
        if done.returncode:
            raise NoEditor(f"{command[0]} ended with {done.returncode}; the note is as it was")
        try:
            return path.read_text("utf-8").rstrip()
        except (OSError, ValueError) as error:
            raise NoEditor("What the editor has left cannot be read as text") from error
