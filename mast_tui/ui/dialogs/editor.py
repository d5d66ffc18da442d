"""Editing of a text in the user's editor, which ``$VISUAL`` or ``$EDITOR`` names."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from mast_tui.errors import MastError


class NoEditor(MastError):
    """An error: there is no editor, or it has failed. The text is unchanged."""


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the words of the command that edits a file.

    Args:
        environment: The environment with ``VISUAL`` and ``EDITOR``.

    Raises:
        NoEditor: Neither variable is set, or a variable is no command.
    """
    for name in ("VISUAL", "EDITOR"):
        try:
            command = shlex.split(environment.get(name, ""))
        except ValueError as error:
            raise NoEditor(f"{name} is no command: {error}") from error
        if command:
            return command
    raise NoEditor("No editor: set EDITOR, for instance EDITOR=nano, and start again")


def edited_text(text: str, command: list[str]) -> str:
    """Open a text in an editor, and return the result without line breaks at its end.

    Args:
        text: The text to edit.
        command: The words of the command, before the path.

    Raises:
        NoEditor: The command cannot be run, ends with an error, or leaves no readable text.
    """
    with TemporaryDirectory(prefix="mast-tui-") as folder:
        path = Path(folder) / "note.md"
        path.write_text(f"{text}\n" if text else "", "utf-8")
        try:
            process = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise NoEditor(f"{command[0]} cannot be run: {error.strerror}") from error
        if process.returncode:
            raise NoEditor(f"{command[0]} ended with {process.returncode}; the note is as it was")
        try:
            return path.read_text("utf-8").rstrip()
        except (OSError, ValueError) as error:
            raise NoEditor("The file that the editor wrote cannot be read as text") from error
